"""Trains the trees that say whether a newer statement makes an older one void (`validity/pair_trees.json`).

python models/relations/train.py                 cross-validation by chain, and the held-out chains
python models/relations/train.py --write         the same, then trees from everything but the sealed chains
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from holdfast.features.memory.validity import pair_model, relations, resolve  # noqa: E402
from holdfast.features.memory.validity.parse import Parsed, parse_statement  # noqa: E402
from tests.features.memory.corpus import read_cases, read_own_chains  # noqa: E402

ROUNDS, DEPTH, RATE, L2, LEAST = 120, 3, 0.1, 4.0, 6.0
TUNED, UNTUNED = 0.5, 1.0
"""On the chains the rules were written for they look better than they are: such pairs count less."""
TUNED_SETS = ("own_chains", "unseen_chains", "more_chains")
UNTUNED_SETS = ("domain_chains",)
SEALED_SETS = ("sealed_chains", "sealed_domain_chains")
Row = tuple[list[float], int, float]


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def features_of(new: Parsed, old: Parsed) -> dict[str, float]:
    return pair_model.describe_pair(new, old, relations.fired_rules(new, old))


def read_pairs() -> Iterator[tuple[str, str, int]]:
    for line in (FOLDER / "pairs.txt").read_text("utf-8").splitlines():
        if line.startswith("# ") or not line.strip():
            continue
        mark = " => " if " => " in line else " | "
        older, newer = line.split(mark)
        yield older, newer, int(mark == " => ")


def chain_pairs(chain: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """What is not valid at the end was replaced by the later statement that is most like it; which one is not written down."""
    said = [(n, one) for n, one in enumerate(chain["statements"]) if one["by"] == "user"]
    never = {one["i"] for one in chain.get("superseded", ()) if one["how"] in ("notlasting", "expired")}
    open_ = set(chain["either"]) | {n for group in chain["one_of"] for n in group}
    for at, (older, one) in enumerate(said):
        if older in open_ or older in never or resolve._is_over(_statement(one), resolve.parse_date(chain["asked_at"])):
            continue
        later = [other for n, other in said[at + 1 :]]
        if older in chain["valid"]:
            yield from ((one["text"], other["text"], 0) for other in later)
        elif later:
            best = max(later, key=lambda other: _likeness(one["text"], other["text"]))
            yield one["text"], best["text"], 1


def _statement(one: dict[str, Any]) -> resolve.Statement:
    return resolve.Statement(one["at"], one["by"], one["text"])


def _likeness(older: str, newer: str) -> float:
    found = features_of(parse_statement(newer), parse_statement(older))
    return found["stems_of_old"] + found["letters"] + 0.5 * found["awaited"] + 0.3 * found["rules"]


def rows_of(pairs: Iterator[tuple[str, str, int]], weight: float) -> list[Row]:
    return [
        (list(features_of(parse_statement(newer), parse_statement(older)).values()), label, weight)
        for older, newer, label in pairs
    ]


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def fit(rows: list[Row], rounds: int = ROUNDS, seed: int = 7) -> pair_model.PairModel:
    x = np.array([row[0] for row in rows])
    y = np.array([row[1] for row in rows], dtype=float)
    w = np.array([row[2] for row in rows])
    base = float(np.log((w @ y + 1) / (w @ (1 - y) + 1)))
    score, trees, chance = np.full(len(y), base), [], np.random.default_rng(seed)
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-score))
        taken = chance.random(len(y)) < 0.7
        columns = np.flatnonzero(chance.random(x.shape[1]) < 0.6)
        tree = _grow(x, (p - y) * w, p * (1 - p) * w, np.flatnonzero(taken), columns)
        trees.append(tree)
        score += np.array([_leaf(tree, row) for row in x])
    names = list(features_of(parse_statement("a b is 1"), parse_statement("a b is 2")))
    return pair_model.PairModel(names=names, base=round(base, 4), trees=trees)


def _leaf(tree: pair_model.Tree, row: np.ndarray) -> float:
    node = 0
    while tree.feature[node] >= 0:
        node = tree.left[node] if row[tree.feature[node]] <= tree.threshold[node] else tree.right[node]
    return tree.value[node]


def _grow(x: np.ndarray, g: np.ndarray, h: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> pair_model.Tree:
    tree = pair_model.Tree([], [], [], [], [])

    def node(inside: np.ndarray, depth: int) -> int:
        number = len(tree.feature)
        total_g, total_h = g[inside].sum(), h[inside].sum()
        for column, value in zip(
            (tree.feature, tree.threshold, tree.left, tree.right, tree.value),
            (-1, 0.0, 0, 0, round(float(-RATE * total_g / (total_h + L2)), 4)), strict=True,
        ):  # fmt: skip
            column.append(value)
        split = _best_split(x, g, h, inside, columns) if depth else None
        if split:
            column, cut = split
            tree.feature[number], tree.threshold[number] = int(column), round(float(cut), 4)
            goes_left = x[inside, column] <= tree.threshold[number]
            tree.left[number] = node(inside[goes_left], depth - 1)
            tree.right[number] = node(inside[~goes_left], depth - 1)
        return number

    node(rows, DEPTH)
    return tree


def _best_split(
    x: np.ndarray, g: np.ndarray, h: np.ndarray, inside: np.ndarray, columns: np.ndarray
) -> tuple[int, float] | None:
    total_g, total_h = g[inside].sum(), h[inside].sum()
    best, found = 1e-3, None
    for column in columns:
        values = x[inside, column]
        for cut in np.unique(values)[:-1]:
            left = values <= cut
            left_g, left_h = g[inside][left].sum(), h[inside][left].sum()
            right_g, right_h = total_g - left_g, total_h - left_h
            if left.sum() < LEAST or (~left).sum() < LEAST:
                continue
            gain = left_g**2 / (left_h + L2) + right_g**2 / (right_h + L2) - total_g**2 / (total_h + L2)
            if gain > best:
                best, found = gain, (int(column), float(cut))
    return found


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Judge = Callable[[Parsed, Parsed], bool]


def judged_by(model: pair_model.PairModel, least: float) -> Judge:
    def judge(new: Parsed, old: Parsed) -> bool:
        return model.probability(list(features_of(new, old).values())) >= least

    return judge


def figures(chains: list[dict[str, Any]], judge: Judge) -> dict[str, float]:
    right = stale = gone = lost = want = 0
    for chain in chains:
        told = set(resolve.valid_statements([_statement(s) for s in chain["statements"]], chain["asked_at"], judge))
        free = set(chain["either"]) | {n for group in chain["one_of"] for n in group}
        valid = set(chain["valid"]) - free
        ended = set(range(len(chain["statements"]))) - valid - free
        kept = sum(bool(told & set(group)) for group in chain["one_of"])
        right += (told - free == valid) and kept == len(chain["one_of"])
        stale, gone = stale + len(ended & told), gone + len(ended)
        lost += len(valid - told) + len(chain["one_of"]) - kept
        want += len(valid) + len(chain["one_of"])
    return {"right": right / len(chains), "stale": stale / max(1, gone), "lost": lost / max(1, want)}


def tell(name: str, found: dict[str, float]) -> None:
    print(f"{name:44} right {found['right']:.3f}  stale {found['stale']:.3f}  lost {found['lost']:.3f}", flush=True)


def fixed_rows() -> list[Row]:
    rows = rows_of(read_pairs(), UNTUNED)
    for chain in (c for name in TUNED_SETS for c in read_own_chains(name)):
        rows += rows_of(chain_pairs(chain), TUNED)
    return rows + [row for chain in read_cases("chains") for row in rows_of(chain_pairs(chain), TUNED)]


def cross_validate(folds: int = 6) -> None:
    """By chain, on chains the rules were not written for."""
    chains = [chain for name in UNTUNED_SETS for chain in read_own_chains(name)]
    fixed = fixed_rows()
    tell("rules alone, untuned chains", figures(chains, relations.any_rule))
    order = list(range(len(chains)))
    random.Random(3).shuffle(order)
    models = []
    for fold in range(folds):
        held = set(order[fold::folds])
        rows = [row for n, c in enumerate(chains) if n not in held for row in rows_of(chain_pairs(c), UNTUNED)]
        models.append((held, fit(fixed + rows)))
    for least in (0.3, 0.4, 0.5, 0.6):
        sums = [figures([chains[n] for n in sorted(held)], judged_by(m, least)) for held, m in models]
        tell(f"{folds}-fold, from {least}", {k: sum(s[k] for s in sums) / folds for k in sums[0]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only-write", action="store_true", help="no figures")
    given = parser.parse_args()
    if not given.only_write:
        cross_validate()
    rows = fixed_rows()
    for name in UNTUNED_SETS:
        rows += [row for chain in read_own_chains(name) for row in rows_of(chain_pairs(chain), UNTUNED)]
    model = fit(rows)
    print(f"{len(rows)} pairs, {sum(row[1] for row in rows)} of them replaced")
    if not given.only_write:
        for name in SEALED_SETS:
            tell(f"{name}, rules alone", figures(read_own_chains(name), relations.any_rule))
            tell(f"{name}, trees", figures(read_own_chains(name), judged_by(model, relations.REPLACED_FROM)))
        tell("given half, trees", figures(read_cases("chains"), judged_by(model, relations.REPLACED_FROM)))
    if given.write or given.only_write:
        pair_model.TREES.write_bytes(msgspec.json.encode(model))
        print(f"written: {pair_model.TREES.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

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
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1])]

from templates import generated  # noqa: E402

from holdfast.features.memory.validity import pair_model, relations, resolve  # noqa: E402
from holdfast.features.memory.validity.parse import Parsed, parse_statement  # noqa: E402
from tests.features.memory.corpus import read_cases, read_own_chains  # noqa: E402

ROUNDS, DEPTH, RATE, L2, LEAST = 120, 3, 0.1, 4.0, 6.0
TUNED, UNTUNED = 0.5, 1.0
"""On the chains the rules were written for they look better than they are: such pairs count less."""
TUNED_SETS = ("own_chains", "unseen_chains", "more_chains")
UNTUNED_SETS = ("domain_chains", "field_chains")
SEALED_SETS = ("sealed_chains", "sealed_voice_chains")
MADE, OUT_OF_FOLD = 0.3, 5
MIXED, LOOKED_AT, MOST_MIXED, ONE_SUBJECT = 0.1, 200, 2, 0.67
WORDING_L2, WORDING_STEPS = 1e-3, 150


class Row(msgspec.Struct):
    features: list[float]
    pieces: frozenset[int]
    label: int
    weight: float


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def features_of(new: Parsed, old: Parsed, wording: float = 0.0) -> dict[str, float]:
    return pair_model.describe_pair(
        new, old, relations.fired_rules(new, old), wording, relations.lasting_chance(new.text)
    )


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


def mixed_pairs(chains: list[dict[str, Any]], seed: int = 5) -> Iterator[tuple[str, str, int]]:
    """Statements of two chains that share a word or two: as memories of one project do, and neither replaces the other. Where much
    is shared or a rule fires, the two chains may well have one subject, so that nothing is known."""
    chance = random.Random(seed)
    said = [(n, one["text"]) for n, chain in enumerate(chains) for one in chain["statements"] if one["by"] == "user"]
    for number, text in said:
        new, taken = parse_statement(text), 0
        for other, older in chance.sample(said, min(LOOKED_AT, len(said))):
            old = parse_statement(older)
            if other == number or taken == MOST_MIXED or not relations.have_common_ground(new, old):
                continue
            if relations.LEAST_SHARED <= pair_model.shared_share(new, old) < ONE_SUBJECT and not relations.any_rule(
                new, old
            ):
                taken += 1
                yield older, text, 0


def _statement(one: dict[str, Any]) -> resolve.Statement:
    return resolve.Statement(one["at"], one["by"], one["text"])


def _likeness(older: str, newer: str) -> float:
    found = features_of(parse_statement(newer), parse_statement(older))
    return found["stems_of_old"] + found["letters"] + 0.5 * found["awaited"] + 0.3 * found["rules"]


def rows_of(pairs: Iterator[tuple[str, str, int]], weight: float) -> list[Row]:
    rows = []
    for older, newer, label in pairs:
        new, old = parse_statement(newer), parse_statement(older)
        rows.append(Row(list(features_of(new, old).values()), pair_model.wording_pieces(new, old), label, weight))
    return rows


# ── wording ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def fit_wording(rows: list[Row]) -> tuple[np.ndarray, float]:
    """Logistic regression over hashed pieces (Adam, L2)."""
    at = np.repeat(np.arange(len(rows)), [len(row.pieces) for row in rows])
    columns = np.array([piece for row in rows for piece in sorted(row.pieces)])
    y, weight = np.array([row.label for row in rows], float), np.array([row.weight for row in rows])
    w, m, v = (np.zeros(pair_model.BUCKETS + 1) for _ in range(3))
    for step in range(1, WORDING_STEPS + 1):
        z = np.bincount(at, weights=w[columns], minlength=len(rows)) + w[-1]
        error = (1 / (1 + np.exp(-z)) - y) * weight / weight.sum()
        gradient = np.append(np.bincount(columns, weights=error[at], minlength=pair_model.BUCKETS), error.sum())
        gradient += WORDING_L2 * w
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        w -= 0.05 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return w[:-1], float(w[-1])


def score_wording(rows: list[Row], weights: np.ndarray, base: float) -> list[float]:
    return [round(base + float(sum(weights[piece] for piece in row.pieces)), 1) for row in rows]


def with_wording(rows: list[Row]) -> list[Row]:
    """Each row scored by a model that has not seen it: otherwise the trees would trust the wording too much."""
    told = [0.0] * len(rows)
    for fold in range(OUT_OF_FOLD):
        held = [n for n in range(len(rows)) if n % OUT_OF_FOLD == fold]
        model = fit_wording([row for n, row in enumerate(rows) if n % OUT_OF_FOLD != fold])
        for n, score in zip(held, score_wording([rows[n] for n in held], *model), strict=True):
            told[n] = score
    return [msgspec.structs.replace(row, features=[told[n], *row.features[1:]]) for n, row in enumerate(rows)]


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def fit(rows: list[Row], rounds: int = ROUNDS, seed: int = 7) -> pair_model.PairModel:
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    wording, wording_base = fit_wording(rows)
    rows = with_wording(rows)
    x = np.array([row.features for row in rows])
    y = np.array([row.label for row in rows], dtype=float)
    w = np.array([row.weight for row in rows])
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
    thousandths = {n: round(float(weight) * 1000) for n, weight in enumerate(wording) if abs(weight) >= 0.02}
    return pair_model.PairModel(
        names=names, base=round(base, 4), trees=trees, wording=thousandths, wording_base=round(wording_base, 3)
    )


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

Judge = Callable[[Parsed, Parsed], float]


def by_rules(new: Parsed, old: Parsed) -> float:
    return 1.0 if relations.any_rule(new, old) else 0.0


def judged_by(model: pair_model.PairModel) -> Judge:
    def judge(new: Parsed, old: Parsed) -> float:
        chance = model.replaced(new, old, relations.fired_rules(new, old), relations.lasting_chance(new.text))
        return relations.weigh_replacement(new, old, chance, relations.any_rule(new, old))

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
    rows = rows_of(read_pairs(), UNTUNED) + rows_of(generated(), MADE)
    for chain in (c for name in TUNED_SETS for c in read_own_chains(name)):
        rows += rows_of(chain_pairs(chain), TUNED)
    given = read_cases("chains")
    every = [*given, *(c for name in (*TUNED_SETS, *UNTUNED_SETS) for c in read_own_chains(name))]
    rows += rows_of(mixed_pairs(every), MIXED)
    return rows + [row for chain in given for row in rows_of(chain_pairs(chain), TUNED)]


def cross_validate(folds: int = 6) -> None:
    """By chain, on chains the rules were not written for."""
    chains = [chain for name in UNTUNED_SETS for chain in read_own_chains(name)]
    fixed = fixed_rows()
    tell("rules alone, untuned chains", figures(chains, by_rules))
    order = list(range(len(chains)))
    random.Random(3).shuffle(order)
    models = []
    for fold in range(folds):
        held = set(order[fold::folds])
        rows = [row for n, c in enumerate(chains) if n not in held for row in rows_of(chain_pairs(c), UNTUNED)]
        models.append((held, fit(fixed + rows)))
    sums = [figures([chains[n] for n in sorted(held)], judged_by(m)) for held, m in models]
    tell(f"{folds}-fold", {k: sum(s[k] for s in sums) / folds for k in sums[0]})


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
    print(f"{len(rows)} pairs, {sum(row.label for row in rows)} of them replaced")
    if not given.only_write:
        for name in SEALED_SETS:
            tell(f"{name}, rules alone", figures(read_own_chains(name), by_rules))
            tell(f"{name}, trees", figures(read_own_chains(name), judged_by(model)))
        tell("given half, trees", figures(read_cases("chains"), judged_by(model)))
    if given.write or given.only_write:
        pair_model.TREES.write_bytes(msgspec.json.encode(model))
        print(f"written: {pair_model.TREES.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

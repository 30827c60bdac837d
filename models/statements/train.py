"""Trains the classifier of lasting statements: two linear models over hashed features, written as one small file.

python models/statements/train.py                 cross-validation and the held-out set
python models/statements/train.py --write         the same, then weights from everything but the held-out set
"""

import argparse
import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import data
from templates import generated

from holdfast.statements import observe
from holdfast.statements.observe import BUCKETS

_spec = importlib.util.spec_from_file_location("score", data.CORPUS / "score.py")
assert _spec and _spec.loader
score = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(score)

L2, STEPS, LEAST = 2e-4, 250, 0.05
CORPUS_WEIGHT, OWN_WEIGHT, MADE_WEIGHT, CHAIN_WEIGHT = 3.0, 0.7, 0.4, 0.5
"""The corpus is the hardest mixture at hand: our own sentences, many and plain, must not outvote it."""
TYPES = observe.TYPES


class Examples:
    """Segments as rows of feature numbers, padded; labels; weights."""

    def __init__(self, rows: list[dict[str, Any]], weight: float = 1.0) -> None:
        self.features: list[list[int]] = []
        self.labels: list[int] = []
        self.types: list[int] = []
        self.weights: list[float] = []
        for row in rows:
            self._add(row, weight * row.get("weight", 1.0))

    def _add(self, row: dict[str, Any], weight: float) -> None:
        for span in observe.spans_of(row["prompt"], row.get("context", "")):
            label, type_ = _label(row, span.text)
            if label is None:
                continue
            self.features.append(list(span.features))
            self.labels.append(label)
            self.types.append(TYPES.index(type_) if type_ in TYPES else -1)
            self.weights.append(weight)


def _label(row: dict[str, Any], text: str) -> tuple[int | None, str]:
    words = score.words(text)
    best, type_ = 0.0, ""
    for expected in row["expect"]:
        likeness = score.likeness(expected["quote"], text)
        if likeness > best:
            best, type_ = likeness, expected["type"]
    if best >= 0.6:
        return 1, type_
    inside = any(score.covered(score.words(e["quote"]), words) >= 0.8 for e in row["expect"])
    if inside or any(score.overlap(score.words(n), words) >= 0.6 for n in row.get("neutral", ())):
        return None, ""
    return (0, "") if best < 0.3 else (None, "")


def fit(parts: list[Examples]) -> tuple[np.ndarray, np.ndarray]:
    features = [f for part in parts for f in part.features]
    labels = np.array([x for part in parts for x in part.labels], dtype=np.float32)
    types = np.array([x for part in parts for x in part.types])
    weights = np.array([x for part in parts for x in part.weights], dtype=np.float32)
    lasting = _logistic(features, labels[:, None], weights)[:, 0]
    typed = np.flatnonzero(types >= 0)
    target = np.eye(len(TYPES), dtype=np.float32)[types[typed]]
    kinds = _logistic([features[n] for n in typed], target, weights[typed])
    return lasting, kinds


def _logistic(features: list[list[int]], target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One-against-rest, gradient steps scaled per feature (Adam), L2."""
    rows = np.repeat(np.arange(len(features)), [len(f) for f in features])
    columns = np.concatenate([np.array(f) for f in features])
    out = np.zeros((BUCKETS, target.shape[1]), dtype=np.float32)
    total = weights.sum()
    for k in range(target.shape[1]):
        w = np.zeros(BUCKETS, dtype=np.float64)
        m, v = np.zeros(BUCKETS), np.zeros(BUCKETS)
        for step in range(1, STEPS + 1):
            z = np.bincount(rows, weights=w[columns], minlength=len(features))
            error = (1 / (1 + np.exp(-z)) - target[:, k]) * weights / total
            gradient = np.bincount(columns, weights=error[rows], minlength=BUCKETS) + L2 * w
            m = 0.9 * m + 0.1 * gradient
            v = 0.999 * v + 0.001 * gradient**2
            w -= 0.05 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        out[:, k] = w
    return out


def predictions(rows: list[dict[str, Any]], model: observe.Classifier) -> dict[str, Any]:
    """Everything with at least a small chance; thresholds are tried on it afterwards."""
    return {
        row["id"]: [
            {"type": o.type, "text": o.text, "p": o.probability}
            for o in observe.observe_prompt(row["prompt"], row.get("context", ""), model, LEAST)
        ]
        for row in rows
    }


def above(said: dict[str, Any], least: float) -> dict[str, Any]:
    return {identity: {"remembered": [one for one in found if one["p"] >= least]} for identity, found in said.items()}


def figures(rows: list[dict[str, Any]], said: dict[str, Any]) -> dict[str, float]:
    hits = found = expected = clean = empty = kindred = 0
    for row in rows:
        mine = [
            f
            for f in said[row["id"]]["remembered"]
            if not any(score.overlap(score.words(n), score.words(f["text"])) >= 0.6 for n in row.get("neutral", ()))
        ]
        pairs = score.matched(row["expect"], mine, row.get("context", ""))
        hits, found, expected = hits + len(pairs), found + len(mine), expected + len(row["expect"])
        kindred += sum(
            score.KINDRED.get(row["expect"][i]["type"]) == score.KINDRED.get(mine[j]["type"]) for i, j in pairs
        )
        if not row["expect"]:
            empty, clean = empty + 1, clean + (not mine)
    return {
        "precision": hits / max(1, found),
        "recall": hits / max(1, expected),
        "clean": clean / max(1, empty),
        "kindred": kindred / max(1, hits),
    }


def report(name: str, rows: list[dict[str, Any]], said: dict[str, Any]) -> None:
    print(name)
    for least in (0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
        f = figures(rows, above(said, least))
        print(
            f"   {least:.2f} precision {f['precision']:.3f} recall {f['recall']:.3f} clean {f['clean']:.3f} kindred {f['kindred']:.2f}",
            flush=True,
        )


def evaluate(name: str, rows: list[dict[str, Any]], model: observe.Classifier) -> None:
    report(name, rows, predictions(rows, model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only-write", action="store_true", help="no figures")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--save", default="", help="write the cross-validated predictions here")
    given = parser.parse_args()
    corpus, held = data.read_corpus(), data.read_markup(data.CORPUS / "unseen_statements.txt", "h")
    own = data.read_markup(data.FOLDER / "positive.txt", "p") + data.read_markup(data.FOLDER / "negative.txt", "n")
    own += data.read_markup(data.CORPUS / "own_statements.txt", "o")
    own += data.read_markup(data.CORPUS / "domain_statements.txt", "d")
    own += data.read_markup(data.CORPUS / "field_statements.txt", "f")
    own += data.read_markup(data.CORPUS / "voice_statements.txt", "v")
    made = generated(seed=11)
    own_part, made_part = Examples(own + data.own_chain_rows(), OWN_WEIGHT), Examples(made, MADE_WEIGHT)
    chain_part = Examples(data.chain_rows(), CHAIN_WEIGHT)
    print(f"own {len(own)} made {len(made)} segments {len(own_part.labels)} {len(made_part.labels)}")
    if not given.only_write:
        model = _quantised(*fit([own_part, made_part]))
        evaluate("own only -> corpus", corpus, model)
        evaluate("own only -> held-out", held, model)
    random.Random(5).shuffle(corpus)
    said: dict[str, Any] = {}
    for fold in range(0 if given.only_write else given.folds):
        test = corpus[fold :: given.folds]
        train = [row for n, row in enumerate(corpus) if n % given.folds != fold]
        model = _quantised(*fit([Examples(train, CORPUS_WEIGHT), own_part, made_part]))
        said |= predictions(test, model)
    if said:
        report(f"{given.folds}-fold corpus", corpus, said)
    everything = [Examples(corpus, CORPUS_WEIGHT), own_part, made_part, chain_part]
    model = _quantised(*fit(everything))
    evaluate("all -> held-out", held, model)
    if given.save:
        Path(given.save).write_text(
            "".join(json.dumps({"id": i, "remembered": r}, ensure_ascii=False) + "\n" for i, r in said.items()), "utf-8"
        )
    if given.write or given.only_write:
        observe.WEIGHTS.write_bytes(model.encode())
        print(f"written: {observe.WEIGHTS.stat().st_size:,} bytes")


def _quantised(lasting: np.ndarray, kinds: np.ndarray) -> observe.Classifier:
    scale = float(np.abs(lasting).max() / 127) or 1.0
    type_scale = float(np.abs(kinds).max() / 127) or 1.0
    return observe.Classifier(
        np.round(lasting / scale).astype(np.int8).tobytes(), scale,
        [np.round(kinds[:, k] / type_scale).astype(np.int8).tobytes() for k in range(kinds.shape[1])], type_scale,
    )  # fmt: skip


if __name__ == "__main__":
    main()

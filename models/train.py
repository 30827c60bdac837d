"""Trains the search model: `python models/train.py PAIRS.jsonl… FOLDER`. CPU is enough; needs torch, the product does not.

A text's vector is Σ (1 + log tf)·E[word] / √Σ (1 + log tf); a function's is that of its body, its name and its path, each
with a learned factor; a question has a table of its own. The loss is contrastive: in a batch, the right function among all
others. Batches are made of blocks from one package, so that the others are near.
"""

import argparse
import hashlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from holdfast.search import tokenize
from holdfast.search.static import FIELDS, pieces

PARTS = ("q", "b", "n", "p")
MOST_WORDS = 300
SHARPEST = 17.0
"""Left to itself the loss grows ever surer of the pairs it has seen, and worse at others (0.723 against 0.743 held out)."""


def lines(paths: Iterable[Path], left_out: set[str]) -> Iterator[dict]:
    for path in paths:
        with path.open() as file:
            for line in file:
                one = json.loads(line)
                if one["k"] not in left_out:
                    yield one


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def vocabulary(pairs: Iterable[dict], size: int) -> list[str]:
    """By the number of pairs a word is in; a word of a question counts more than one of code."""
    found: Counter[str] = Counter()
    for one in pairs:
        found.update(tokenize.counted(one["b"]).keys())
        for part, weight in (("q", 3), ("n", 1)):
            for word in tokenize.counted(one[part]):
                found[word] += weight
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
    common = [
        w
        for w, n in found.most_common(size * 2)
        if (w.isascii() and 1 < len(w) <= 24 and not w.isdigit()) or w in "0123456789"
    ]
    return list(dict.fromkeys([*letters, *common]))[:size]


class Ragged:
    """Rows of (word, weight), end to end."""

    def __init__(self, rows: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.starts = np.concatenate([[0], np.cumsum([len(ids) for ids, _ in rows])])
        self.ids = np.concatenate([ids for ids, _ in rows]) if rows else np.zeros(0, np.int32)
        self.weights = np.concatenate([weights for _, weights in rows]) if rows else np.zeros(0, np.float32)

    def take(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        sizes = self.starts[rows + 1] - self.starts[rows]
        where = np.repeat(self.starts[rows] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(
            sizes.sum()
        )
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return (
            torch.from_numpy(self.ids[where].astype(np.int64)),
            torch.from_numpy(self.weights[where]),
            torch.from_numpy(offsets),
        )


def encoded(
    text: str, known: dict[str, int], longest: int, cache: dict[str, list[int]]
) -> tuple[np.ndarray, np.ndarray]:
    counts: dict[int, int] = {}
    for word, times in tokenize.counted(text).items():
        if (ids := cache.get(word)) is None:
            ids = cache[word] = pieces(word, known, longest)
        for number in ids:
            counts[number] = counts.get(number, 0) + times
    kept = list(counts.items())[:MOST_WORDS]
    ids_ = np.array([n for n, _ in kept], np.int32)
    weights = np.array([1 + math.log(t) for _, t in kept], np.float32)
    return ids_, weights / math.sqrt(max(float(weights.sum()), 1e-9))


def encode(pairs: Iterable[dict], known: dict[str, int]) -> tuple[dict[str, Ragged], list[str]]:
    longest, cache = max(map(len, known)), {}
    rows: dict[str, list] = {part: [] for part in PARTS}
    packages = []
    for one in pairs:
        made = {part: encoded(one[part], known, longest, cache) for part in PARTS}
        if len(made["q"][0]) >= 2 and len(made["b"][0]) >= 3:
            for part in PARTS:
                rows[part].append(made[part])
            packages.append(f"{one['g']}/{one['k']}")
    return {part: Ragged(rows[part]) for part in PARTS}, packages


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Model(nn.Module):
    def __init__(self, size: int, dims: int) -> None:
        super().__init__()
        self.documents = nn.EmbeddingBag(size, dims, mode="sum")
        self.queries = nn.EmbeddingBag(size, dims, mode="sum")
        nn.init.normal_(self.documents.weight, std=0.05)
        self.queries.weight.data.copy_(self.documents.weight.data)
        self.factors = nn.Parameter(torch.tensor([1.0, 1.0, 0.3]))
        self.sharpness = nn.Parameter(torch.tensor(math.log(10.0)))

    def query(self, bag: tuple) -> torch.Tensor:
        return F.normalize(self.queries(bag[0], bag[2], bag[1]), dim=1)

    def document(self, bags: list[tuple]) -> torch.Tensor:
        total = sum(self.factors[n] * self.documents(bag[0], bag[2], bag[1]) for n, bag in enumerate(bags))
        return F.normalize(total, dim=1)


def batches(packages: list[str], size: int, block: int, rng: random.Random) -> Iterator[np.ndarray]:
    by_package: dict[str, list[int]] = {}
    for number, package in enumerate(packages):
        by_package.setdefault(package, []).append(number)
    blocks: list[list[int]] = []
    for members in by_package.values():
        rng.shuffle(members)
        blocks += [members[at : at + block] for at in range(0, len(members), block)]
    rng.shuffle(blocks)
    flat = [n for one in blocks for n in one]
    for at in range(0, len(flat) - size // 2, size):
        yield np.array(flat[at : at + size])


def train(model: Model, data: dict[str, Ragged], packages: list[str], options: argparse.Namespace) -> None:
    rng = random.Random(options.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate, betas=(0.9, 0.98))
    steps = options.epochs * (len(packages) // options.batch)
    step, began, shown = 0, time.time(), 0.0
    for epoch in range(options.epochs):
        for rows in batches(packages, options.batch, options.block, rng):
            for group in optimizer.param_groups:
                group["lr"] = options.rate * min(1.0, (step + 1) / 50) * max(0.05, 1 - step / max(steps, 1))
            loss = _loss(model, data, rows, options)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step, shown = step + 1, 0.98 * shown + 0.02 * float(loss)
            if step % 100 == 0:
                print(
                    f"epoch {epoch} step {step}/{steps} loss {shown / (1 - 0.98**step):.3f} {time.time() - began:.0f} s",
                    flush=True,
                )


def _loss(model: Model, data: dict[str, Ragged], rows: np.ndarray, options: argparse.Namespace) -> torch.Tensor:
    query = model.query(_dropped(data["q"].take(rows), options.drop))
    document = model.document([_dropped(data[part].take(rows), options.drop) for part in ("b", "n", "p")])
    scores = query @ document.T * model.sharpness.exp().clamp(max=SHARPEST)
    right = torch.arange(len(rows))
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


def _dropped(bag: tuple, share: float) -> tuple:
    if not share:
        return bag
    kept = (torch.rand(len(bag[1])) >= share).float() / (1 - share)
    return bag[0], bag[1] * kept, bag[2]


# ── writing it down ──────────────────────────────────────────────────────────────────────────────────────────────────


def write(model: Model, known: list[str], folder: Path, about: dict) -> None:
    """The id ends in a digest of the weights: vectors of two trainings are never taken for one another's."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b(digest_size=4)
    for name, table in (("documents", model.documents), ("queries", model.queries)):
        rows = table.weight.detach().numpy()
        scales = np.maximum(np.abs(rows).max(axis=1), 1e-9).astype(np.float32) / 127
        small = np.rint(rows / scales[:, None]).astype(np.int8)
        digest.update(small.tobytes())
        np.save(folder / f"{name}.npy", small)
        np.save(folder / f"{name}-scales.npy", scales)
    (folder / "words.txt").write_text("\n".join(known), "utf-8")
    factors = dict(zip(FIELDS, (float(f) for f in model.factors.detach()), strict=True))
    told = {**about, "id": f"{about['id']}-{digest.hexdigest()}", "factors": factors}
    (folder / "about.json").write_text(json.dumps(told, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="+", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--id", default="holdfast-code-1")
    parser.add_argument("--words", type=int, default=36_000)
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--block", type=int, default=512)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--drop", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--leave-out", type=Path, help="a file of package names that are kept for measuring")
    options = parser.parse_args()
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    left_out = set(options.leave_out.read_text().split()) if options.leave_out else set()
    known = vocabulary(lines(options.pairs, left_out), options.words)
    data, packages = encode(lines(options.pairs, left_out), {w: n for n, w in enumerate(known)})
    print(f"{len(packages)} pairs of {len(set(packages))} packages, {len(known)} words", flush=True)
    model = Model(len(known), options.dims)
    train(model, data, packages, options)
    about = {
        "id": options.id,
        "dims": options.dims,
        "words": len(known),
        "pairs": len(packages),
        "packages": len(set(packages)),
    }
    write(model, known, options.folder, about)


if __name__ == "__main__":
    main()

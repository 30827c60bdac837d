"""Trains the search model: `python training/train.py PAIRS.jsonl… FOLDER`. A GPU makes it minutes; needs torch, the product does not.

A text's vector is Σ (1 + log tf)·E[word] / √Σ (1 + log tf); a function's is that of its body, its name and its path, each
with a learned factor; a question has a table of its own. The loss is contrastive: in a batch, the right function among all
others. Batches are made of blocks from one package, so that the others are near. Words of a question are now and then
replaced by words of like meaning (`src/holdfast/analysis/search/everyday`), so that people need not use the author's own words.
"""

import argparse
import gzip
import hashlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from holdfast.analysis.search.static_model import FIELDS, split_word_pieces
from holdfast.analysis.search.tokens import count_words

PARTS = ("q", "b", "n", "p")
MOST_WORDS = 300
MOST_ALIKE = 6
HELD_OUT = 40
"""One package in so many is kept for measuring."""

Pair = dict[str, str]
Bag = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def read_pairs(paths: Iterable[Path], left_out: set[str]) -> Iterator[Pair]:
    for path in paths:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            for line in file:
                one = json.loads(line)
                if one["k"] not in left_out:
                    yield one


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def vocabulary(pairs: Iterable[Pair], size: int) -> list[str]:
    """By the number of pairs a word is in; a word of a question counts more than one of code."""
    found: Counter[str] = Counter()
    for one in pairs:
        found.update(count_words(one["b"]).keys())
        for part, weight in (("q", 3), ("n", 1)):
            for word in count_words(one[part]):
                found[word] += weight
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
    common = [
        w
        for w, _ in found.most_common(size * 2)
        if (w.isascii() and 1 < len(w) <= 24 and not w.isdigit()) or w in "0123456789"
    ]
    return list(dict.fromkeys([*letters, *common]))[:size]


def encode_one(
    text: str, known: dict[str, int], longest: int, cache: dict[str, list[int]]
) -> tuple[list[int], list[int]]:
    counts: dict[int, int] = {}
    for word, times in count_words(text).items():
        if (ids := cache.get(word)) is None:
            ids = cache[word] = split_word_pieces(word, known, longest)
        for number in ids:
            counts[number] = counts.get(number, 0) + times
    kept = list(counts.items())[:MOST_WORDS]
    return [n for n, _ in kept], [t for _, t in kept]


def encode_batch(known: dict[str, int], batch: list[Pair]) -> list[tuple[str, dict[str, tuple[list[int], list[int]]]]]:
    longest, cache = max(map(len, known)), {}
    made = [
        (f"{one['g']}/{one['k']}", {part: encode_one(one[part], known, longest, cache) for part in PARTS})
        for one in batch
    ]
    return [one for one in made if len(one[1]["q"][0]) >= 2 and len(one[1]["b"][0]) >= 3]


class Ragged:
    """Rows of (word, weight), end to end, on the device."""

    def __init__(self, rows: list[tuple[list[int], list[int]]], device: str) -> None:
        sizes = np.array([len(ids) for ids, _ in rows])
        self.starts = torch.tensor(np.concatenate([[0], np.cumsum(sizes)]), device=device)
        self.ids = torch.tensor(np.concatenate([np.array(ids, np.int64) for ids, _ in rows]), device=device)
        weights = (
            np.concatenate([1 + np.log(np.array(t, np.float32)) for _, t in rows]) if rows else np.zeros(0, np.float32)
        )
        self.weights = torch.tensor(weights, dtype=torch.float32, device=device)

    def take(self, rows: torch.Tensor) -> Bag:
        sizes = self.starts[rows + 1] - self.starts[rows]
        offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)[:-1]])
        where = torch.repeat_interleave(self.starts[rows] - offsets, sizes) + torch.arange(
            int(sizes.sum()), device=rows.device
        )
        return self.ids[where], self.weights[where], offsets


def encode(pairs: list[Pair], known: dict[str, int], device: str, jobs: int) -> tuple[dict[str, Ragged], list[str]]:
    batches = [pairs[at : at + 5_000] for at in range(0, len(pairs), 5_000)]
    with ProcessPoolExecutor(jobs) as pool:
        made = [one for batch in pool.map(partial(encode_batch, known), batches) for one in batch]
    return {part: Ragged([rows[part] for _, rows in made], device) for part in PARTS}, [package for package, _ in made]


def alike(known: list[str], folder: Path, device: str) -> torch.Tensor:
    """For each word those of like meaning, by the table of everyday words; itself where there are none."""
    stems = (folder / "words.txt").read_text("utf-8").split("\n")
    rows = np.load(folder / "words.npy").astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    by_word = {word: n for n, word in enumerate(known)}
    likeness = rows @ rows.T
    table = np.tile(np.arange(len(known))[:, None], (1, MOST_ALIKE))
    for number, stem in enumerate(stems):
        forms = [
            by_word[form]
            for form in (stem, stem + "s", stem + "ed", stem + "ing", stem + "e", stem + "es")
            if form in by_word
        ]
        near = [m for m in np.argsort(-likeness[number])[1 : MOST_ALIKE + 6] if likeness[number, m] > 0.5]
        others = [by_word[stems[m]] for m in near if stems[m] in by_word][:MOST_ALIKE]
        if others:
            for form in forms:
                table[form] = np.resize(others, MOST_ALIKE)
    return torch.tensor(table, device=device)


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

    def load(self, folder: Path) -> None:
        for name, table in (("documents", self.documents), ("queries", self.queries)):
            rows = np.load(folder / f"{name}.npy").astype(np.float32) * np.load(folder / f"{name}-scales.npy")[:, None]
            table.weight.data.copy_(torch.tensor(rows))
        about = json.loads((folder / "about.json").read_text())
        self.factors.data.copy_(torch.tensor([about["factors"][field] for field in FIELDS]))
        self.sharpness.data.fill_(math.log(17.0))

    def query(self, bag: Bag) -> torch.Tensor:
        return F.normalize(self.queries(bag[0], bag[2], bag[1]), dim=1)

    def document(self, bags: list[Bag]) -> torch.Tensor:
        """Each field by itself over the root of its weights, then added."""
        total = torch.zeros((), device=bags[0][1].device)
        for number, bag in enumerate(bags):
            total = total + self.factors[number] * self.documents(bag[0], bag[2], bag[1])
        return F.normalize(total, dim=1)


def rooted(bag: Bag, rows: int) -> Bag:
    """Weights over the root of their sum in each row."""
    ids, weights, offsets = bag
    row = torch.zeros(len(ids), dtype=torch.long, device=ids.device)
    row[offsets[offsets < len(ids)][1:]] = 1
    row = torch.bucketize(torch.arange(len(ids), device=ids.device), offsets, right=True) - 1
    sums = torch.zeros(rows, device=ids.device).index_add_(0, row, weights)
    return ids, weights / sums.clamp(min=1e-9).sqrt()[row], offsets


def batches(packages: list[str], rows: list[int], size: int, block: int, rng: random.Random) -> Iterator[list[int]]:
    by_package: dict[str, list[int]] = {}
    for number in rows:
        by_package.setdefault(packages[number], []).append(number)
    blocks: list[list[int]] = []
    for members in by_package.values():
        rng.shuffle(members)
        blocks += [members[at : at + block] for at in range(0, len(members), block)]
    rng.shuffle(blocks)
    flat = [n for one in blocks for n in one]
    for at in range(0, len(flat) - size // 2, size):
        yield flat[at : at + size]


class Training:
    def __init__(
        self, model: Model, data: dict[str, Ragged], packages: list[str], near: torch.Tensor | None, options: Any
    ) -> None:
        self.model, self.data, self.packages, self.near, self.options = model, data, packages, near, options
        held = {
            p for p in set(packages) if int(hashlib.blake2b(p.encode(), digest_size=4).hexdigest(), 16) % HELD_OUT == 0
        }
        self.learnt = [n for n, p in enumerate(packages) if p not in held or options.all]
        self.held = [n for n, p in enumerate(packages) if p in held]
        self.device = next(model.parameters()).device

    def run(self) -> None:
        options, rng = self.options, random.Random(self.options.seed)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=options.rate, betas=(0.9, 0.98))
        steps = options.epochs * max(1, len(self.learnt) // options.batch)
        step, began, shown = 0, time.time(), 0.0
        print(f"held out before: {self.measure():.4f}", flush=True)
        for epoch in range(options.epochs):
            for rows in batches(self.packages, self.learnt, options.batch, options.block, rng):
                for group in optimizer.param_groups:
                    group["lr"] = options.rate * min(1.0, (step + 1) / 50) * max(0.05, 1 - step / max(steps, 1))
                loss = self._loss(torch.tensor(rows, device=self.device))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                step, shown = step + 1, float(loss.detach())
            print(
                f"epoch {epoch} loss {shown:.3f} held out {self.measure():.4f} {time.time() - began:.0f} s", flush=True
            )

    def _loss(self, rows: torch.Tensor) -> torch.Tensor:
        drop = self.options.drop
        query = self.model.query(rooted(self._replaced(dropped(self.data["q"].take(rows), drop)), len(rows)))
        document = self._document(rows, drop)
        scores = query @ document.T * self.model.sharpness.exp().clamp(max=self.options.sharpest)
        right = torch.arange(len(rows), device=self.device)
        return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2

    def _document(self, rows: torch.Tensor, drop: float) -> torch.Tensor:
        return self.model.document([rooted(dropped(self.data[p].take(rows), drop), len(rows)) for p in ("b", "n", "p")])

    def _replaced(self, bag: Bag) -> Bag:
        """Now and then another word of like meaning."""
        if self.near is None or not self.options.alike:
            return bag
        ids, weights, offsets = bag
        chosen = torch.rand(len(ids), device=ids.device) < self.options.alike
        other = self.near[ids, torch.randint(0, MOST_ALIKE, (len(ids),), device=ids.device)]
        return torch.where(chosen, other, ids), weights, offsets

    @torch.no_grad()
    def measure(self) -> float:
        """Mean reciprocal rank among the pairs of the same package, over packages that were held back."""
        by_package: dict[str, list[int]] = {}
        for number in self.held:
            by_package.setdefault(self.packages[number], []).append(number)
        found: list[float] = []
        for members in by_package.values():
            rows = torch.tensor(members[:1000], device=self.device)
            if len(rows) < 30:
                continue
            scores = self.model.query(rooted(self.data["q"].take(rows), len(rows))) @ self._document(rows, 0.0).T
            ranks = (scores >= scores.diagonal()[:, None]).sum(1)
            found.append(float((1.0 / ranks.float()).mean()))
        return sum(found) / max(1, len(found))


def dropped(bag: Bag, share: float) -> Bag:
    if not share:
        return bag
    kept = (torch.rand(len(bag[1]), device=bag[1].device) >= share).float()
    return bag[0], bag[1] * kept, bag[2]


# ── writing it down ──────────────────────────────────────────────────────────────────────────────────────────────────


def write(model: Model, known: list[str], folder: Path, about: dict[str, Any]) -> None:
    """The id ends in a digest of the weights: vectors of two trainings are never taken for one another's."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b(digest_size=4)
    for name, table in (("documents", model.documents), ("queries", model.queries)):
        rows = table.weight.detach().cpu().numpy()
        scales = np.maximum(np.abs(rows).max(axis=1), 1e-9).astype(np.float32) / 127
        small = np.rint(rows / scales[:, None]).astype(np.int8)
        digest.update(small.tobytes())
        np.save(folder / f"{name}.npy", small)
        np.save(folder / f"{name}-scales.npy", scales)
    (folder / "words.txt").write_text("\n".join(known), "utf-8")
    factors = dict(zip(FIELDS, (float(f) for f in model.factors.detach()), strict=True))
    told = {**about, "id": f"{about['id']}-{digest.hexdigest()}", "factors": factors}
    (folder / "about.json").write_text(json.dumps(told, indent=1) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="+", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--id", default="holdfast-code-2")
    parser.add_argument("--words", type=int, default=36_000)
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--block", type=int, default=512)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--drop", type=float, default=0.05)
    parser.add_argument("--alike", type=float, default=0.15, help="share of a question's words replaced by like ones")
    parser.add_argument("--sharpest", type=float, default=17.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--start", type=Path, help="a model to go on from, with its words")
    parser.add_argument("--everyday", type=Path, default=Path("src/holdfast/analysis/search/everyday"))
    parser.add_argument("--all", action="store_true", help="learn from the packages kept for measuring, too")
    parser.add_argument("--leave-out", type=Path, help="a file of package names that are not learnt from")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    left_out = set(options.leave_out.read_text().split()) if options.leave_out else set()
    pairs = list(read_pairs(options.pairs, left_out))
    known = (
        (options.start / "words.txt").read_text("utf-8").split("\n")
        if options.start
        else vocabulary(pairs, options.words)
    )
    data, packages = encode(pairs, {w: n for n, w in enumerate(known)}, options.device, options.jobs)
    print(f"{len(packages)} pairs of {len(set(packages))} packages, {len(known)} words", flush=True)
    model = Model(len(known), options.dims)
    if options.start:
        model.load(options.start)
    model.to(options.device)
    Training(model, data, packages, alike(known, options.everyday, options.device), options).run()
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

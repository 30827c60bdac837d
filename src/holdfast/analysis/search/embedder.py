"""What turns text into vectors: our own static model, or an endpoint of the user's."""

import json
import math
import os
import urllib.request
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import apsw
import msgspec

from holdfast.analysis.search.query import find_identifiers, identifier_parts
from holdfast.analysis.search.settings import BUILTIN, OFF, IndexSettings

# The port to whatever turns text into vectors, and the choice among those by the settings.

if TYPE_CHECKING:
    import numpy as np


class Passage(msgspec.Struct, frozen=True):
    """What is known of a piece of text. A model may weigh its name and its path apart from its body."""

    body: str
    name: str = ""
    path: str = ""


class Embedder(Protocol):
    id: str
    """Vectors of one id can be compared with one another, and with no others."""

    def documents(self, passages: Sequence[Passage]) -> "np.ndarray":
        """One row of length 1 for each, float32."""
        ...

    def query(self, text: str) -> "np.ndarray": ...


class NoEmbedder(Exception):
    """Why there are no vectors: full text answers alone and says this."""


def choose_embedder(settings: IndexSettings) -> Embedder:
    """Raises NoEmbedder, with the reason, where there is none."""
    if settings.embedder == OFF:
        raise NoEmbedder("embeddings are switched off")
    if settings.embedder == BUILTIN:
        return load_model()
    return _make_endpoint(settings, settings.model)


def _make_endpoint(settings: IndexSettings, model: str) -> Embedder:
    try:
        # Said here, with a reason, instead of failing in the middle of a run.
        import numpy  # noqa: F401
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None

    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    return Endpoint(settings.embedder, model, key)


def embedder_of(id_: str, settings: IndexSettings) -> tuple[Embedder, str]:
    """(who made the vectors of this id, what to say of it). While another model takes over, the old one answers.

    An address that is no longer in the settings is asked nothing any more: its vectors answer no questions.
    """
    configured = choose_embedder(settings)
    if configured.id == id_:
        return configured, ""

    if id_ and id_ == id_of():
        return load_model(), _meanwhile_note(configured.id, id_)
    # An endpoint's id is its address, "#" and the model.
    address, _, model = configured.id.partition("#")
    if model and id_.startswith(f"{address}#"):
        return _make_endpoint(settings, id_.removeprefix(f"{address}#")), _meanwhile_note(configured.id, id_)
    raise NoEmbedder(f"vectors of {configured.id} are not there yet")


def _meanwhile_note(configured_id: str, answering: str) -> str:
    return f"vectors of {configured_id} are not there yet, those of {answering} answer until then"


# An embedding endpoint in OpenAI's manner (Ollama, LM Studio, vLLM, …), for those who have one and say so.

# Texts of one request, and characters of each.
TEXTS_PER_REQUEST = 32
LONGEST_TEXT = 6_000
PATIENCE_S, SHORT_PATIENCE_S = 60.0, 5.0
"""For documents, which nobody waits for, and for a question."""


class Endpoint:
    def __init__(self, url: str, model: str, key: str = "") -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise NoEmbedder(f"{url} is not an http address")
        # Given with or without the path of the method.
        self._url = url.rstrip("/").removesuffix("/embeddings") + "/embeddings"
        self._model, self._key = model, key
        self.id = f"{self._url}#{model}"

    def documents(self, passages: Sequence[Passage]) -> Any:
        import numpy as np

        texts = [f"{p.path} {p.name}\n{p.body}"[:LONGEST_TEXT] for p in passages]
        rows = [
            row
            for at in range(0, len(texts), TEXTS_PER_REQUEST)
            for row in self._request_vectors(texts[at : at + TEXTS_PER_REQUEST], PATIENCE_S)
        ]
        return _normalize_rows(np.array(rows, dtype=np.float32))

    def query(self, text: str) -> Any:
        import numpy as np

        return _normalize_rows(
            np.array(self._request_vectors([text[:LONGEST_TEXT]], SHORT_PATIENCE_S), dtype=np.float32)
        )[0]

    def _request_vectors(self, texts: list[str], patience: float) -> list[list[float]]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        body = json.dumps({"model": self._model, "input": texts}).encode()
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - only http(s), checked above
        try:
            with urllib.request.urlopen(request, timeout=patience) as answer:  # noqa: S310
                response = json.load(answer)
            # By `index`, because an answer may come in another order.
            rows = [row["embedding"] for row in sorted(response["data"], key=lambda row: row.get("index", 0))]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NoEmbedder(f"{self._url} does not answer: {error}") from None
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
            raise NoEmbedder(f"{self._url} gave {len(rows)} vectors for {len(texts)} texts")
        return rows


def _normalize_rows(rows: Any) -> Any:
    import numpy as np

    # A row of zeros stays one instead of becoming NaN.
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)


# Our own small model: a vector is a weighted sum over words. Two tables, numpy, no program, no download.

FOLDER = Path(__file__).with_name("model")
FIELDS = ("body", "name", "path")
BATCH = 512
MOST_WORDS = 4_000
"""Distinct words of one passage that are looked at."""
MOST_COMPARED = 8_000
"""Of the vocabulary, the commonest, when one word is compared with the others."""


def id_of(folder: Path = FOLDER) -> str:
    """Of the model that lies there, without loading it; empty where there is none."""
    try:
        return str(msgspec.json.decode((folder / "about.json").read_bytes())["id"])
    except (OSError, KeyError, TypeError, msgspec.DecodeError):
        return ""


@lru_cache(maxsize=2)
def load_model(folder: Path = FOLDER) -> "StaticModel":
    try:
        import numpy as np
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None
    try:
        return StaticModel(folder, np)
    except (OSError, ValueError, KeyError, msgspec.DecodeError) as error:
        raise NoEmbedder(f"the search model cannot be read: {error}") from None


class StaticModel:
    def __init__(self, folder: Path, np: Any) -> None:
        self._np = np
        about = msgspec.json.decode((folder / "about.json").read_bytes())
        self.id: str = about["id"]
        self.dims: int = about["dims"]
        self._factors = [float(about["factors"][field]) for field in FIELDS]
        self._spelled = (folder / "words.txt").read_text("utf-8").split("\n")
        self._known = {word: n for n, word in enumerate(self._spelled)}
        self._longest = max(map(len, self._known))
        self._documents = _Table(folder, "documents", np)
        self._queries = _Table(folder, "queries", np)
        self._ids: dict[str, tuple[int, ...]] = {}

    def documents(self, passages: Sequence[Passage]) -> Any:
        parts = [self._batch(passages[at : at + BATCH]) for at in range(0, len(passages), BATCH)]
        # The dimensions must fit even where there is nothing to embed.
        return self._np.concatenate(parts) if parts else self._np.zeros((0, self.dims), "float32")

    def query(self, text: str) -> Any:
        token_counts = self._counted([text])
        if not token_counts:
            return self._np.zeros(self.dims, "float32")
        return self._unit(self._queries.sums([token_counts]))[0]

    def like(self, word: str, least: float, most: int) -> list[tuple[str, float]]:
        """Words that questions use alike, the likest first; none for a word it does not know as a whole."""
        number = self._known.get(word)
        if number is None:
            return []
        likeness = self._queries.likeness(number, MOST_COMPARED)
        near = self._np.flatnonzero(likeness > least)
        # Equal likeness keeps the order of the vocabulary, the commoner word first.
        top = near[self._np.argsort(-likeness[near], kind="stable")][:most]
        return [(self._spelled[n], float(likeness[n])) for n in top]

    def _batch(self, passages: Sequence[Passage]) -> Any:
        total = self._np.zeros((len(passages), self.dims), "float32")
        for field, factor in zip(FIELDS, self._factors, strict=True):
            counts = [self._counted([getattr(passage, field)]) for passage in passages]
            rows = [n for n, token_counts in enumerate(counts) if token_counts]
            if rows:
                total[rows] += factor * self._documents.sums([counts[n] for n in rows])
        return self._unit(total)

    def _unit(self, rows: Any) -> Any:
        lengths = self._np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / self._np.maximum(lengths, 1e-9)

    def _counted(self, texts: Iterable[str]) -> dict[int, int]:
        token_counts: dict[int, int] = {}
        for text in texts:
            for identifier, times in Counter(find_identifiers(text)).items():
                for number in self._numbers(identifier):
                    token_counts[number] = token_counts.get(number, 0) + times
        return token_counts if len(token_counts) <= MOST_WORDS else dict(list(token_counts.items())[:MOST_WORDS])

    def _numbers(self, identifier: str) -> tuple[int, ...]:
        token_ids = self._ids.get(identifier)
        if token_ids is None:
            token_ids = tuple(n for part in identifier_parts(identifier) for n in self._pieces(part))
            # A cap on memory: identifiers of a huge repository are mostly seen once.
            if len(self._ids) > 500_000:
                self._ids.clear()
            self._ids[identifier] = token_ids
        return token_ids

    def _pieces(self, word: str) -> list[int]:
        """A word nobody knew is cut into the longest pieces that are known."""
        return split_word_pieces(word, self._known, self._longest)


def split_word_pieces(word: str, token_table: dict[str, int], longest: int) -> list[int]:
    if (whole := token_table.get(word)) is not None:
        return [whole]
    token_ids, at = [], 0
    while at < len(word):
        for end in range(min(len(word), at + longest), at, -1):
            if (number := token_table.get(word[at:end])) is not None:
                token_ids.append(number)
                at = end
                break
        else:
            at += 1
    return token_ids


class _Table:
    """Rows of int8, each with its scale; read from the disk as they are needed."""

    def __init__(self, folder: Path, name: str, np: Any) -> None:
        self._np = np
        # Only the rows that a question needs are read from the disk.
        self._rows = np.load(folder / f"{name}.npy", mmap_mode="r")
        self._scales = np.load(folder / f"{name}-scales.npy")

    def sums(self, counts: Sequence[dict[int, int]]) -> Any:
        """For each: Σ (1 + log tf)·row / √Σ (1 + log tf)."""
        np = self._np
        numbers = np.fromiter((n for token_counts in counts for n in token_counts), dtype=np.int64)
        weights = np.fromiter(
            (1.0 + math.log(t) for token_counts in counts for t in token_counts.values()), dtype=np.float32
        )
        # `reduceat` sums from each start to the next; empty groups would break it, so callers leave them out.
        starts = np.cumsum([0, *(len(token_counts) for token_counts in counts[:-1])])
        rows = self._rows[numbers].astype(np.float32)
        rows *= (weights * self._scales[numbers])[:, None]
        totals = np.add.reduceat(weights, starts)
        return np.add.reduceat(rows, starts, axis=0) / np.sqrt(totals)[:, None]

    def likeness(self, number: int, most: int) -> Any:
        """The cosine of one row with each of the first."""
        np = self._np
        one = self._rows[number].astype(np.float32)
        rows = self._rows[:most].astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * max(1e-9, float(np.linalg.norm(one)))
        return (rows @ one) / np.maximum(lengths, 1e-9)


# Vectors of chunks: packed in the index (one scale, then half a byte per dimension), and unpacked in memory to be compared.

SCALE = 4
"""Bytes in front of each row."""
STEPS = 7
"""To each side of nought."""


def pack_vectors(rows: Any) -> list[bytes]:
    import numpy as np

    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9).astype(np.float32) / STEPS
    # Shifted by STEPS so that a value fits an unsigned half byte: 0 to 14.
    steps = (np.rint(rows / scales) + STEPS).astype(np.uint8)
    if steps.shape[1] % 2:
        # STEPS stands for nought, so the filling dimension counts nothing.
        steps = np.pad(steps, ((0, 0), (0, 1)), constant_values=STEPS)
    halves = (steps[:, 0::2] << 4) | steps[:, 1::2]
    return [scales[n].tobytes() + halves[n].tobytes() for n in range(len(rows))]


def unpack_vectors(blobs: Iterable[bytes]) -> tuple[Any, Any]:
    """(int8 rows, their scales). A row of an odd length comes back with a nought at its end."""
    import numpy as np

    blobs = list(blobs)
    if not blobs:
        return np.zeros((0, 0), np.int8), np.zeros(0, np.float32)
    whole = np.frombuffer(b"".join(blobs), np.uint8).reshape(-1, len(blobs[0]))
    halves = whole[:, SCALE:]
    rows = np.empty((len(blobs), 2 * halves.shape[1]), np.int8)
    rows[:, 0::2], rows[:, 1::2] = halves >> 4, halves & 15
    rows -= STEPS
    return rows, np.ascontiguousarray(whole[:, :SCALE]).view(np.float32)[:, 0]


BLOCK = 1_024
"""Rows made floats at a time: small enough to stay in the processor's cache."""


def cut_before_tie(scored: Sequence[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    """At most so many. Equals that are not all among them are all left out: which of them comes first only says which
    was indexed first, and an answer must not depend on that."""
    best = list(scored[:limit])
    if len(scored) > limit and (above := [one for one in best if one[1] > scored[limit][1]]):
        return above
    return best


class Vectors:
    def __init__(self, model: str) -> None:
        import numpy as np

        self._np, self.model = np, model
        self.ids: Any = np.zeros(0, np.int64)
        self._rows: Any = None
        self._scales: Any = None

    def refresh(self, db: apsw.Connection, model: int) -> None:
        """Ids only grow: what is new lies behind the last one known, what is missing was removed."""
        np = self._np
        # Only ids for what is known already: the vectors themselves are the large part.
        now = np.fromiter((r[0] for r in db.execute("select chunk from vectors where model = ?", (model,))), np.int64)
        last = int(self.ids[-1]) if len(self.ids) else 0
        fresh = list(
            db.execute("select chunk, vector from vectors where model = ? and chunk > ? order by chunk", (model, last))
        )
        rows, scales = unpack_vectors(row[1] for row in fresh)
        if self._rows is None or not len(self.ids):
            self.ids, self._rows, self._scales = np.array([r[0] for r in fresh], np.int64), rows, scales
            return
        # Ids are unique in both, which spares a sort.
        still_present = np.isin(self.ids, now, assume_unique=True)
        self.ids = np.concatenate([self.ids[still_present], np.array([row[0] for row in fresh], np.int64)])
        if fresh:
            self._rows = np.concatenate([self._rows[still_present], rows])
            self._scales = np.concatenate([self._scales[still_present], scales])
        elif not still_present.all():
            self._rows, self._scales = self._rows[still_present], self._scales[still_present]

    def nearest(self, chunk: int, limit: int) -> list[tuple[int, float]]:
        """Chunks nearest to one of them; nothing where it has no vector yet."""
        at = self._np.flatnonzero(self.ids == chunk)
        if not len(at):
            return []
        row = self._rows[at[0]].astype(self._np.float32)
        return self.best(row / max(1e-9, float(self._np.linalg.norm(row))), limit)

    def best(self, query: Any, limit: int, allowed: Any = None) -> list[tuple[int, float]]:
        np = self._np
        if not len(self.ids):
            return []
        scores = np.empty(len(self.ids), np.float32)
        for at in range(0, len(self.ids), BLOCK):
            # A row of odd length was padded by one.
            scores[at : at + BLOCK] = self._rows[at : at + BLOCK, : len(query)].astype(np.float32) @ query
        scores *= self._scales
        if allowed is not None:
            scores[~np.isin(self.ids, allowed)] = -np.inf
        # Finds the best without sorting all; only those are sorted. One more than asked for shows whether the last is one of equals.
        top = np.argpartition(-scores, min(limit + 1, len(scores) - 1))[: limit + 1]
        top = top[np.argsort(-scores[top], kind="stable")]
        # The last digits depend on where a row stands in memory.
        best = [(int(self.ids[n]), round(float(scores[n]), 5)) for n in top if np.isfinite(scores[n])]
        return cut_before_tie(best, limit)

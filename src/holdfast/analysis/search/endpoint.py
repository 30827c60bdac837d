"""An embedding endpoint with an OpenAI-compatible API."""

import json
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from holdfast.analysis.search.embedding_port import NoEmbedder, Passage

# Texts per request, and characters of each.
TEXTS_PER_REQUEST = 32
LONGEST_TEXT = 6_000
PATIENCE_S, SHORT_PATIENCE_S = 60.0, 5.0
"""For documents, which nobody waits for, and for a query."""


class Endpoint:
    def __init__(self, url: str, model: str, key: str = "") -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise NoEmbedder(f"{url} is not an http address")
        # Given with or without the method's path.
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
            # By `index`, because results may come in another order.
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

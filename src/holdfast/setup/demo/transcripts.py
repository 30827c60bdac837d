"""The transcripts that demo agents write."""

import json
from pathlib import Path
from typing import Any

from holdfast.setup.demo.dialects import iso_time

FIRST, PER_ANSWER, FULL = 18_000, 2_400, 170_000
"""Tokens in the window: at the start, added per answer, and where an agent compacts."""


class Transcript:
    """Claude Code's or Codex's; Gemini CLI keeps no such transcript."""

    def __init__(self, agent: str, path: Path, model: str) -> None:
        self._agent, self._path, self._model = agent, path, model
        self._answers, self._window = 0, FIRST

    def answered(self, at: int, words: int) -> None:
        if self._agent == "gemini":
            return
        self._answers += 1
        # Beyond that an agent compacts and starts with a small window.
        self._window = FIRST if self._window > FULL else self._window + PER_ANSWER
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(self._line(iso_time(at), 90 + words * 2)) + "\n")

    def compacted(self) -> None:
        self._window = FIRST

    def _line(self, at: str, output: int) -> dict[str, Any]:
        """Each answer has its own id: the same id is the same answer, in any file."""
        id_ = f"{self._path.stem}-{self._answers:06d}"
        if self._agent == "codex":
            usage = {"input_tokens": self._window + PER_ANSWER, "cached_input_tokens": self._window,
                     "output_tokens": output}  # fmt: skip
            record = {"response_id": f"resp_{id_}", "model": self._model, "usage": usage}
            return {"timestamp": at, "type": "token_usage_record", "payload": record}
        usage = {"input_tokens": 12, "output_tokens": output, "cache_read_input_tokens": self._window,
                 "cache_creation_input_tokens": PER_ANSWER}  # fmt: skip
        message = {"id": f"msg_{id_}", "role": "assistant", "model": self._model, "usage": usage}
        return {"timestamp": at, "type": "assistant", "message": message}

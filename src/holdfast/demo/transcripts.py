"""The transcripts agents keep, as far as Holdfast reads them: how many tokens each answer took."""

import json
from pathlib import Path
from typing import Any

from holdfast.demo.dialects import iso

FIRST, PER_ANSWER, FULL = 18_000, 2_400, 170_000
"""Tokens in the window: at the start, more with each answer, and where an agent compacts."""


class Transcript:
    """Claude Code's, or Codex's; Gemini CLI keeps none that says it."""

    def __init__(self, agent: str, path: Path) -> None:
        self._agent, self._path = agent, path
        self._answers, self._window = 0, FIRST

    def answered(self, at: int, words: int) -> None:
        if self._agent == "gemini":
            return
        self._answers += 1
        self._window = FIRST if self._window > FULL else self._window + PER_ANSWER
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(self._line(iso(at), 90 + words * 2)) + "\n")

    def compacted(self) -> None:
        self._window = FIRST

    def _line(self, at: str, output: int) -> dict[str, Any]:
        if self._agent == "codex":
            usage = {"input_tokens": self._window + PER_ANSWER, "cached_input_tokens": self._window,
                     "output_tokens": output}  # fmt: skip
            info = {"type": "token_count", "info": {"last_token_usage": usage}}
            return {"timestamp": at, "type": "event_msg", "payload": info}
        usage = {"input_tokens": 12, "output_tokens": output, "cache_read_input_tokens": self._window,
                 "cache_creation_input_tokens": PER_ANSWER}  # fmt: skip
        message = {"id": f"msg_{self._answers:06d}", "role": "assistant", "usage": usage}
        return {"timestamp": at, "type": "assistant", "message": message}

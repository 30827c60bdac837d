"""Transcripts of Claude Code in bulk, with everything that is counted wrongly if one counts lines: messages in several
lines with growing figures, forks that repeat their parent, subagents, both tiers of the cache, several models."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.analysis.usage.model import Usage

MODELS = ("claude-sonnet-4-5-20250929", "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001")
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
Line = dict[str, Any]


class Generator:
    """The same seed gives the same files; `said` is what the model said, each message once, by model."""

    def __init__(self, home: Path, seed: int = 1) -> None:
        self.folder = home / ".claude" / "projects" / "-home-dev-project"
        self.random = random.Random(seed)
        self.said: dict[str, Usage] = {}
        self.at = BEGIN

    def write(self, sessions: int, messages: int, partial: bool = True) -> None:
        for number in range(sessions):
            name = f"5e55{number:04d}-0000-4000-8000-000000000000"
            lines = [line for m in range(messages) for line in self._message(f"{number}.{m}", partial)]
            self._save(f"{name}.jsonl", lines, name)
            side = [line for m in range(3) for line in self._message(f"{number}.side.{m}", partial)]
            self._save(f"{name}/subagents/agent-a{number}.jsonl", side, name, agent=f"a{number}")
            if number % 3 == 0:  # A fork repeats its parent and goes on.
                fork = name.replace("5e55", "f08c")
                own = [line for m in range(2) for line in self._message(f"{number}.fork.{m}", partial)]
                self._save(f"{fork}.jsonl", [*lines, *own], fork)

    def _message(self, ident: str, partial: bool) -> Iterator[Line]:
        rand = self.random
        model, output = rand.choice(MODELS), rand.randint(2, 3000)
        hour = rand.choice((0, 0, rand.randint(1, 9000)))
        usage = {"input_tokens": rand.randint(1, 4000), "cache_read_input_tokens": rand.randint(0, 120_000),
                 "cache_creation_input_tokens": hour + (short := rand.randint(0, 20_000)),
                 "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour}}  # fmt: skip
        self.at += timedelta(seconds=rand.randint(1, 900))
        shown = [1, output, output] if partial and rand.random() < 0.5 else [output] * rand.randint(1, 3)
        for n, so_far in enumerate(shown):
            message = {"id": f"msg_{ident}", "model": model, "role": "assistant", "type": "message",
                       "content": [{"type": "text", "text": f"part {n}"}],
                       "usage": {**usage, "output_tokens": so_far}}  # fmt: skip
            yield {"type": "assistant", "uuid": f"{ident}.{n}", "requestId": f"req_{ident}", "cwd": "/home/dev/project",
                   "timestamp": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "version": "2.1.0",
                   "message": message}  # fmt: skip
        spent = Usage(usage["input_tokens"], output, usage["cache_read_input_tokens"], short, hour)
        self.said[model] = self.said.get(model, Usage()).plus(spent)

    def _save(self, name: str, lines: list[Line], session: str, agent: str = "") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        more = {"sessionId": session, **({"agentId": agent, "isSidechain": True} if agent else {})}
        path.write_text("".join(json.dumps({**line, **more}, separators=(",", ":")) + "\n" for line in lines))

"""The weeks before the recorded day."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.core.times import DAY, HOUR, MINUTE
from holdfast.setup.demo.moments import NAMES

BUSY = (5, 6, 4, 6, 3, 1, 0)
"""Sessions of a full day, Monday first."""
MODELS = {"claude-code": "claude-opus-5-5", "codex": "gpt-6-sol"}
AGENTS = ("claude-code", "claude-code", "codex", "gemini")

Record = dict[str, Any]


def session_records(titles: dict[str, list[str]], root: Path, begins: int, weeks: int) -> Iterator[Record]:
    """Oldest first, with growing activity."""
    for days_ago in range(weeks * 7, 0, -1):
        morning = begins - days_ago * DAY
        weekday = datetime.fromtimestamp(morning / 1000, UTC).weekday()
        # The further back, the fewer: the first weeks are at about a fifth.
        full = BUSY[weekday] * (1 - days_ago / (weeks * 9))
        for number in range(round(full * (0.4 + _seeded_fraction(days_ago, "day") * 0.9))):
            yield from _one_session_records(titles, root, morning, days_ago, number)


def _one_session_records(
    titles: dict[str, list[str]], root: Path, morning: int, days_ago: int, number: int
) -> Iterator[Record]:
    seed = f"{days_ago} {number}"
    project = _one_of(list(titles), seed, "project")
    agent = _one_of(AGENTS, seed, "agent")
    at = morning + int((number * 1.6 + _seeded_fraction(seed, "when")) * HOUR)
    ms = int((6 + 50 * _seeded_fraction(seed, "long") ** 2) * MINUTE)
    tools = 4 + int(60 * _seeded_fraction(seed, "tools") ** 2)
    failed = int(tools * 0.15 * _seeded_fraction(seed, "failed"))
    session = str(uuid.uuid5(NAMES, f"weeks {seed}"))
    title = _one_of(titles[project], seed, "title")

    def record(kind: str, when: int, **data: Any) -> Record:
        key = uuid.uuid5(NAMES, f"{session} {kind} {when}").hex
        return {"key": key, "kind": kind, "at": when, "session": session, "project": str(root / project),
                "agent": agent, "data": {"imported": agent, **data}}  # fmt: skip

    day = datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
    yield record("session.started", at, source="startup")
    yield record("prompt.submitted", at + 1, prompt=title)
    for n in range(tools):
        yield record("tool.finished", at + (n + 1) * ms // (tools + 1), action="other", ok=n >= failed)
    yield record("turn.ended", at + ms, message="Done.")
    if agent != "gemini":
        tokens = {"input": 900, "output": 180 * tools, "cache_read": 26_000 * tools, "cache_write_5m": 2_400 * tools}
        yield record("model.answered", at + ms, model=MODELS.get(agent, ""), tokens=tokens, turn_n=1, day=day)
    yield record("session.ended", at + ms + MINUTE, reason="exit")


def _seeded_fraction(*seed: object) -> float:
    return uuid.uuid5(NAMES, " ".join(map(str, seed))).int % 10_000 / 10_000


def _one_of(choices: Any, *seed: object) -> Any:
    return choices[int(_seeded_fraction(*seed) * len(choices))]

"""The weeks before the day, in outline: sessions with one prompt each, as an import of older records brings them in.

They are made up by a fixed rule, so that the year's picture has something to show; nothing of them went through a hook.
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.demo.moments import NAMES

DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000
BUSY = (5, 6, 4, 6, 3, 1, 0)
"""Sessions of a full day, Monday first."""
MODELS = {"claude-code": "claude-opus-5-5", "codex": "gpt-6-sol"}
AGENTS = ("claude-code", "claude-code", "codex", "gemini")

Record = dict[str, Any]


def session_records(titles: dict[str, list[str]], root: Path, begins: int, weeks: int) -> Iterator[Record]:
    """Oldest first. It began slowly: what came later is more."""
    for days_ago in range(weeks * 7, 0, -1):
        morning = begins - days_ago * DAY_MS
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
    at = morning + int((number * 1.6 + _seeded_fraction(seed, "when")) * HOUR_MS)
    ms = int((6 + 50 * _seeded_fraction(seed, "long") ** 2) * MINUTE_MS)
    tools = 4 + int(60 * _seeded_fraction(seed, "tools") ** 2)
    failed = int(tools * 0.15 * _seeded_fraction(seed, "failed"))
    session = str(uuid.uuid5(NAMES, f"weeks {seed}"))
    title = _one_of(titles[project], seed, "title")

    def record(kind: str, when: int, **data: Any) -> Record:
        key = uuid.uuid5(NAMES, f"{session} {kind}").hex
        return {"key": key, "kind": kind, "at": when, "session": session, "project": str(root / project),
                "agent": agent, "data": {"imported": True, **data}}  # fmt: skip

    day = datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
    facts = {"id": "", "origin": "person", "prompt": title, "answer": "Done.", "at": at, "end": at + ms,
             "how": "stopped", "tools": tools, "failed": failed, "first": 0, "seq": 0}  # fmt: skip
    more = {"tools": tools, "failed": failed, "ms": ms, "turns": 1, "sessions": 1}
    yield record("session.started", at, source="startup")
    yield record("prompt.submitted", at + 1, prompt=title)
    yield record("turn.ended", at + ms, message="Done.")
    yield record("turn.processed", at + ms, n=1, upto=0, facts=facts, more=more, day=day, agent=agent)
    if agent != "gemini":
        tokens = {"input": 900, "output": 180 * tools, "cache_read": 26_000 * tools, "cache_write_5m": 2_400 * tools}
        yield record("model.answered", at + ms, model=MODELS.get(agent, ""), tokens=tokens, turn_n=1, day=day)
    yield record("session.ended", at + ms + MINUTE_MS, reason="exit")


def _seeded_fraction(*seed: object) -> float:
    return uuid.uuid5(NAMES, " ".join(map(str, seed))).int % 10_000 / 10_000


def _one_of(choices: Any, *seed: object) -> Any:
    return choices[int(_seeded_fraction(*seed) * len(choices))]

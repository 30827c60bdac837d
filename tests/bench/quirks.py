"""Quirks of a place: which later repeats would have been met with a line, and what stays silent (real sessions)."""

import sys
from collections import Counter

import msgspec

from holdfast.core.event import Event
from holdfast.features.memory.state import quirk_book
from holdfast.features.memory.state.quirk_book import QuirkBook
from tests.bench import real_sessions
from tests.bench.figures import fact, figure, heading


class Repeat(msgspec.Struct):
    """An error of the place that another session here had before; `line` is what the agent would be told."""

    repository: str
    quirk: str
    command: str
    line: str


def main() -> None:
    heading("quirks: errors of tool, environment or hook that an earlier session here had, met with a line")
    if not real_sessions.needs_data():
        return
    repeats = [one for name, sessions in real_sessions.repositories().items() for one in _repeats(name, sessions)]
    if "--lines" in sys.argv:
        print(*(f"  {one.command[:90]}\n      {one.line}" for one in repeats if one.line), sep="\n")
    _coverage("all", repeats)
    often = Counter((one.repository, one.quirk) for one in repeats).most_common(1)
    if often:
        _coverage("without the most frequent", [one for one in repeats if (one.repository, one.quirk) != often[0][0]])
    _silence()


def _repeats(name: str, sessions: list[real_sessions.RealSession]) -> list[Repeat]:
    """Each session's first failure by a quirk, in the order of time: what is known comes from before it."""
    found: list[Repeat] = []
    book: QuirkBook | None = None
    told: set[tuple[str, str]] = set()
    for event in sorted(
        (one for session in sessions for one in session.events if _counts(one)), key=lambda one: one.at
    ):
        book = quirk_book.reduce(book, event)
        quirk = book.waiting_quirk(event.session) if book else None
        if quirk and quirk_book.has_failed(event) and (quirk.id, event.session) not in told:
            told.add((quirk.id, event.session))
            if len(quirk.sessions) >= quirk_book.LEAST_SESSIONS:
                line = quirk_book.quirk_line(quirk) if quirk_book.is_known(quirk) else ""
                found.append(Repeat(name, quirk.id, " ".join(event.data.command.split()), line))
    return found


def _counts(event: Event) -> bool:
    return event.kind in quirk_book.TOOL_ENDS and quirk_book.touches_quirks(event) and not event.data.lane


def _coverage(which: str, repeats: list[Repeat]) -> None:
    covered = sum(bool(one.line) for one in repeats)
    figure(f"later repeats with a line, {which}", covered / max(1, len(repeats)), 0.5, unit="", more_is_better=True,
           note=f"{covered} of {len(repeats)}")  # fmt: skip


def _silence() -> None:
    """Failed checks that ran are silent by construction; those that could not start may be told about."""
    every = [
        one for sessions in real_sessions.repositories().values() for s in sessions for one in s.events if _counts(one)
    ]
    checks = [one for one in every if quirk_book.has_failed(one) and one.data.judgement and one.data.judgement.checks]
    silent = sum(quirk_book.event_trouble(one) is None for one in checks)
    figure("failed test, lint and compile runs that are silent", silent / max(1, len(checks)), 0.95, unit="",
           more_is_better=True, note=f"{silent} of {len(checks)}")  # fmt: skip
    fact("shell commands that failed", str(sum(map(quirk_book.has_failed, every))))

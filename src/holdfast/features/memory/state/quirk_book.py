"""Quirks of a place: errors of its tools, environment or hooks, and what was used instead."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.analysis.error_text import Trouble, asks_for_help, first_line, is_preparation, program_of, trouble_of
from holdfast.core.checks import Verdict
from holdfast.core.document import DocumentType, with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.memory_events import QuirkEdited, QuirkForgotten
from holdfast.core.lazy import lazy_pattern
from holdfast.core.ports import Ref
from holdfast.features.memory.state.documents import one_line, place_of

MOST_QUIRKS, MOST_SESSIONS, MOST_PENDING, MOST_FORGOTTEN = 120, 8, 20, 200
COMMAND, LINE = 200, 160
LEAST_SESSIONS = 2
"""An error of one session may be its own fault."""
NEAR = 5
"""After more commands than this a similar one is no answer to the error."""
_JOINT = lazy_pattern(r"\s*(?:&&|;)\s+")
_WORD = lazy_pattern(r"[^\s'\"`|;&()]+")
# Kinds in which another program is the answer, so the program may differ.
_REPLACES_PROGRAM = frozenset(("command", "module", "permission", "network"))
REMEDIES = {"glob": "quote words with ? * [ ], which this shell expands"}
"""Where the kind of error alone says what to do."""
_INSTALLS = lazy_pattern(r"\b(?:install|add|i)\b")
_VERSION = "0123456789."


class Quirk(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """`instead` worked after it; `edited`: a person wrote that."""

    id: str
    kind: str
    about: str
    line: str
    command: str = ""
    instead: str = ""
    edited: bool = False
    sessions: list[str] = []
    times: int = 0
    at: int = 0

    @property
    def remedy(self) -> str:
        return self.instead or REMEDIES.get(self.kind, "")


class Pending(msgspec.Struct, frozen=True, array_like=True):
    """A failure whose answer may still come: the quirk, the command, how many commands ran since."""

    quirk: str
    command: str
    since: int = 0


class QuirkBook(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Of one repository; quirks never leave it."""

    project: str
    quirks: dict[str, Quirk] = {}
    pending: dict[str, Pending] = {}
    """By session."""
    forgotten: dict[str, int] = {}
    at: int = 0

    def waiting_quirk(self, session: str) -> Quirk | None:
        """What the newest command of this session failed by."""
        waiting = self.pending.get(session)
        return self.quirks.get(waiting.quirk) if waiting and not waiting.since else None


QUIRKS = DocumentType("memory.quirks", QuirkBook)
TOOL_ENDS = ("tool.finished", "tool.failed")


def quirks_ref(location: str) -> Ref:
    return QUIRKS.ref(bounded_name(location))


def touches_quirks(event: Event) -> bool:
    data = event.data
    return isinstance(data, ToolEndPayload) and data.action == "shell" and bool(event.session)


def reduce(doc: QuirkBook | None, event: Event) -> QuirkBook | None:
    step = STEPS.get(event.kind)
    if step is None:
        return doc
    before = doc or QuirkBook(project=event.project, at=event.at)
    after = step(before, event)
    return doc if after is before else replace(after, at=event.at)


def quirk_id(location: str, kind: str, about: str) -> str:
    digest = hashlib.blake2b(f"{location}\n{kind}\n{about}".encode("utf-8", "replace"), digest_size=6)
    return f"q{digest.hexdigest()}"


def event_trouble(event: Event) -> Trouble | None:
    """Silent about tests, linters and builds that ran: their failures are the work itself."""
    data: ToolEndPayload = event.data
    if data.interrupted or _check_ran(data):
        return None
    text = data.error or data.output
    if has_failed(event):
        return trouble_of(data.command, text)
    # Codex does not report how a command ended: what begins with an error is taken for a failure.
    return trouble_of(data.command, first_line(text)) if data.exit_code is None and text else None


def has_failed(event: Event) -> bool:
    data: ToolEndPayload = event.data
    return event.kind == "tool.failed" or data.ok is False or data.exit_code not in (None, 0)


def _check_ran(data: ToolEndPayload) -> bool:
    checks = data.judgement.checks if data.judgement else ()
    return any(not check.could_not_start and check.verdict != Verdict.DID_NOT_RUN for check in checks)


def _apply_tool_end(doc: QuirkBook, event: Event) -> QuirkBook:
    data: ToolEndPayload = event.data
    waiting = doc.pending.get(event.session)
    trouble = event_trouble(event)
    if trouble is None:
        return _try_answer(doc, event, waiting) if waiting else doc
    this = quirk_id(place_of(event), trouble.kind, trouble.about)
    if this in doc.forgotten:
        return doc
    command = told_command(data.command)
    quirk = doc.quirks.get(this) or Quirk(id=this, kind=trouble.kind, about=trouble.about, line=trouble.line[:LINE])
    seen = quirk.sessions if event.session in quirk.sessions else [*quirk.sessions, event.session][-MOST_SESSIONS:]
    quirk = replace(quirk, command=command, sessions=seen, times=quirk.times + 1, at=event.at)
    return replace(
        doc,
        quirks=with_newest(doc.quirks, this, quirk, MOST_QUIRKS),
        pending=with_newest(doc.pending, event.session, Pending(this, command), MOST_PENDING),
    )


def _try_answer(doc: QuirkBook, event: Event, waiting: Pending) -> QuirkBook:
    """A similar command that works soon after the failure is what was used instead."""
    data: ToolEndPayload = event.data
    others = without_keys(doc.pending, [event.session])
    quirk = doc.quirks.get(waiting.quirk)
    if quirk is None or waiting.since >= NEAR:
        return replace(doc, pending=others)
    command = told_command(data.command)
    if has_failed(event) or not is_answer(quirk, waiting.command, command):
        since = Pending(waiting.quirk, waiting.command, waiting.since + 1)
        return replace(doc, pending={**others, event.session: since})
    answered = quirk if quirk.edited else replace(quirk, instead=command)
    return replace(doc, pending=others, quirks={**doc.quirks, quirk.id: answered})


def told_command(command: str) -> str:
    """Its first line, without what only prepares it."""
    line = command.strip().split("\n")[0][: 4 * COMMAND]
    while (joint := _JOINT.search(line)) and is_preparation(line[: joint.start()]):
        line = line[joint.end() :]
    return one_line(line, COMMAND)


def is_answer(quirk: Quirk, failed: str, worked: str) -> bool:
    """Whether it does the same in another way: without the flag, quoted, by another program."""
    one, other = _words(failed), _words(worked)
    if failed == worked or not other or asks_for_help(worked):
        return False
    if quirk.kind == "module" and quirk.about.partition(".")[0] in other and _INSTALLS.search(worked):
        return True
    program, instead = program_of(failed), program_of(worked)
    shared = len(one & other)
    if quirk.kind in _REPLACES_PROGRAM:
        same = program.rstrip(_VERSION) == instead.rstrip(_VERSION)
        return (same and one.isdisjoint(_full_programs(worked))) or (
            program != instead and shared * 2 >= min(len(one), len(other))
        )
    offending = quirk.about.rpartition(" ")[2]
    if quirk.kind in ("flag", "subcommand") and offending in {
        word.strip("-").partition("=")[0].lower() for word in other
    }:
        return False
    if quirk.kind == "glob" and not any(set(offending) & set(word) for word in one & other):
        return False
    return program == instead and shared * 3 >= max(len(one), len(other))


def _full_programs(command: str) -> frozenset[str]:
    """The words of a command that name its program, with their folders."""
    name = program_of(command)
    return frozenset(word for word in _words(command) if word.rpartition("/")[2] == name)


def _words(command: str) -> frozenset[str]:
    return frozenset(_WORD.findall(command))


def is_known(quirk: Quirk) -> bool:
    """Worth a line: it happened in several sessions, and something worked instead."""
    return bool(quirk.remedy) and (quirk.edited or len(quirk.sessions) >= LEAST_SESSIONS)


def _apply_edited(doc: QuirkBook, event: Event) -> QuirkBook:
    data: QuirkEdited = event.data
    quirk = doc.quirks.get(data.id)
    if quirk is None:
        return doc
    changed = replace(quirk, instead=one_line(data.instead, COMMAND), edited=True)
    return replace(doc, quirks={**doc.quirks, data.id: changed})


def _apply_forgotten(doc: QuirkBook, event: Event) -> QuirkBook:
    data: QuirkForgotten = event.data
    if data.id not in doc.quirks:
        return doc
    return replace(
        doc, quirks=without_keys(doc.quirks, [data.id]),
        forgotten=with_newest(doc.forgotten, data.id, event.at, MOST_FORGOTTEN),
    )  # fmt: skip


Step = Callable[[QuirkBook, Event], QuirkBook]
STEPS: dict[str, Step] = {
    "tool.finished": _apply_tool_end,
    "tool.failed": _apply_tool_end,
    QuirkEdited.KIND: _apply_edited,
    QuirkForgotten.KIND: _apply_forgotten,
}


def quirk_line(quirk: Quirk) -> str:
    """One line, as the agent receives it."""
    often = f"{len(quirk.sessions)} sessions" if len(quirk.sessions) > 1 else "an earlier session"
    worked = f"what worked then: `{quirk.instead}`" if quirk.instead else quirk.remedy
    what = quirk.instead if quirk.edited else worked
    return f"Known here ({often}): {one_line(quirk.line, 110)} → {what} [{quirk.id}]"


def as_row(quirk: Quirk) -> dict[str, Any]:
    whole = msgspec.structs.asdict(quirk)
    return {**whole, "advice": REMEDIES.get(quirk.kind, ""), "known": is_known(quirk), "seen_in": len(quirk.sessions)}

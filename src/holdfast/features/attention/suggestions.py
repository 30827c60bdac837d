"""Proposes allow rules from what a person always allowed, by what each command runs, not by its text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from holdfast.analysis.shell.analysis import Analysis, analyse_command
from holdfast.core.data_files import load_data
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds import TOOL_ENDS, ToolPayload
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.times import DAY

LEAST = 3
"""Times that something was allowed before it is proposed."""
RARELY = 50
"""Of so many one may have been refused: people also refuse to give another direction."""
PAGE, MOST_EVENTS = 1_000, 100_000
KINDS = ("permission.requested", "permission.denied", "attention.answered", "permission.granted", *TOOL_ENDS)
NOWHERE = "/dev/null"
# They change what the words after them mean. A mere mention keeps a command out, too.
_CHANGES_SHELL = re.compile(r"\b(?:alias|eval|exec|source|export|trap|function|set|enable|hash)\s")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    readers: tuple[str, ...]
    prefixes: tuple[str, ...]
    exact: tuple[str, ...]
    never: tuple[str, ...]


class Question(msgspec.Struct, frozen=True):
    """One permission that was asked for, and how it ended."""

    command: str
    allowed: bool


class Form(msgspec.Struct, frozen=True, order=True):
    """What a rule admits: a command, or whatever begins with it."""

    words: str
    prefix: bool

    @property
    def rule(self) -> str:
        return f"Bash({self.words}:*)" if self.prefix else f"Bash({self.words})"


@cache
def _table() -> Table:
    return load_data(__file__, "harmless", Table)


def suggest(call: Call) -> dict[str, Any]:
    """Nothing is written: the command line asks first."""
    days = max(1, min(int(call.args.get("days") or 14), 365))
    return as_answer(read_questions(call.reader, call.now - days * DAY), days)


def as_answer(questions: Sequence[Question], days: int) -> dict[str, Any]:
    forms = propose(questions)
    counts = Counter(form for one in questions for form in forms_of(one.command) or () if form in forms)
    rules = [
        {"rule": form.rule, "allowed": counts[form]} for form in sorted(forms, key=lambda form: (-counts[form], form))
    ]
    saved = sum(is_covered(one.command, forms) for one in questions)
    return {"rules": rules, "saved": saved, "asked": len(questions), "days": days}


def read_questions(reader: Reader, since: int) -> list[Question]:
    """A permission was allowed if its command ran in the session afterwards."""
    waiting: dict[tuple[str, str], int] = {}
    asked: list[Question] = []
    for event in _events(reader, since):
        if not isinstance(event.data, ToolPayload) or not event.data.command:
            continue
        key = event.session, event.data.command
        if event.kind == "permission.requested":
            waiting[key] = len(asked)
            asked.append(Question(event.data.command, allowed=False))
        elif event.kind in TOOL_ENDS and key in waiting:
            at = waiting.pop(key)
            asked[at] = Question(asked[at].command, allowed=True)
        elif event.kind == "permission.denied":
            waiting.pop(key, None)
    return asked


def _events(reader: Reader, since: int) -> Iterable[Event]:
    after, seen = 0, 0
    while seen < MOST_EVENTS:
        page = reader.events(EventQuery(kinds=KINDS, since=since, after=after, limit=PAGE))
        yield from page
        if len(page) < PAGE:
            return
        after, seen = page[-1].seq, seen + len(page)


def propose(questions: Sequence[Question]) -> frozenset[Form]:
    """Forms that were allowed often enough and hardly ever refused."""
    allowed, refused = Counter[Form](), Counter[Form]()
    for one in questions:
        # A refused command with a part that may do harm says nothing about its other parts.
        (allowed if one.allowed else refused).update(set(forms_of(one.command) or ()))
    return frozenset(form for form, times in allowed.items() if times >= LEAST and refused[form] * RARELY <= times)


def is_covered(command: str, forms: frozenset[Form]) -> bool:
    found = forms_of(command)
    return bool(found) and all(form in forms for form in found or ())


def forms_of(command: str) -> list[Form] | None:
    """What each program of the command would need a rule for; None if any part of it may do harm or is not clear."""
    if _CHANGES_SHELL.search(command):
        return None
    analysis = analyse_command(command)
    if not _is_clear(analysis):
        return None
    forms = [_form_of(one.words) for one in analysis.commands]
    return None if None in forms else [form for form in forms if form is not None]


def _is_clear(analysis: Analysis) -> bool:
    writes = [name for _, name in analysis.redirected if name != NOWHERE]
    hidden = analysis.problem or analysis.run_later or analysis.sourced or analysis.defined or writes
    plain = all(
        not (one.invocation.wrappers or one.invocation.tampered or one.invocation.shadowed or one.pending)
        and not [name for name in one.invocation.writes if name != NOWHERE]
        for one in analysis.commands
    )
    return bool(analysis.commands) and not hidden and plain


def _form_of(words: Sequence[str]) -> Form | None:
    table, text = _table(), " ".join(words)
    if "\ufffd" in text or not text.isprintable():
        return None
    if words[0] in table.readers:
        return Form(words[0], prefix=True)
    if {word.partition("=")[0] for word in words} & set(table.never):
        return None
    if prefix := _longest(table.prefixes, words):
        return Form(prefix, prefix=True)
    # A rule is text: what needs quotes would not be the same command.
    plain = not any(set(word) & set(" \t\"'\\$`*?()[]{}<>|&;~#!:") for word in words)
    return Form(text, prefix=False) if plain and _longest(table.exact, words) else None


def _longest(table: Iterable[str], words: Sequence[str]) -> str:
    fitting = [one for one in table if list(words[: len(one.split())]) == one.split()]
    return max(fitting, key=len, default="")

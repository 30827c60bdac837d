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
RARELY = 20
"""Of so many one may have been refused: people also refuse to give another direction."""
PAGE, MOST_EVENTS = 1_000, 100_000
KINDS = ("permission.requested", "permission.denied", "attention.answered", "permission.granted", *TOOL_ENDS)
NOWHERE = "/dev/null"
AGENT = "claude-code"
"""Whose rules these are."""
_PLAIN_PATH = re.compile(r"(?:/[\w.@+-]+)+(?:/\*/[\w.@+-]+)?")
# They change what the words after them mean. A mere mention keeps a command out, too.
_CHANGES_SHELL = re.compile(r"\b(?:alias|eval|exec|source|export|trap|function|set|enable|hash)\s")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    readers: tuple[str, ...]
    prefixes: tuple[str, ...]
    exact: tuple[str, ...]
    never: tuple[str, ...]


class Question(msgspec.Struct, frozen=True):
    """One permission that was asked for, and how it ended."""

    command: str = ""
    paths: tuple[str, ...] = ()
    """The files of an edit, with their project, and how a rule names that."""
    project: str = ""
    root: str = ""
    allowed: bool = False


@cache
def _table() -> Table:
    return load_data(__file__, "harmless", Table)


def suggest(call: Call) -> dict[str, Any]:
    """Nothing is written: the command line asks first."""
    days = max(1, min(int(call.args.get("days") or 14), 365))
    return as_answer(read_questions(call.reader, call.now - days * DAY), days)


def as_answer(questions: Sequence[Question], days: int) -> dict[str, Any]:
    proposed = propose(questions)
    counts = Counter(rule for one in questions for rule in rules_of(one) or () if rule in proposed)
    rules = [
        {"rule": rule, "allowed": counts[rule]} for rule in sorted(proposed, key=lambda rule: (-counts[rule], rule))
    ]
    saved = sum(is_covered(one, proposed) for one in questions)
    return {"rules": rules, "saved": saved, "asked": len(questions), "days": days}


def read_questions(reader: Reader, since: int) -> list[Question]:
    """A permission was allowed if its call ran in the session afterwards."""
    waiting: dict[tuple[str, Question], int] = {}
    asked: list[Question] = []
    for event in _events(reader, since):
        question = _as_question(event)
        if question is None:
            continue
        key = event.session, question
        if event.kind == "permission.requested":
            waiting[key] = len(asked)
            asked.append(question)
        elif event.kind in TOOL_ENDS and key in waiting:
            asked[waiting.pop(key)] = msgspec.structs.replace(question, allowed=True)
        elif event.kind == "permission.denied":
            waiting.pop(key, None)
    return asked


def _as_question(event: Event) -> Question | None:
    data = event.data
    if event.agent != AGENT or not isinstance(data, ToolPayload):
        return None
    if data.command:
        return Question(data.command)
    if data.action != "edit" or not data.paths:
        return None
    root = rule_root(event.project, data.repo.removesuffix("/.git"))
    return Question(paths=tuple(data.paths), project=event.project, root=root)


def rule_root(project: str, repository: str) -> str:
    """Worktrees inside their repository are short-lived and many: one rule covers all in the same folder."""
    inside = repository and project.startswith(f"{repository}/")
    return f"{project.rpartition('/')[0]}/*" if inside else project


def _events(reader: Reader, since: int) -> Iterable[Event]:
    after, seen = 0, 0
    while seen < MOST_EVENTS:
        page = reader.events(EventQuery(kinds=KINDS, since=since, after=after, limit=PAGE))
        yield from page
        if len(page) < PAGE:
            return
        after, seen = page[-1].seq, seen + len(page)


def propose(questions: Sequence[Question]) -> frozenset[str]:
    """Rules for what was allowed often enough and hardly ever refused."""
    allowed, refused = Counter[str](), Counter[str]()
    for one in questions:
        # A refused command with a part that may do harm says nothing about its other parts.
        (allowed if one.allowed else refused).update(set(rules_of(one) or ()))
    return frozenset(rule for rule, times in allowed.items() if times >= LEAST and refused[rule] * RARELY <= times)


def is_covered(question: Question, rules: frozenset[str]) -> bool:
    needed = rules_of(question)
    return bool(needed) and all(rule in rules for rule in needed or ())


def rules_of(question: Question) -> list[str] | None:
    """The rules that would admit all of it; None if any part may do harm or is not clear."""
    if question.paths:
        found = [_edit_rule(path, question) for path in question.paths]
    elif _CHANGES_SHELL.search(question.command):
        return None
    else:
        analysis = analyse_command(question.command)
        found = [_command_rule(one.words) for one in analysis.commands] if _is_clear(analysis) else [None]
    return None if None in found else [rule for rule in found if rule is not None]


def _edit_rule(path: str, question: Question) -> str | None:
    """Of one folder at the top of the project. Files next to those folders, and hidden ones, decide what will run."""
    below = path.removeprefix(f"{question.project}/").split("/")
    inside = question.project not in ("", "/") and path.startswith(f"{question.project}/") and len(below) > 1
    hidden = any(one.startswith(".") or not one for one in below)
    folder = f"{question.root}/{below[0]}"
    return f"Edit(/{folder}/**)" if inside and not hidden and _PLAIN_PATH.fullmatch(folder) else None


def _is_clear(analysis: Analysis) -> bool:
    writes = [name for _, name in analysis.redirected if name != NOWHERE]
    hidden = analysis.problem or analysis.run_later or analysis.sourced or analysis.defined or writes
    plain = all(
        not (one.invocation.wrappers or one.invocation.tampered or one.invocation.shadowed or one.pending)
        and not [name for name in one.invocation.writes if name != NOWHERE]
        for one in analysis.commands
    )
    return bool(analysis.commands) and not hidden and plain


def _command_rule(words: Sequence[str]) -> str | None:
    table, text = _table(), " ".join(words)
    if "\ufffd" in text or not text.isprintable():
        return None
    if words[0] in table.readers:
        return f"Bash({words[0]}:*)"
    if {word.partition("=")[0] for word in words} & set(table.never):
        return None
    if prefix := _longest(table.prefixes, words):
        return f"Bash({prefix}:*)"
    # A rule is text: what needs quotes would not be the same command. With a colon at its end it could be a prefix.
    plain = not any(set(word) & set(" \t\"'\\$`*?()[]{}<>|&;~#!") for word in words) and not text.endswith(":")
    return f"Bash({text})" if plain and _longest(table.exact, words) else None


def _longest(table: Iterable[str], words: Sequence[str]) -> str:
    fitting = [one for one in table if list(words[: len(one.split())]) == one.split()]
    return max(fitting, key=len, default="")

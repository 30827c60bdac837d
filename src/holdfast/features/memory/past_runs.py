"""Answers on request: earlier occurrences of an error and what followed, and commands proven by checks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.analysis.error_text import error_lines, first_error, signature
from holdfast.core.checks import CheckKind, Selection, Verdict
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.history import has_failed, split_words
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.lazy import lazy_pattern
from holdfast.core.ports import EventQuery, HistoryQuery
from holdfast.features.memory.state.documents import PLACE, one_line
from holdfast.features.memory.state.lookup import repo_of_project

TOOL_ENDS = ("tool.finished", "tool.failed")
# Error lines of the question that are looked for; words of each; failures that are read; answers.
MOST_LINES, MOST_WORDS, MOST_READ, MOST_ANSWERS = 6, 8, 150, 5
# Events and steps after a failure; characters of a step.
MOST_FOLLOWING, MOST_STEPS, STEP = 120, 6, 200
LEAST_PART = 12
MOST_CHECKS, MOST_COMMANDS, MOST_PLACES = 3_000, 2, 50
_STABLE = lazy_pattern(r"<(?:path|url|id|n)>")
KINDS = tuple(kind.value for kind in CheckKind)


def find_fix(call: Call) -> dict[str, Any]:
    """Only of this project, unless the person asks for every one."""
    text = str(call.args.get("text") or "").strip()
    if not text:
        raise CommandRefused("an error text is needed", fix='For example: holdfast fix "command not found: node"')
    wanted = wanted_signatures(text)
    projects = [""] if call.args.get("everywhere") else project_folders(call)
    found = {event.seq: event for sign in wanted for event in _candidates(call, sign, projects)}
    matches = [(event, lines) for event in found.values() if (lines := _matching_lines(event, wanted))]
    # Those that share most with the question, then the newest.
    matches.sort(key=lambda match: (-len(match[1]), -match[0].seq))
    answers = [_answer_row(call, event, lines[0]) for event, lines in _one_per_session(matches)]
    # An answer that tells what worked comes before one that does not.
    answers.sort(key=lambda row: not row["worked"])
    return {"signature": wanted[0] if wanted else "", "seen": len(matches), "found": answers}


def wanted_signatures(text: str) -> list[str]:
    """The most telling line first: the one with most constant words."""
    signs = dict.fromkeys(signature(line) for line in error_lines(text))
    signs = signs or dict.fromkeys((signature(first_error(text)),))
    telling = sorted((one for one in signs if _words_of(one)), key=lambda one: -len(_words_of(one)))
    return telling[:MOST_LINES]


def project_folders(call: Call) -> list[str]:
    """This folder and the other worktrees of its repository."""
    repo = repo_of_project(call, call.project)
    rows = PLACE.list(call.reader, limit=1000) if repo else []
    others = [doc.project for _, doc in rows if doc.repo == repo and doc.project != call.project]
    return [call.project, *others[: MOST_PLACES - 1]]


def _words_of(sign: str) -> list[str]:
    return [word for word in dict.fromkeys(split_words(_STABLE.sub(" ", sign))) if len(word) > 2 and not word.isdigit()]


def _candidates(call: Call, sign: str, projects: Sequence[str]) -> Iterator[Event]:
    # The longest words are the rarest.
    words = sorted(_words_of(sign), key=lambda word: -len(word))[:MOST_WORDS]
    for project in projects:
        query = HistoryQuery(phrases=tuple(words), project=project, kinds=TOOL_ENDS, failed=True, limit=MOST_READ)
        for seq in call.reader.history(query):
            if event := call.reader.event(seq):
                yield event


def _matching_lines(event: Event, wanted: Iterable[str]) -> list[str]:
    data: ToolEndPayload = event.data
    text = data.error or data.output
    lines = {signature(line): line for line in error_lines(text)} or {signature(first_error(text)): first_error(text)}
    return [line for sign in wanted if (line := lines.get(sign) or _part_of(sign, lines))]


def _part_of(sign: str, lines: Mapping[str, str]) -> str:
    """People give a part of a line, or a line with its surroundings."""
    if len(sign) < LEAST_PART:
        return ""
    return next(
        (line for known, line in lines.items() if sign in known or (len(known) >= LEAST_PART and known in sign)), ""
    )


def _one_per_session(matches: Iterable[tuple[Event, list[str]]]) -> list[tuple[Event, list[str]]]:
    best: dict[str, tuple[Event, list[str]]] = {}
    for event, lines in matches:
        best.setdefault(event.session, (event, lines))
    return list(best.values())[:MOST_ANSWERS]


def _answer_row(call: Call, event: Event, line: str) -> dict[str, Any]:
    data: ToolEndPayload = event.data
    steps, worked = what_followed(event, _following(call, event))
    return {
        "seq": event.seq, "at": event.at, "session": event.session, "project": event.project, "agent": event.agent,
        "command": one_line(data.command or event.tool, STEP), "line": line, "followed": steps, "worked": worked,
    }  # fmt: skip


def _following(call: Call, event: Event) -> list[Event]:
    query = EventQuery(session=event.session, kinds=TOOL_ENDS, after=event.seq, limit=MOST_FOLLOWING)
    return call.reader.events(query)


def what_followed(failed: Event, following: Sequence[Event]) -> tuple[list[str], str]:
    """Edits and commands up to the first similar command that worked, and that command; empty where none did."""
    steps: list[str] = []
    for event in following:
        data: ToolEndPayload = event.data
        if data.lane != failed.data.lane:
            continue
        if data.action == "edit" and not has_failed(event):
            steps.append(f"edited {', '.join(path.rpartition('/')[2] for path in data.paths[:3])}")
        elif data.action == "shell":
            command = one_line(data.command, STEP)
            if not has_failed(event) and _is_similar(failed.data.command, data.command):
                return _last_steps(steps), command
            steps.append(f"{'failed' if has_failed(event) else 'ran'} `{command}`")
    return _last_steps(steps)[:2], ""


def _last_steps(steps: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(steps))[-MOST_STEPS:]


def _is_similar(failed: str, worked: str) -> bool:
    one, other = set(failed.split()), set(worked.split())
    return bool(one) and len(one & other) * 2 >= max(len(one), len(other))


# ── how tests, linters and builds are run here ───────────────────────────────────────────────────────────────────────


class ProvenCommand(msgspec.Struct, kw_only=True):
    command: str
    dir: str
    passed: int = 0
    failed: int = 0
    whole: bool = False
    at: int = 0
    seq: int = 0


def how_to(call: Call) -> dict[str, Any]:
    """Commands of this project that passed as a check of this kind, by the folder they ran in."""
    kind = str(call.args.get("kind") or "")
    if kind not in KINDS:
        raise CommandRefused(f"there is no kind of check {kind!r}", fix=f"One of: {', '.join(KINDS)}")
    runs = (event for project in project_folders(call) for event in _checks(call, project))
    return {"kind": kind, "commands": [msgspec.to_builtins(one) for one in proven_commands(runs, kind)]}


def _checks(call: Call, project: str) -> list[Event]:
    query = EventQuery(project=project, kinds=(CheckFinished.KIND,), limit=MOST_CHECKS, newest=True)
    return call.reader.events(query)


def proven_commands(events: Iterable[Event], kind: str) -> list[ProvenCommand]:
    """Best first: those that ran everything, then those that passed most often."""
    known: dict[tuple[str, str], ProvenCommand] = {}
    for event in events:
        check: CheckFinished = event.data
        command = one_line(check.command, STEP)
        if check.kind != kind or check.lane or not command or check.verdict not in (Verdict.PASSED, Verdict.FAILED):
            continue
        row = known.setdefault((check.dir, command), ProvenCommand(command=command, dir=check.dir))
        passed = check.verdict == Verdict.PASSED
        row.passed, row.failed = row.passed + passed, row.failed + (not passed)
        row.whole = row.whole or check.selection == Selection.ALL
        if passed and event.at >= row.at:
            row.at, row.seq = event.at, event.seq
    proven = sorted((row for row in known.values() if row.passed), key=lambda row: (-row.whole, -row.passed, -row.at))
    per_folder: dict[str, list[ProvenCommand]] = {}
    for row in proven:
        per_folder.setdefault(row.dir, []).append(row)
    return [row for rows in per_folder.values() for row in rows[:MOST_COMMANDS]][:MOST_PLACES]

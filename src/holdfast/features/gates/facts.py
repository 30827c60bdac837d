"""What was recorded of a project's tools: edits, commands and how they exited, skills, commits, UAT runs.

Facts know nothing of rules. Whether one is proof of something is asked later, with the rules of that moment.
"""

import re
from typing import Any

from holdfast.core.event import Event
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.ports import Doc
from holdfast.core.shell.acts import BLANK
from holdfast.core.shell.analysis import Ran, ShellCommand, analyse_command
from holdfast.features.gates.bounded import with_newest

MOST_EDITS, MOST_COMMANDS, MOST_SKILLS, MOST_COMMITS, MOST_RUNS, MOST_SIZES = 60, 40, 30, 20, 30, 20
LONGEST_COMMAND = 400
SOMEWHERE = "*"
"""Stands for an edit whose files the agent did not name: it may be any file."""
MOST_PROGRAMS, MOST_READINGS = 12, 3
_LOOKS_ONLY = frozenset(
    "ls cat head tail grep rg find fd cd echo pwd wc which sleep tree stat file env date whoami jq less awk true holdfast sed sort".split()
)
_GIT_LOOKS = frozenset("status log diff show branch rev-parse fetch stash blame grep ls-files remote config".split())
_RUNS_NOTHING = frozenset(
    "--version --help -h --collect-only --co --setup-plan --fixtures --markers --dry-run --listTests --list-tests --just-print".split()
)


def no_facts(event: Event) -> Doc:
    return {"project": event.project, "edits": {}, "floor": 0, "ran": {}, "skills": {}, "commits": {}, "uat": {}}


def with_tool(doc: Doc | None, event: Event) -> Doc | None:
    data = event.data
    action = data.get("action")
    doc = no_facts(event) if doc is None else doc
    if data.get("claimed"):
        return None
    if action == "edit" and event.kind == "tool.finished":
        return _edited(doc, event)
    if action == "shell" and data.get("command"):
        return _ran(doc, event) if not data.get("written") else _edited(_ran(doc, event) or doc, event)
    if action in ("mcp", "other") and data.get("written"):
        return _edited(doc, event)
    if action == "skill" and data.get("skill") and data.get("ok") is not False:
        who = [event.seq, event.at, event.session, data.get("branch", "")]
        return {**doc, "skills": with_newest(doc["skills"], data["skill"], who, MOST_SKILLS), "at": event.at}
    return None


def _edited(doc: Doc, event: Event) -> Doc:
    edits, floor = doc["edits"], doc["floor"]
    named = event.data.get("written") or event.data.get("paths") or (SOMEWHERE,)
    for path in named:
        edits = with_newest(edits, path, event.seq, MOST_EDITS + 1)
        if len(edits) > MOST_EDITS:
            oldest = next(iter(edits))
            floor = edits[oldest]
            edits = {key: seq for key, seq in edits.items() if key != oldest}
    return {**doc, "edits": edits, "floor": floor, "at": event.at}


def _ran(doc: Doc, event: Event) -> Doc | None:
    """A command without an exit code (still running, interrupted) is no fact at all.

    One whose exit code was found out later is a fact of the moment when it ended: what was edited since makes it stale.
    """
    data = event.data
    code = data.get("exit_code")
    if code is None or data.get("claimed") or data.get("detached") or data.get("interrupted"):
        return None
    seq = data["of"] if event.kind == "tool.exit_read" else event.seq
    analysis = analyse_command(data["command"], code, data.get("output", ""))
    ran, made = doc["ran"], doc["commits"]
    for command in analysis.commands[:MOST_PROGRAMS]:
        outcome = _outcome(command, code, len(analysis.commands) == 1)
        if outcome is None:
            continue
        fact = [seq, event.at, outcome, event.session, data.get("branch", ""), dict(data.get("content") or {})]
        ran = _with_latest(ran, reading_of(command)[:LONGEST_COMMAND], fact, MOST_COMMANDS)
        if outcome == 1 and reading_of(command).startswith("git commit"):
            made = _with_latest(made, event.session, [*fact[:2], fact[4]], MOST_COMMITS)
    if ran is doc["ran"]:
        return None
    return {**doc, "ran": ran, "commits": made, "at": event.at}


def _outcome(command: ShellCommand, code: int, alone: bool) -> int | None:
    """1: it ran and exited 0 · 0: it failed · None: not a run, or how it ended does not show."""
    invocation = command.invocation
    if command.ran is Ran.NO or invocation.shadowed or not is_real_run(command.words):
        return None
    failed = command.exit_code not in (None, 0) or (code != 0 and alone)
    if failed:
        return 0
    sure = command.ran is Ran.YES and command.exit_code == 0 and not command.pending and not invocation.tampered
    return 1 if sure and not invocation.background else None


def is_real_run(words: list[str]) -> bool:
    """Nobody asks for proof of an `ls`, and hundreds of them would push the proof out that somebody asks for."""
    name = words[0].rpartition("/")[2]
    if name == "git" and reading_words(words)[1:2] and reading_words(words)[1] in _GIT_LOOKS:
        return False
    if name in _LOOKS_ONLY or any(word in _RUNS_NOTHING for word in words[1:]):
        return False
    return not (name in ("make", "gmake") and any(re.match(r"^-[a-zA-Z]*[nq]", word) for word in words[1:]))


def only_looks(command: str) -> bool:
    found = analyse_command(command)
    return not found.problem and not any(is_real_run(one.words) for one in found.commands)


def reading_of(command: ShellCommand) -> str:
    """Its words in one line; options between `git` and its verb are left out."""
    return " ".join(reading_words(command.words))


def reading_words(given: list[str]) -> list[str]:
    words = [_one_word(word) for word in given]
    words[0] = words[0].rpartition("/")[2] or words[0]
    if words[0] == "git":
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
        words = ["git", *words[at:]]
    return words


def _one_word(word: str) -> str:
    return "".join(BLANK if c.isspace() else c for c in word)


def with_check(doc: Doc | None, event: Event) -> Doc | None:
    """What was found out about a check goes before what its exit code alone says."""
    check = event.data
    if not isinstance(check, CheckFinished):
        return None
    doc = doc or no_facts(event)
    readings = _readings_of(check)
    ran = {command: fact for command, fact in doc["ran"].items() if fact[0] != check.of or command not in readings}
    outcome = {"passed": 1, "failed": 0}.get(check.verdict, -1)
    fact = [check.of, event.at, outcome, event.session, check.branch, dict(check.content), check.why]
    for reading in readings:
        ran = with_newest(ran, reading[:LONGEST_COMMAND], fact, MOST_COMMANDS)
    return {**doc, "ran": ran, "at": event.at}


def _readings_of(check: CheckFinished) -> list[str]:
    """How rules may name it: the program that was typed, and the tool that it came down to (`python -m pytest`)."""
    commands = [reading_words(one.words) for one in analyse_command(check.command).commands if is_real_run(one.words)]
    named = [words for words in commands if check.runner in (word.rpartition("/")[2] for word in words)]
    shown = [" ".join(words) for words in named or commands]
    return list(dict.fromkeys([*shown[:MOST_READINGS], " ".join([check.runner, *map(_one_word, check.operands)])]))


def _with_latest(known: dict[str, Any], name: str, fact: list[Any], most: int) -> dict[str, Any]:
    """Of two exit codes that were found out later, the one of the earlier command may come last."""
    return known if name in known and known[name][0] > fact[0] else with_newest(known, name, fact, most)


def with_uat(doc: Doc | None, event: Event) -> Doc | None:
    scenario = event.data.get("scenario") or event.data.get("name")
    if not isinstance(scenario, str):
        return None
    doc = doc or no_facts(event)
    outcome = event.data.get("outcome") or event.data.get("status") or event.data.get("verdict")
    fact = [event.seq, event.at, int(outcome in ("passed", "pass", "success")), event.session]
    return {**doc, "uat": with_newest(doc["uat"], scenario[:200], fact, MOST_RUNS), "at": event.at}


def with_measure(doc: Doc | None, event: Event) -> Doc:
    """Sizes per branch; per requirement, up to which event its facts are older than a change no tool told us of."""
    doc = doc or no_facts(event)
    data, before = event.data, doc.get("seen") or {}
    seen, touched = {}, dict(doc.get("touched") or {})
    for name, digest in (data.get("covers") or {}).items():
        seen[name] = [digest, data.get("as_of", 0)]
        if name in before and before[name][0] != digest:
            touched[name] = before[name][1]
    size = {"lines": data.get("lines", 0), "base": data.get("base", ""), "at": event.at}
    sizes = with_newest(doc.get("sizes") or {}, str(data.get("branch", "")), size, MOST_SIZES)
    touched = {name: seq for name, seq in touched.items() if name in seen}
    return {**doc, "sizes": sizes, "seen": seen, "touched": touched, "at": event.at}


def with_look(doc: Doc | None, event: Event) -> Doc:
    return {**(doc or no_facts(event)), "missing": list(event.data.get("missing") or ())[:50], "at": event.at}

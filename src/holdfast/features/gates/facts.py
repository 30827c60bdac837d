"""What was recorded of a project's tools: edits, commands and how they exited, skills, commits, UAT runs.

Facts know nothing of rules. Whether one is proof of something is asked later, with the rules of that moment.
"""

import re
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.gates.bounded import with_newest
from holdfast.features.gates.shell import commits, proven, single_blanks

MOST_EDITS, MOST_COMMANDS, MOST_SKILLS, MOST_COMMITS, MOST_RUNS, MOST_SIZES = 60, 40, 30, 20, 30, 20
LONGEST_COMMAND = 400
SOMEWHERE = "*"
"""Stands for an edit whose files the agent did not name: it may be any file."""
_LOOKS_ONLY = re.compile(
    r"^(ls|cat|head|tail|grep|rg|find|fd|cd|echo|pwd|wc|which|sleep|tree|stat|file|env|date|whoami|jq|less|awk|true"
    r"|git\s+(status|log|diff|show|branch|rev-parse|fetch|stash\s+list)|holdfast|gh\s+\w+\s+(view|list))(\s|$)"
)


def no_facts(event: Event) -> Doc:
    return {"project": event.project, "edits": {}, "floor": 0, "ran": {}, "skills": {}, "commits": {}, "uat": {}}


def with_tool(doc: Doc | None, event: Event) -> Doc | None:
    data = event.data
    action = data.get("action")
    doc = no_facts(event) if doc is None else doc
    if action == "edit" and event.kind == "tool.finished":
        return _edited(doc, event)
    if action == "shell" and data.get("command"):
        return _ran(doc, event)
    if action == "skill" and data.get("skill") and data.get("ok") is not False:
        who = [event.seq, event.at, event.session, data.get("branch", "")]
        return {**doc, "skills": with_newest(doc["skills"], data["skill"], who, MOST_SKILLS), "at": event.at}
    return None


def _edited(doc: Doc, event: Event) -> Doc:
    edits, floor = doc["edits"], doc["floor"]
    for path in event.data.get("paths") or (SOMEWHERE,):
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
    code = event.data.get("exit_code")
    command = single_blanks(event.data["command"])[:LONGEST_COMMAND]
    if code is None or _only_looks(command):
        return None
    seq = event.data["of"] if event.kind == "tool.exit_read" else event.seq
    fact = [seq, event.at, int(code == 0), event.session, event.data.get("branch", "")]
    changed = {**doc, "ran": _with_latest(doc["ran"], command, fact, MOST_COMMANDS), "at": event.at}
    if code == 0 and commits(command):
        changed["commits"] = _with_latest(doc["commits"], event.session, [*fact[:2], fact[4]], MOST_COMMITS)
    return changed


def _with_latest(known: dict[str, Any], name: str, fact: list[Any], most: int) -> dict[str, Any]:
    """Of two exit codes that were found out later, the one of the earlier command may come last."""
    return known if name in known and known[name][0] > fact[0] else with_newest(known, name, fact, most)


def _only_looks(command: str) -> bool:
    """Nobody asks for proof of an `ls`, and hundreds of them would push the proof out that somebody asks for."""
    return all(_LOOKS_ONLY.match(part) for part in proven(command) or (command,))


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

"""Rules over what was done: a failure that was repaired, a command that only worked another way, a choice."""

import re
from collections.abc import Iterator, Sequence

from holdfast.core.ports import Doc
from holdfast.features.memory.model import DEED, USER, line
from holdfast.features.memory.rules.candidate import Candidate

NEAR = 4
"""A variant that comes later than so many commands is another matter."""
SHOWN = 120
_DULL = re.compile(r"^\s*(?:cd|ls|cat|grep|rg|find|echo|pwd|which|head|tail|sed|git (?:status|diff|log|show))\b")
_CHAINED = re.compile(r"\s*(?:&&|;|\|\|)\s*")


def needed(acts: Sequence[Doc], act: Doc) -> bool:
    """Whether a rule below can still want this act. A turn in which nothing failed keeps next to nothing."""
    if act["action"] == "ask":
        return bool(act["ok"] and act["text"])
    if act["action"] == "shell" and not act["ok"] and not _DULL.match(act["command"]):
        return True
    failed = [n for n, known in enumerate(acts) if known["action"] == "shell" and not known["ok"]]
    if not failed:
        return False
    since = acts[failed[-1] + 1 :]
    if act["action"] == "edit":
        return act["ok"] and not any(a["action"] == "edit" and a["paths"] == act["paths"] for a in since)
    near = sum(a["action"] == "shell" for a in since) < NEAR
    return near or any(_name(acts[n]) == _name(act) for n in failed)


def repaired(acts: Sequence[Doc]) -> Iterator[Candidate]:
    """It failed, files were changed, it passed."""
    done: set[str] = set()
    for at, act in enumerate(acts):
        if act["action"] != "shell" or act["ok"] or _name(act) in done or _DULL.match(act["command"]):
            continue
        passed = next((n for n in range(at + 1, len(acts)) if _same_passed(act, acts[n])), 0)
        edits = [a for a in acts[at:passed] if a["action"] == "edit" and a["ok"]]
        if passed and edits:
            done.add(_name(act))
            yield _bug_fix(act, edits, acts[passed])


def _same_passed(failed: Doc, act: Doc) -> bool:
    return act["action"] == "shell" and act["ok"] and _name(act) == _name(failed)


def _bug_fix(failed: Doc, edits: Sequence[Doc], passed: Doc) -> Candidate:
    files = tuple(dict.fromkeys(path for edit in edits for path in edit["paths"]))[:5]
    short = ", ".join(path.rpartition("/")[2] for path in files)
    return Candidate(
        type="bug_fix", origin=DEED, importance=6, files=files,
        text=f"`{line(failed['command'], SHOWN)}` failed and passes since {short or 'some files'} changed.",
        detail=line(failed["text"], 300),
        evidence=(failed["seq"], *(edit["seq"] for edit in edits[:5]), passed["seq"]),
    )  # fmt: skip


def worked_otherwise(acts: Sequence[Doc]) -> Iterator[Candidate]:
    """A command failed, and a variant of it worked with no file changed between."""
    for at, act in enumerate(acts):
        if act["action"] != "shell" or act["ok"] or _DULL.match(act["command"]):
            continue
        later: list[Doc] = []
        for other in acts[at + 1 :]:
            if other["action"] == "edit" or len(later) == NEAR:
                break
            if other["action"] == "shell":
                later.append(other)
        variant = next((o for o in later if o["ok"] and _variant(act["command"], o["command"])), None)
        if variant and not any(not o["ok"] and o["command"] == variant["command"] for o in later):
            yield Candidate(
                type="gotcha", origin=DEED, importance=6, detail=line(act["text"], 300),
                text=f"`{line(act['command'], SHOWN)}` fails here; `{line(variant['command'], SHOWN)}` works.",
                evidence=(act["seq"], variant["seq"]), files=tuple(act["paths"][:5]),
            )  # fmt: skip


def chosen(acts: Sequence[Doc]) -> Iterator[Candidate]:
    """The agent offered alternatives and the user took one."""
    for act in acts:
        if act["action"] == "ask" and act["ok"] and act["text"]:
            yield Candidate(
                type="decision", origin=USER, importance=8, text=f"Chosen by the user: {line(act['text'], 300)}",
                evidence=(act["seq"],),
            )  # fmt: skip


def _name(act: Doc) -> str:
    """What a command is, without where it was run."""
    parts = [p for p in _CHAINED.split(act["command"]) if p and not p.startswith(("cd ", "export "))]
    return " ".join(parts[-1].split()) if parts else act["command"]


def _variant(failed: str, passed: str) -> bool:
    one, other = set(failed.split()), set(passed.split())
    return failed != passed and len(one & other) * 3 >= max(len(one), len(other))

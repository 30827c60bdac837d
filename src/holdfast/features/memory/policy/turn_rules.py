"""Learns from a finished turn: repaired failures, commands that worked another way, explicit requests."""

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.features.memory.requests import explicit_requests
from holdfast.features.memory.state.documents import DEED, USER, Act, Turn, one_line
from holdfast.features.memory.state.words import files_in


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """`text` may be injected; `detail` quotes tools and is only shown on request."""

    type: str
    text: str
    origin: str
    importance: int
    evidence: tuple[int, ...]
    files: tuple[str, ...] = ()
    detail: str = ""
    uncertain: bool = False
    """A person decides first; until then it is injected nowhere."""


NEAR = 4
"""A variant after more commands than this is unrelated."""
SHOWN = 120
# Commands that only look: a failing `grep` teaches nothing.
_DULL = lazy_pattern(r"^\s*(?:cd|ls|cat|grep|rg|find|echo|pwd|which|head|tail|sed|git (?:status|diff|log|show))\b")
_CHAINED = lazy_pattern(r"\s*(?:&&|;|\|\|)\s*")


def _is_failure(act: Act) -> bool:
    """A failed command from which a rule may learn."""
    return act.action == "shell" and not act.ok and not _DULL.match(act.command)


def is_needed(acts: Sequence[Act], act: Act) -> bool:
    """Whether a rule below may use this act. A turn without failures keeps next to nothing."""
    if _is_failure(act):
        return True
    # Apart from questions every rule starts with a failed command.
    failed = [n for n, earlier in enumerate(acts) if earlier.action == "shell" and not earlier.ok]
    if not failed:
        return False
    since = acts[failed[-1] + 1 :]
    if act.action == "edit":
        return act.ok and not _is_edited_again(since, act)
    near = sum(a.action == "shell" for a in since) < NEAR
    return near or any(_command_name(acts[n]) == _command_name(act) for n in failed)


def _is_edited_again(since: Sequence[Act], act: Act) -> bool:
    """A second edit of the same file since the failure adds nothing."""
    return any(earlier.action == "edit" and earlier.paths == act.paths for earlier in since)


def repaired_failures(acts: Sequence[Act]) -> Iterator[Candidate]:
    """It failed, files were changed, it passed."""
    done: set[str] = set()
    for at, act in enumerate(acts):
        if _command_name(act) in done or not _is_failure(act):
            continue
        passed = _first_pass(acts, at)
        edits = [a for a in acts[at:passed] if a.action == "edit" and a.ok]
        if passed and edits:
            done.add(_command_name(act))
            yield _bug_fix(act, edits, acts[passed])


def _first_pass(acts: Sequence[Act], at: int) -> int:
    """Where the failed command passes; 0 for "never": it precedes anything that can pass."""
    name = _command_name(acts[at])
    later = (n for n in range(at + 1, len(acts)) if acts[n].action == "shell" and acts[n].ok)
    return next((n for n in later if _command_name(acts[n]) == name), 0)


def _bug_fix(failed: Act, edits: Sequence[Act], passed: Act) -> Candidate:
    files = tuple(dict.fromkeys(path for edit in edits for path in edit.paths))[:5]
    short = ", ".join(path.rpartition("/")[2] for path in files)
    return Candidate(
        type="bug_fix", origin=DEED, importance=6, files=files,
        text=f"`{one_line(failed.command, SHOWN)}` failed and passes since {short or 'some files'} changed.",
        detail=one_line(failed.text, 300),
        evidence=(failed.seq, *(edit.seq for edit in edits[:5]), passed.seq),
    )  # fmt: skip


def worked_otherwise(acts: Sequence[Act]) -> Iterator[Candidate]:
    """A command failed, and a variant worked without edits in between."""
    for at, act in enumerate(acts):
        if _is_failure(act) and (variant := _working_variant(act, acts[at + 1 :])):
            yield Candidate(
                type="gotcha", origin=DEED, importance=6, detail=one_line(act.text, 300),
                text=f"`{one_line(act.command, SHOWN)}` fails here; `{one_line(variant.command, SHOWN)}` works.",
                evidence=(act.seq, variant.seq), files=tuple(act.paths[:5]),
            )  # fmt: skip


def _working_variant(failed: Act, after: Sequence[Act]) -> Act | None:
    # After an edit the success may be due to the edit, which is `repaired_failures`.
    unedited = itertools.takewhile(lambda act: act.action != "edit", after)
    later = list(itertools.islice((act for act in unedited if act.action == "shell"), NEAR))
    variant = next((act for act in later if act.ok and _is_variant(failed.command, act.command)), None)
    # If the variant itself failed in between, it is flaky rather than the working way.
    is_flaky = variant and any(not act.ok and act.command == variant.command for act in later)
    return None if is_flaky else variant


def _command_name(act: Act) -> str:
    """The command without the folder it ran in."""
    # "cd web && npm test" and "npm test" are the same command.
    parts = [p for p in _CHAINED.split(act.command) if p and not p.startswith(("cd ", "export "))]
    return " ".join(parts[-1].split()) if parts else act.command


def _is_variant(failed: str, passed: str) -> bool:
    one, other = set(failed.split()), set(passed.split())
    # At least a third of the words in common: "npm test" and "npm run test" are variants.
    return failed != passed and len(one & other) * 3 >= max(len(one), len(other))


IMPORTANCE = {"rule": 8, "preference": 8, "fact": 7}


def said_by_user(turn: Turn) -> Iterator[Candidate]:
    evidence = (turn.prompt_seq,) if turn.prompt_seq else ()
    for request in explicit_requests(turn.prompt):
        yield Candidate(
            type=request.type, text=one_line(request.text), origin=USER, importance=IMPORTANCE[request.type],
            evidence=evidence, files=tuple(files_in(request.text)[:5]),
        )  # fmt: skip

"""What can be asked about checks: which ran, whether they still hold for the content as it is, and why or why not."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.core.checks import CheckKind, Selection, Verdict
from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.fingerprint import Fingerprint, shared_fingerprinter
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.features.checks.git_watch import find_place
from holdfast.features.checks.runners.spec import first_reason
from holdfast.features.checks.settings import DEFAULTS
from holdfast.features.checks.state import CHECKS, BranchChecks, CheckRun

# Runs that are listed, and documents (worktrees and branches) that are read for them.
MAX_LISTED = 50
MAX_DOCUMENTS = 20
PIPE_HINT = "Run it without the pipe, or begin with `set -o pipefail`."


class ListedRun(msgspec.Struct, kw_only=True):
    """A run as it is shown."""

    run: CheckRun
    worktree: str
    branch: str
    same_worktree: bool
    here: bool
    """In the caller's worktree and branch."""
    own: bool
    """By the session that asks."""
    current: bool | None
    """Whether the content is still the one it ran on; None when that is not known."""

    def as_row(self) -> dict[str, Any]:
        whole = msgspec.structs.asdict(self.run) | {"counts": counts_of(self.run)}
        rest = {name: getattr(self, name) for name in ("worktree", "branch", "here", "own", "current")}
        return whole | rest


def list_runs(call: Call) -> dict[str, Any]:
    """`session`, `kind`, `verdict` and `since` narrow it; newest first. `look` is false where the content of now does not matter."""
    with_content = call.args.get("look", True)
    now = _content_now(call) if with_content else Fingerprint(why_unknown="not asked for")
    runs = [run for run in _listed_runs(call, now) if _is_wanted(run.run, call.args)]
    return {"now": now.content, "why_unknown": now.why_unknown, "runs": [run.as_row() for run in runs[:MAX_LISTED]]}


def show_run(call: Call) -> dict[str, Any]:
    """One check by the number of its event, with the command it belongs to."""
    seq = int(call.args["seq"])
    event = call.reader.event(seq)
    if event is None or not isinstance(event.data, CheckFinished):
        raise CommandRefused(f"event {seq} is not a check", fix="See: holdfast check list")
    of = call.reader.event(event.data.of)
    origin = {"seq": seq, "at": event.at, "session": event.session, "agent": event.agent}
    output = {"exit_code": of.get("exit_code"), "output": of.get("output", of.get("error", ""))} if of else {}
    command = of.get("command", event.data.command) if of else event.data.command
    return {**msgspec.structs.asdict(event.data), **origin, **output, "command": command}


def explain_last(call: Call) -> dict[str, Any]:
    """Whether a check of a kind (test, unless another is named) holds here and now; else the nearest run, and why not.

    `dir` is the folder that must be covered, relative to the worktree: a run in a folder above it does.
    """
    kind, folder = str(call.args.get("kind") or CheckKind.TEST), str(call.args.get("dir") or ".")
    now = _content_now(call)
    runs = [run for run in _listed_runs(call, now) if run.run.kind == kind]
    holding, nearest = _nearest_runs(runs, now, folder)
    if nearest is None:
        return {"kind": kind, "holds": False, "why": f"no {kind} run is known here", "run": None, "hint": ""}
    why = _why_not(nearest, now, folder) or nearest.run.why
    row, hint = nearest.as_row(), _pipe_hint(nearest.run)
    return {"kind": kind, "holds": holding is not None, "why": why, "run": row, "hint": hint}


def _nearest_runs(runs: list[ListedRun], now: Fingerprint, folder: str) -> tuple[ListedRun | None, ListedRun | None]:
    """The run that holds, and the one that says most: that one, a failure of the same content, one here, any."""
    holding = _first_run(runs, lambda one: not _why_not(one, now, folder))
    failed = _first_run(runs, lambda one: bool(one.current) and one.same_worktree and one.run.verdict == Verdict.FAILED)
    if holding and failed and failed.run.seq > holding.run.seq:  # The same content, and it failed since.
        holding = None
    return holding, holding or failed or _first_run(runs, lambda one: one.here) or _first_run(runs, lambda _: True)


def _first_run(runs: list[ListedRun], fits: Callable[[ListedRun], bool]) -> ListedRun | None:
    return next(filter(fits, runs), None)


def counts_of(run: CheckRun) -> str:
    counted = ((run.passed, "passed"), (run.failed, "failed"), (run.skipped, "skipped"))
    return ", ".join(f"{number} {word}" for number, word in counted if number)


def _why_not(listed: ListedRun, now: Fingerprint, folder: str) -> str:
    """Why a run does not count here and now; empty when it does."""
    run = listed.run
    if run.verdict != Verdict.PASSED:
        return run.why
    elsewhere = run.dir not in (".", folder) and not folder.startswith(f"{run.dir}/")
    return first_reason(
        (not run.content, "the content it ran on could not be fingerprinted in time"),
        (not now.is_known, f"the current content is unknown: {now.why_unknown}"),
        (not listed.current, "files changed after it"),
        (
            run.selection != Selection.ALL,
            f"only a part ran: {', '.join(run.operands[:5]) or 'as its flags say'}",
        ),
        (not listed.same_worktree, f"it ran in another worktree, {listed.worktree}"),
        (elsewhere, f"it ran in {run.dir} only"),
    )


def _pipe_hint(run: CheckRun) -> str:
    return PIPE_HINT if run.verdict == Verdict.UNKNOWN and "|" in run.command else ""


def _listed_runs(call: Call, now: Fingerprint) -> list[ListedRun]:
    worktree = find_place(call.project)
    here = (call.project, worktree.branch if worktree else "")
    runs = [_listed_run(call, doc, run, here, now) for doc in _check_documents(call) for run in doc.runs.values()]
    return sorted(runs, key=lambda one: (one.run.at, one.run.seq), reverse=True)


def _listed_run(call: Call, doc: BranchChecks, run: CheckRun, here: tuple[str, str], now: Fingerprint) -> ListedRun:
    return ListedRun(
        run=run,
        worktree=doc.worktree,
        branch=doc.branch,
        same_worktree=doc.worktree == here[0],
        here=(doc.worktree, doc.branch) == here,
        own=bool(call.session) and run.session == call.session,
        # The empty key is the fingerprint of the whole worktree.
        current=run.content.get("") == now.content if now.is_known and run.content.get("") else None,
    )


def _check_documents(call: Call) -> Iterable[BranchChecks]:
    """Documents of the project's sessions, and of its folder."""
    # First by the project of the session, then by folder: a session may run checks in another worktree.
    named = dict(CHECKS.list(call.reader, project=call.project, limit=MAX_DOCUMENTS))
    if call.project:
        named |= dict(CHECKS.list(call.reader, prefix=f"{call.project}\n", limit=MAX_DOCUMENTS))
    return named.values()


def _is_wanted(run: CheckRun, args: Any) -> bool:
    if run.at < int(args.get("since") or 0):
        return False
    return all(not args.get(name) or getattr(run, name) == args[name] for name in ("session", "kind", "verdict"))


def _content_now(call: Call) -> Fingerprint:
    """Always read again: files change without an event."""
    if find_place(call.project) is None:
        return Fingerprint(why_unknown="this is not a git repository")
    budget = (call.settings or DEFAULTS).look_ms / 1000
    return shared_fingerprinter().take_patiently(call.project, [()], budget)[0]

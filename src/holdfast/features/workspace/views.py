"""What people ask: what changed, what an undo would do, what is lost, and how much is kept."""

from typing import Any

import msgspec

from holdfast.core.feature import Call
from holdfast.core.kinds.workspace_events import WorkspaceChanged
from holdfast.core.ports import EventQuery
from holdfast.core.times import DAY
from holdfast.features.workspace import rescues
from holdfast.features.workspace.losses import describe_losses
from holdfast.features.workspace.observe import WORKSPACE
from holdfast.features.workspace.plans import as_answer, changed_files, find_here, plan_undo, steps_of
from holdfast.features.workspace.settings import DEFAULTS
from holdfast.features.workspace.timeline import Step, between

MOST_STEPS, MOST_EVENTS, MOST_LOSSES = 50, 2_000, 5


def show_plan(call: Call) -> dict[str, Any]:
    return as_answer(plan_undo(call)[1])


def show_rescue(call: Call) -> dict[str, Any]:
    return as_answer(rescues.plan_rescue(call)[1])


def show_diff(call: Call) -> dict[str, Any]:
    here = find_here(call)
    first, second = str(call.args.get("first") or ""), str(call.args.get("second") or "")
    changes = between(steps_of(call, here), first, second, call.reader, call.now)
    return {"root": here.name, "files": changed_files(here, changes)}


def list_steps(call: Call) -> list[dict[str, Any]]:
    """What changed files here, newest first."""
    here = find_here(call)
    return [_as_row(step) for step in reversed(steps_of(call, here)[-MOST_STEPS:])]


def _as_row(step: Step) -> dict[str, Any]:
    return {
        "seq": step.seq, "at": step.at, "session": step.session, "by": step.by, "call": step.call, "tool": step.tool,
        "files": list(dict.fromkeys(one.path for one in step.files)), "lost": sum(one.lost for one in step.files),
    }  # fmt: skip


def of_session(call: Call) -> dict[str, Any]:
    """What each call of a session changed, from the log alone: for pages."""
    query = EventQuery(
        session=str(call.args["session"]), kinds=(WorkspaceChanged.KIND,), limit=MOST_EVENTS, newest=True
    )
    calls: dict[str, dict[str, Any]] = {}
    for event in call.reader.events(query):
        data = event.data
        if not isinstance(data, WorkspaceChanged):
            continue
        row = calls.setdefault(data.of, {
            "seq": event.seq, "at": event.at, "by": data.by, "tool": data.tool, "call": data.call, "of": data.of,
            "root": data.root, "files": {},
        })  # fmt: skip
        for change in data.files:
            known = row["files"].setdefault(change.path, {"before": change.before, "after": "", "lost": 0})
            known["after"] = change.after
            known["lost"] += change.lost
    started = call.reader.seqs_of_keys(calls)
    return {name: _as_call(row, started.get(name, 0)) for name, row in calls.items()}


def _as_call(row: dict[str, Any], start: int) -> dict[str, Any]:
    lost = [one["lost"] for one in row["files"].values() if one["lost"]]
    said = describe_losses(sum(lost), len(lost))
    return {**row, "files": _acts(row["files"]), "start": start, "lost": sum(lost), "said": said}


def _acts(files: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    acts = []
    for path, one in files.items():
        if one["before"] != one["after"]:
            act = "created" if not one["before"] else "deleted" if not one["after"] else "changed"
            acts.append({"path": path, "act": act, "lost": one["lost"]})
    return acts


def list_losses(call: Call) -> list[dict[str, Any]]:
    """Calls of the last day that discarded uncommitted lines, newest first; in every worktree."""
    query = EventQuery(kinds=(WorkspaceChanged.KIND,), since=call.now - DAY, limit=MOST_EVENTS, newest=True)
    losses = []
    for event in reversed(call.reader.events(query)):
        data = event.data
        if isinstance(data, WorkspaceChanged) and event.session and any(one.lost for one in data.files):
            lost = [one.lost for one in data.files if one.lost]
            losses.append({"seq": event.seq, "at": event.at, "session": event.session, "root": data.root,
                           "said": describe_losses(sum(lost), len(lost))})  # fmt: skip
    return losses[:MOST_LOSSES]


def show_status(call: Call) -> dict[str, Any]:
    """How much is kept, and what is not."""
    settings = call.settings or DEFAULTS
    if not settings.snapshots:
        return {"on": False}
    recorder = WORKSPACE.recorder(call.state_dir)
    with recorder.lock:
        roots = [
            {
                "root": root.root, "current": root.current, "folders": len(root.folders), "problem": root.problem,
                "not_kept": dict(root.notes), "files": len(root.files), "pending": len(root.pending),
                "late": root.late,
            }
            for root in recorder.roots.values()
        ]  # fmt: skip
    return {
        "on": True, "versions": recorder.store.count(), "bytes": recorder.store.used_bytes(),
        "most_bytes": settings.megabytes << 20, "days": settings.days, "oldest": recorder.store.oldest(),
        "trouble": recorder.trouble, "roots": msgspec.to_builtins(roots), "losses": list_losses(call),
    }  # fmt: skip

"""`undo` and `rescue`: the two commands that write into a worktree."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.kinds.workspace_events import WorkspaceRestored
from holdfast.features.workspace import rescues
from holdfast.features.workspace.plans import Here, Plan, as_answer, plan_undo
from holdfast.features.workspace.restore import restore


def undo(call: Call) -> CommandResult:
    return _carry_out(call, *plan_undo(call))


def rescue(call: Call) -> CommandResult:
    return _carry_out(call, *rescues.plan_rescue(call))


def whose_calls(call: Call) -> str:
    """The session whose calls are taken back; empty if they are not one session's."""
    return plan_undo(call)[1].session


def whose_content(call: Call) -> str:
    return rescues.plan_rescue(call)[1].session


def _carry_out(call: Call, here: Here, plan: Plan) -> CommandResult:
    expected = str(call.args.get("expect") or "")
    if expected and expected != plan.id:
        raise CommandRefused("files changed since the difference was shown", fix="Look again, and repeat it.")
    missing = [one.path for one in plan.files if one.act == "missing"]
    if not plan.targets:
        why = f": the earlier content of {', '.join(missing[:5])} is not kept any more" if missing else ""
        raise CommandRefused(f"there is nothing to restore{why}")
    by = call.session if call.caller and call.who.is_agent else ""
    done = restore(here.recorder, here.root, plan.targets, plan.now, call.state_dir, by)
    here.recorder.settle(5.0)
    restored = WorkspaceRestored(
        root=plan.root, id=done, what=plan.what, files=len(plan.targets), missing=missing[:100]
    )
    event = own_event(restored, call.now, session=plan.session, project=call.project)
    answer: dict[str, Any] = {**as_answer(plan), "undo": done}
    return CommandResult((event,), answer=answer)

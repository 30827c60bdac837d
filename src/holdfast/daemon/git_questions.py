"""Answers git's own hooks: why a commit, push or move of a branch has to wait, or nothing."""

from typing import TYPE_CHECKING

from holdfast.core.decision import Delivery
from holdfast.core.git_context import locate

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

HOLD = "gates.hold"
LARGEST_BODY = 1 << 20
"""A fetch of thousands of branches; of a longer list the beginning is judged."""


def answer_git(daemon: "Daemon", delivery: Delivery) -> str:
    root = locate(delivery.cwd).get("root", "")
    if not root or not delivery.ancestors:
        return ""
    if daemon.pipeline.has_pending:
        # What hooks have just been answered counts: the call that is running, an approval.
        daemon.call(lambda: None)
    app, reader = daemon.app, daemon.app.store.reader()
    try:
        args = {"event": delivery.event, "lines": delivery.body[:LARGEST_BODY].decode("utf-8", "replace")}
        call = app.call(HOLD, args, reader, project=root, caller=delivery.ancestors[0])
        asked = app.command(HOLD, call)
    finally:
        reader.close()
    if asked.events:
        daemon.call(lambda: daemon.pipeline.commit_events(asked.events))
    answer = asked.answer if isinstance(asked.answer, dict) else {}
    return f"{answer['refusal']}\n" if answer.get("refusal") else ""

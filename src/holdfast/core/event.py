"""The event: the only truth. The table of kinds, and how old events are read today."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

BODY_LIMIT = 256 * 1024
"""Bytes of the agent's own payload that are kept with an event."""

HOOK_KINDS: dict[str, str] = {
    "session.started": "an agent session began, went on or was compacted (`source`, `model`)",
    "session.ended": "the agent said that the session is over (`reason`)",
    "prompt.submitted": "a prompt reached the agent (`prompt`; `synthetic` when no person typed it)",
    "prompt.expanded": "a slash command became a prompt (`command`, `prompt`)",
    "tool.started": "a tool is about to run (`call`, `action`, `input`, `command`, `paths`, `skill`)",
    "tool.finished": "a tool ran (as above, and `ok`, `exit_code`, `output`, `ms`)",
    "tool.failed": "a tool failed or was interrupted (as above, and `error`, `interrupted`)",
    "tool.batch": "all tools of one model turn are through (`calls`)",
    "permission.requested": "the agent asks the user for a permission",
    "permission.denied": "a permission was refused (`reason`)",
    "turn.ended": "the agent finished its turn (`message`, `again` when a stop was refused before, `background`)",
    "turn.failed": "the turn ended in an error (`error`)",
    "turn.interrupted": "the user interrupted the turn",
    "subagent.started": "a subagent began (`lane`, `lane_type`)",
    "subagent.ended": "a subagent ended (`lane`, `lane_type`, `message`)",
    "compact.started": "the context is about to be compacted (`trigger`)",
    "compact.ended": "the context was compacted (`trigger`, `summary`)",
    "notification": "the agent wants attention (`message`, `topic`)",
    "task.created": "the agent noted a task of its own (`task`, `subject`)",
    "task.completed": "the agent finished a task of its own (`task`, `subject`)",
    "setup.ran": "the agent's set-up ran (`trigger`)",
    "instructions.loaded": "an instruction file was read (`path`, `reason`)",
    "message.displayed": "a piece of an answer was shown",
    "cwd.changed": "the working directory moved (`old`, `new`)",
    "file.changed": "a watched file changed (`path`)",
    "config.changed": "the agent's settings changed (`path`)",
    "directory.added": "a directory was added to the session (`path`)",
    "model.switching": "another model is about to be used (`old`, `new`)",
    "model.switched": "another model is in use (`old`, `new`)",
    "model.requested": "the agent is about to call its model",
    "model.answered": "the model answered (`tokens`, `status`)",
    "worktree.created": "a worktree was made (`name`)",
    "worktree.removed": "a worktree was removed (`path`)",
    "elicitation.requested": "a tool server asks the user something (`message`)",
    "elicitation.answered": "the user answered a tool server",
    "teammate.idle": "a teammate of the agent has nothing to do",
    "unknown": "a payload nobody could read; kept as it came",
}

ENGINE_KINDS: dict[str, str] = {
    "decision.made": "Holdfast refused, asked or told the agent something (`of`, `verdict`, `reasons`, `contexts`)",
    "daemon.started": "the daemon began to serve (`version`, `pid`)",
    "daemon.stopped": "the daemon stopped in good order (`reason`)",
    "spool.drained": "deliveries that waited in the spool were taken in (`taken`, `known`, `torn`)",
    "store.restored": "a damaged database was set aside and a backup restored (`lost`, `quarantine`)",
    "state.rebuilt": "documents were made anew from the log (`features`, `events`)",
    "job.failed": "a background job gave up (`job`, `error`)",
    "note.added": "a person left a note in the log (`text`)",
}


class Event(msgspec.Struct, kw_only=True, frozen=True):
    """`data` holds the small normalised fields that reducers read and that are kept for ever; `body` expires."""

    key: str
    kind: str
    at: int
    session: str = ""
    project: str = ""
    agent: str = ""
    tool: str = ""
    data: Mapping[str, Any] = {}
    v: int = 1
    body: bytes = b""
    body_size: int = 0
    body_hash: str = ""
    seq: int = 0

    def get(self, name: str, default: Any = None) -> Any:
        return self.data.get(name, default)


Upcast = Callable[[Mapping[str, Any]], Mapping[str, Any]]
UPCASTS: dict[tuple[str, int], Upcast] = {}
"""(kind, version it was written in) → how its data reads one version later. Old rows are never rewritten."""


def upcast(kind: str, version: int, data: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    while step := UPCASTS.get((kind, version)):
        version, data = version + 1, step(data)
    return version, data


def current_version(kind: str) -> int:
    return 1 + max((v for k, v in UPCASTS if k == kind), default=0)

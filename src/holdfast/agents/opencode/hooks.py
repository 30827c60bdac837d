"""opencode, as version 1.18.33 behaves. It has plugins instead of hooks: ours (plugin.js) runs the hook."""

from pathlib import Path
from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.normalise import one_path
from holdfast.agents.payload_reader import Data, context_of, encode_reply, error, message, name, notice_of, reason_of
from holdfast.core.agent import Enforcement, Hook, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event

PLUGIN = Path(__file__).with_name("plugin.js")
# The installer puts the hook's command behind this text of the plugin.
COMMAND = "const COMMAND = "

HOOKS = (
    Hook("session.created", "session.started", "start"),
    Hook("session.seen", "session.started", "start"),
    Hook("session.ended", "session.ended"),
    Hook("chat.message", "prompt.submitted", "ask"),
    Hook("tool.execute.before", "tool.started", "ask"),
    Hook("tool.execute.after", "tool.finished", "ask"),
    Hook("tool.error", "tool.failed"),
    Hook("permission.asked", "permission.requested"),
    Hook("session.idle", "turn.ended", "ask"),
    Hook("session.error", "turn.failed"),
    Hook("session.compacted", "compact.ended"),
)
KINDS = {hook.event: hook.kind for hook in HOOKS}

TOOLS = {
    **dict.fromkeys(("write", "edit", "multiedit", "patch", "apply_patch"), "edit"),
    "bash": "shell",
    "read": "read",
    **dict.fromkeys(("grep", "glob", "list", "codesearch", "lsp"), "search"),
    **dict.fromkeys(("webfetch", "websearch"), "web"),
    "task": "agent",
    "skill": "skill",
    **dict.fromkeys(("todowrite", "todoread"), "todo"),
    **dict.fromkeys(("plan_enter", "plan_exit"), "plan"),
    "question": "ask",
}

ENFORCES: dict[str, Enforcement] = {"tool.started": "prevent", "turn.ended": "retry"}

IN_A_LANE = {"session.started": "subagent.started", "turn.ended": "subagent.ended", "session.ended": "subagent.ended"}
"""A subagent is a session of its own to opencode; to us it is a lane of the session that began it."""


def read_event(delivery: Delivery, payload: Payload) -> Event:
    return payload_reader.read_agent_event(
        TABLES, delivery, _flatten_payload(payload) if isinstance(payload, dict) else payload
    )


def _flatten_payload(payload: Payload) -> dict[str, Any]:
    """What the plugin functions were given, side by side."""
    tool_input, gave = (
        normalise.mapping_or_empty(payload.get("input")),
        normalise.mapping_or_empty(payload.get("output")),
    )
    parent = payload.get("parentID")
    child = isinstance(parent, str) and parent
    return {
        **payload,
        "tool": tool_input.get("tool"),
        # Before a tool its arguments are in the output, where plugins may change them;
        # afterwards in the input.
        "args": gave.get("args") or tool_input.get("args"),
        "call": tool_input.get("callID"),
        "result": gave,
        "lane": payload.get("sessionID") if child else None,
        "sessionID": parent if child else payload.get("sessionID"),
        "turn": normalise.mapping_or_empty(gave.get("message")).get("id"),
        "model": normalise.mapping_or_empty(normalise.mapping_or_empty(gave.get("message")).get("model")).get(
            "modelID"
        ),
        "prompt": _prompt_text(gave.get("parts")),
    }


def _prompt_text(parts: Any) -> str | None:
    if not isinstance(parts, list):
        return None
    # Parts that opencode adds itself are no words of the person.
    typed = [part.get("text") for part in map(normalise.mapping_or_empty, parts[:100]) if not part.get("synthetic")]
    return "\n".join(text for text in typed if isinstance(text, str))


def _add_result(data: Data, payload: Payload) -> None:
    result = normalise.mapping_or_empty(payload.get("result"))
    code = normalise.number_or_none(normalise.mapping_or_empty(result.get("metadata")).get("exit"))
    data["ok"] = not code
    payload_reader.add_output(data, result.get("output"))
    if data["action"] == "shell" and isinstance(code, int):
        data["exit_code"] = code


def _add_failure(data: Data, _payload: Payload) -> None:
    data["ok"] = False


def _add_start_source(data: Data, payload: Payload) -> None:
    data["source"] = "startup" if payload.get("hook") == "session.created" else "resume"


def _error_text(value: Any) -> str | None:
    details = normalise.mapping_or_empty(value)
    return error(normalise.mapping_or_empty(details.get("data")).get("message") or details.get("name") or value)


def _mark_interrupted(data: Data, payload: Payload) -> None:
    if normalise.mapping_or_empty(payload.get("error")).get("name") == "MessageAbortedError":
        data["interrupted"] = True


def _event_kind(kind: str, data: Data) -> str:
    if kind == "turn.failed" and data.get("interrupted"):
        kind = "turn.interrupted"
    return IN_A_LANE.get(kind, kind) if data.get("lane") else kind


TABLES = payload_reader.Tables(
    agent="opencode",
    kinds=KINDS,
    common=(("cwd", "directory", one_path), ("lane", "lane", name), ("call", "call", name), ("turn", "turn", name)),
    fields={
        "chat.message": (("prompt", "prompt", payload_reader.prompt), ("model", "model", name)),
        "session.ended": (("reason", "reason", name),),
        "session.idle": (("message", "message", message),),
        "session.error": (("error", "error", _error_text),),
        "tool.error": (("error", "error", _error_text),),
        "permission.asked": (("message", "message", message),),
    },
    with_tool=frozenset({"tool.execute.before", "tool.execute.after", "tool.error"}),
    tools=TOOLS,
    tool_name="tool",
    tool_input="args",
    session=lambda payload: payload.get("sessionID"),
    native=lambda _delivery, payload: payload.get("hook"),
    # Outside of a git repository opencode names `/` as the worktree.
    project=lambda _delivery, payload: one_path(payload.get("worktree")) if payload.get("worktree") != "/" else None,
    extras={
        "chat.message": payload_reader.take_out,
        "tool.execute.after": _add_result,
        "tool.error": _add_failure,
        "session.created": _add_start_source,
        "session.seen": _add_start_source,
        "session.error": _mark_interrupted,
    },
    kind_of=_event_kind,
)


def write_reply(event: Event, decision: Decision) -> bytes:
    """Read by our own plugin: it throws, appends to the prompt or goes on with the session."""
    reply: dict[str, Any] = {}
    if decision.verdict == "deny" and event.kind in ENFORCES:
        goes_on = event.kind == "turn.ended"  # Our plugin sends the reason as a prompt then.
        reply = {"deny": payload_reader.spoken_reason(decision) if goes_on else reason_of(decision)}
    if decision.contexts:
        reply["context"] = context_of(decision.contexts)
    if decision.notices:
        reply["notice"] = notice_of(decision)
    return encode_reply(reply)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    return normalise.mapping_or_empty(payload).get("agent") == "opencode"

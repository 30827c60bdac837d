"""What `agent.toml` cannot say of Claude Code's hooks."""

from typing import Any

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.claude_code.attribution import APPROVED_PLAN, is_notice, typed_words
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.normalise import mapping_or_empty
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery
from holdfast.core.kinds.agent_events import PLAN


def _add_server(data: Data, payload: Payload) -> None:
    if server := payload_reader.name(mapping_or_empty(payload.get("mcp_server")).get("name")):
        data["server"] = server


def _add_result(data: Data, payload: Payload) -> None:
    _add_server(data, payload)
    response = payload.get("tool_response")
    payload_reader.add_output(data, response)
    add_ending(data, payload.get("tool_name"), mapping_or_empty(response))


def add_ending(data: Data, tool: Any, result: Payload) -> None:
    """How a call that did not fail ended; transcripts have the same fields."""
    interrupted = result.get("interrupted") is True
    detached = bool(result.get("backgroundTaskId")) or result.get("isAsync") is True
    data["ok"] = not interrupted
    if interrupted:
        data["interrupted"] = True
    if detached:
        data["detached"] = True
    # A command still running has no exit code yet, and one that Claude "interprets" (grep found nothing) had not 0.
    if tool == "Bash" and not (interrupted or detached or result.get("returnCodeInterpretation")):
        data["exit_code"] = 0


def _add_failure(data: Data, payload: Payload) -> None:
    _add_server(data, payload)
    payload_reader.mark_failed(data, payload.get("error"))


def _mark_synthetic(data: Data, _payload: Payload) -> None:
    """Claude Code reports a finished background task to its model by a prompt of its own."""
    prompt = data.get("prompt", "")
    words = "" if is_notice(prompt) else typed_words(prompt)
    if words:
        data["prompt"] = words
        if words.startswith(APPROVED_PLAN):
            data["source"] = PLAN
    elif prompt:
        data["synthetic"] = True


def _mark_compaction(data: Data, payload: Payload) -> None:
    """Each compaction ends like a subagent that never began."""
    if payload.get("agent_type") == "":
        data["compaction"] = True


def _event_kind(kind: str, data: Data) -> str:
    """The end of a compaction's own call is no end of a subagent."""
    return "model.answered" if kind == "subagent.ended" and data.get("compaction") else kind


TABLES = load_tables(
    __file__,
    extras={
        "PreToolUse": _add_server,
        "PostToolUse": _add_result,
        "PostToolUseFailure": _add_failure,
        "PermissionRequest": _add_server,
        "PermissionDenied": _add_server,
        "UserPromptSubmit": _mark_synthetic,
        "SubagentStop": _mark_compaction,
    },
    kind_of=_event_kind,
)

# Never sent by Claude Code, but by agents that took over its hooks.
FOREIGN_FIELDS = frozenset(("timestamp", "conversation_id", "cursor_version", "sessionId"))
FOREIGN_ENV = frozenset((
    "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR", "CURSOR_VERSION", "CURSOR_PROJECT_DIR", "COPILOT_HOME", "CODEX_HOME",
))  # fmt: skip


def _is_foreign_transcript(path: str) -> bool:
    """No transcript, a rollout of Codex, or a session of Factory droid."""
    return not path or path.startswith("/rollout-", path.rfind("/")) or "/.factory/sessions/" in path


def recognise_payload(delivery: Delivery, payload: Payload) -> bool:
    """Payload before environment: an agent started from another one's shell inherits all its variables."""
    known = mapping_or_empty(payload)
    transcript = known.get("transcript_path")
    named = isinstance(known.get("session_id"), str) and isinstance(known.get("hook_event_name"), str)
    if not named or not isinstance(transcript, str):
        return False
    if not FOREIGN_FIELDS.isdisjoint(known) or _is_foreign_transcript(transcript):
        return False
    return delivery.env.get("CLAUDECODE") == "1" or FOREIGN_ENV.isdisjoint(delivery.env)


AGENT = make_agent(__package__, TABLES, recognise_payload)

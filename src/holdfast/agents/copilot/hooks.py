"""What `agent.toml` cannot say of GitHub Copilot CLI's hooks."""

import re

from holdfast.agents import normalise, payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery
from holdfast.core.event import Event

STATUS_LINE = re.compile(r"^<(?:shellId: [^<>\n]{1,100} completed|exited) with exit code (\d{1,3})>\s*\Z", re.MULTILINE)
"""Behind the output of a command that ran to its end; without the shell's id in older versions."""


def _add_result(data: Data, payload: Payload) -> None:
    """A failing command is a success with an exit code in its text."""
    result = normalise.mapping_or_empty(payload.get("toolResult"))
    output = result.get("textResultForLlm", result.get("text_result_for_llm"))
    payload_reader.mark_exit(data, normalise.exit_code_at_end(output, STATUS_LINE))
    if "exit_code" not in data:
        data["ok"] = result.get("resultType", result.get("result_type")) != "failure"
    payload_reader.add_output(data, output)


def _add_failure(data: Data, payload: Payload) -> None:
    payload_reader.mark_failed(data, payload.get("error"))


def _rename_source(data: Data, _payload: Payload) -> None:
    # What Copilot calls `new` is `startup` in other agents.
    if data.get("source") == "new":
        data["source"] = "startup"


TABLES = load_tables(
    __file__,
    extras={
        "postToolUse": _add_result,
        "postToolUseFailure": _add_failure,
        "sessionStart": _rename_source,
        "userPromptSubmitted": payload_reader.remove_own_words,
    },
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = normalise.mapping_or_empty(payload)
    # Cursor names a conversation.
    if "conversation_id" in fields:
        return False
    if isinstance(fields.get("sessionId"), str):
        return "timestamp" in fields
    event = fields.get("hook_event_name")
    pascal = isinstance(fields.get("session_id"), str) and isinstance(event, str) and event in TABLES.aliases
    transcript = fields.get("transcript_path")
    # Copilot's own transcript is called events.jsonl.
    elsewhere = isinstance(transcript, str) and not transcript.endswith("/events.jsonl")
    return pascal and isinstance(fields.get("timestamp"), str) and not elsewhere


def event_mark(event: Event, payload: Payload) -> str:
    """Milliseconds since 1970 in one spelling, ISO in the other; made once for all hooks of an event."""
    stamp = payload.get("timestamp")
    if isinstance(stamp, str):
        stamp = normalise.milliseconds_of(stamp)
    if not isinstance(stamp, int):
        return ""
    data = event.data
    # Only what both spellings of the payload carry, or one happening would get two marks.
    about = {key: data[key] for key in ("input", "prompt", "error", "message") if key in data}
    return f"@{stamp}{payload_reader.facts_checksum(about)}"


AGENT = make_agent(__package__, TABLES, recognise_payload, mark=event_mark)

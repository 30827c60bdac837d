"""What `agent.toml` cannot say of Gemini CLI's hooks."""

import itertools
from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery

# Tags around a command's output, and lines of Gemini's own behind it.
WRAPPED = "<untrusted_context>\n"
OWN_LINES = ("Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")


def _add_result(data: Data, payload: Payload) -> None:
    """Failing commands too; their exit code is only in the text for the model."""
    response = normalise.mapping_or_empty(payload.get("tool_response"))
    problem = normalise.mapping_or_empty(response.get("error")).get("message") or response.get("error")
    data["ok"] = not problem
    output = response.get("llmContent")
    payload_reader.add_output(data, plain_output(output))
    if isinstance(problem, str) and problem:
        data["error"] = normalise.cap_text(problem, normalise.ERROR)
    if data["action"] == "shell" and (code := exit_code_in(output)) is not None:
        data["exit_code"], data["ok"] = code, code == 0


def plain_output(told: Any) -> Any:
    """What a command printed, without the tags and lines that Gemini puts around it for its model."""
    if not isinstance(told, str) or not told.startswith(WRAPPED):
        return told
    lines = told.removeprefix(WRAPPED).removesuffix("</untrusted_context>").strip().splitlines()
    while lines and lines[-1].startswith(OWN_LINES):
        lines.pop()
    text = "\n".join(lines).removeprefix("Output: ")
    return "" if text == "(empty)" else text


def exit_code_in(output: Any) -> int | None:
    """Gemini adds lines after the output: the exit code unless it is 0, and last the group's number, which only a command
    that ran to its end has."""
    if not isinstance(output, str):
        return None
    lines = output[-400:].removesuffix("</untrusted_context>").rstrip().splitlines()
    own = list(itertools.takewhile(lambda line: line.startswith(OWN_LINES), reversed(lines)))
    if exit_line := next((line for line in own if line.startswith("Exit Code: ")), None):
        return normalise.exit_code_in(exit_line)
    ended = bool(own) and own[0].startswith("Process Group PGID: ")
    return 0 if ended and not any(line.startswith(("Signal: ", "Error: ")) for line in own) else None


def _rename_topic(data: Data, _payload: Payload) -> None:
    """The same topic means the same in every agent."""
    if data.get("topic") == "ToolPermission":
        data["topic"] = "permission_prompt"


def _event_kind(kind: str, data: Data) -> str:
    # Comes through registrations without our matcher `manual`.
    return "model.requested" if kind == "compact.started" and data.get("trigger") == "auto" else kind


TABLES = load_tables(
    __file__,
    extras={"BeforeAgent": payload_reader.remove_own_words, "AfterTool": _add_result, "Notification": _rename_topic},
    kind_of=_event_kind,
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    """Qwen Code sends the same and a permission mode; Copilot names no transcript where the names are shared."""
    fields = normalise.mapping_or_empty(payload)
    texts = ("session_id", "hook_event_name", "transcript_path", "timestamp")
    if not all(isinstance(fields.get(key), str) for key in texts) or "permission_mode" in fields:
        return False
    return fields["hook_event_name"] in TABLES.definition.hooks and "conversation_id" not in fields


AGENT = make_agent(__package__, TABLES, recognise_payload)

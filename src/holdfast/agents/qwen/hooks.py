"""What `agent.toml` cannot say of Qwen Code's hooks."""

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.gemini.hooks import exit_code_in
from holdfast.agents.normalise import mapping_or_empty
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery


def _add_result(data: Data, payload: Payload) -> None:
    response = mapping_or_empty(payload.get("tool_response"))
    payload_reader.add_output(data, response.get("llmContent"))
    # Qwen reports failed tools by another event, PostToolUseFailure.
    data["ok"] = True
    if data["action"] == "shell" and (code := exit_code_in(response.get("llmContent"))) is not None:
        data["exit_code"] = code


def _add_failure(data: Data, payload: Payload) -> None:
    data["ok"] = False
    if data["action"] == "shell" and (code := exit_code_in(payload.get("error"))) is not None:
        data["exit_code"] = code


def _event_kind(kind: str, data: Data) -> str:
    """An empty prompt after every batch of tools reports that the batch is over."""
    return "tool.batch" if kind == "prompt.submitted" and data.get("synthetic") and not data.get("prompt") else kind


TABLES = load_tables(
    __file__,
    extras={
        "PostToolUse": _add_result,
        "PostToolUseFailure": _add_failure,
        "UserPromptSubmit": payload_reader.remove_own_words,
    },
    kind_of=_event_kind,
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = mapping_or_empty(payload)
    texts = ("session_id", "hook_event_name", "transcript_path", "timestamp", "permission_mode")
    return all(isinstance(fields.get(key), str) for key in texts) and "conversation_id" not in fields


AGENT = make_agent(__package__, TABLES, recognise_payload)

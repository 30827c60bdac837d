"""What `agent.toml` cannot say of Kimi Code's hooks."""

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.normalise import mapping_or_empty
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery

CLIENT = "kimi_code"
"""How its name of the client begins."""


def _add_result(data: Data, payload: Payload) -> None:
    """A failed command is reported by another event, PostToolUseFailure."""
    payload_reader.add_output(data, payload.get("tool_output"))
    payload_reader.mark_exit(data, 0)


def _add_failure(data: Data, _payload: Payload) -> None:
    payload_reader.mark_failed(data, data.get("error"))


TABLES = load_tables(__file__, extras={"PostToolUse": _add_result, "PostToolUseFailure": _add_failure})


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    client = mapping_or_empty(payload).get("client_type")
    return isinstance(client, str) and client.startswith(CLIENT)


AGENT = make_agent(__package__, TABLES, recognise_payload)

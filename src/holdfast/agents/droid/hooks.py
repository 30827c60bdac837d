"""What `agent.toml` cannot say of Factory droid's hooks."""

import re

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.normalise import exit_code_at_end, mapping_or_empty
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery

SESSIONS = "/.factory/sessions/"
STATUS_LINE = re.compile(r"^\[Process exited with code (\d{1,3})\]\s*\Z", re.MULTILINE)
"""Behind the output of a command that ran to its end."""


def _add_result(data: Data, payload: Payload) -> None:
    """droid reports no failed call: `sessions.jobs.read_failures` reads it from its file."""
    response = payload.get("tool_response")
    payload_reader.add_output(data, response)
    payload_reader.mark_exit(data, exit_code_at_end(response, STATUS_LINE))


TABLES = load_tables(__file__, extras={"PostToolUse": _add_result})


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = mapping_or_empty(payload)
    texts = [fields.get(key) for key in ("session_id", "hook_event_name", "transcript_path")]
    return all(isinstance(text, str) for text in texts) and SESSIONS in fields["transcript_path"]


AGENT = make_agent(__package__, TABLES, recognise_payload)

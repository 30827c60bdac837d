"""What `agent.toml` cannot say of Codex's hooks."""

import re

from holdfast.agents import payload_reader
from holdfast.agents.build import make_agent
from holdfast.agents.codex.attribution import typed_words
from holdfast.agents.codex.trust import hold_up
from holdfast.agents.definition import Data, load_tables
from holdfast.agents.normalise import mapping_or_empty, paths_in
from holdfast.core.agent import Payload
from holdfast.core.decision import Delivery

# The header lines of a patch in the format of apply_patch, each with a path.
PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
# Characters of a patch that are searched for paths.
LONGEST_PATCH = 1 << 20
EXIT_CODE = re.compile(r"^Exit code: (\d{1,3})$", re.MULTILINE)
ROLLOUT = re.compile(r"/rollout-[^/]*$")


def _add_patch(data: Data, payload: Payload) -> None:
    """The files a patch touches are named only in its text."""
    text = mapping_or_empty(payload.get("tool_input")).get("command")
    if payload.get("tool_name") == "apply_patch" and isinstance(text, str):
        named = [path.strip() for path in PATCHED.findall(text[:LONGEST_PATCH])]
        if paths := paths_in({"paths": named}, data.get("cwd", "")):
            data["paths"] = paths


def _add_result(data: Data, payload: Payload) -> None:
    """Failing commands come as ordinary results; only a patch says its exit code."""
    _add_patch(data, payload)
    response = payload.get("tool_response")
    payload_reader.add_output(data, response)
    # Only the first lines: further down the same words may be output of a program.
    code = EXIT_CODE.search(response, 0, 80) if isinstance(response, str) else None
    data["ok"] = not code or code[1] == "0"
    if code:
        data["exit_code"] = int(code[1])


def _mark_synthetic(data: Data, _payload: Payload) -> None:
    prompt = data.get("prompt", "")
    if words := typed_words(prompt):
        data["prompt"] = words
    elif prompt:
        data["synthetic"] = True


TABLES = load_tables(
    __file__,
    extras={
        "UserPromptSubmit": _mark_synthetic,
        "PreToolUse": _add_patch,
        "PermissionRequest": _add_patch,
        "PostToolUse": _add_result,
    },
)


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    fields = mapping_or_empty(payload)
    event = fields.get("hook_event_name")
    if (
        not isinstance(event, str)
        or event not in TABLES.definition.hooks
        or "timestamp" in fields
        or "conversation_id" in fields
    ):
        return False
    transcript = fields.get("transcript_path")
    return bool(ROLLOUT.search(transcript)) if isinstance(transcript, str) else isinstance(fields.get("turn_id"), str)


AGENT = make_agent(__package__, TABLES, recognise_payload, hold_up=hold_up)

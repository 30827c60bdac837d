"""Takes typed values out of browser calls before they are stored, and reads the page a driver wrote to a file."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.analysis.redact.native_library import word_search
from holdfast.core.event import Event
from holdfast.core.feature import ContentParts
from holdfast.core.kinds import TOOL_ENDS, ToolEndPayload, ToolPayload
from holdfast.features.uat.drivers import hide_typed, recognise_tool_use
from holdfast.features.uat.drivers.answers import first_match, without_fields, without_typed_code
from holdfast.features.uat.drivers.results import SHORTEST_VALUE, decode_json, response_of, text_of
from holdfast.features.uat.drivers.shell import HIDDEN, programs
from holdfast.features.uat.folders import is_inside_folders
from holdfast.features.uat.settings import DEFAULTS, UatSettings
from holdfast.features.uat.state.step_match import use_of_event
from holdfast.paths import open_regular_itself

_ARGUMENTS = ("tool_input", "toolArgs", "toolInput", "args", "input", "arguments")
"""What agents call the arguments of a tool in their payloads."""
OBSERVED_KINDS = frozenset(("tool.started", *TOOL_ENDS))
LARGEST_PAGE = 200_000
# In bytes, of a payload: so far a command is looked for.
FAR_ENOUGH = 32_768
# Calls remembered at once; the oldest are dropped.
MOST_WAITING = 256


# The tool's name, as the agents call it in their payloads.
_TOOL = b'"tool'
_TOOL_NAME = re.compile(rb'"(?:tool_name|toolName|tool)"\s{0,9}:\s{0,9}"([^"\\]{1,300})"')
# The arguments and the answer of a call, as Claude Code and those like it name them.
_INPUT, _ANSWER = b'"tool_input"', b'"tool_response"'


@cache
def _program_marks() -> tuple[bytes, ...]:
    return tuple(program.partition("/")[0].encode() for program in programs())


class WholeCall(NamedTuple):
    """A call as the agent sent it, typed values included, and the page from the driver's file."""

    body: bytes
    given: dict[str, Any]
    page: str


_whole_calls: OrderedDict[str, WholeCall] = OrderedDict()
"""By the event's key. `derive` judges assertions on them in the same moment; they are never stored."""


def enrich(event: Event, settings: UatSettings | None, _parts: ContentParts) -> bool:
    """Takes typed values out of the event before anything stores it, and reads the page its driver wrote to a file."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return False
    use = use_of_event(event, (settings or DEFAULTS).drivers)
    if not use.is_known:
        return False
    call = _remember_call(event)
    answer = text_of(response_of(event.body)) or data.output if isinstance(data, ToolEndPayload) else ""
    cleaned, typed = hide_typed(use, call.given, answer)
    data.input = {
        name: HIDDEN if cleaned.get(name) != call.given.get(name) else clean_value(value, typed)
        for name, value in data.input.items()
    }
    data.command = _clean_text(str(cleaned.get("command", "")), typed) if data.command else ""
    _hide_in_texts(event, typed)
    return True


def redacts(body: bytes, settings: UatSettings | None) -> bool:
    """A guess from the raw payload: one too many costs a moment, one too few leaves typed values in the journal."""
    extra = (settings or DEFAULTS).drivers
    # A payload is mostly one long answer, in which no tool is named.
    find = word_search(_TOOL) or _find_tool
    at = find(body, 0)
    while at < len(body):
        match = _TOOL_NAME.match(body, at)
        if match and (_is_driver_of(extra, match[1]) if extra else _is_driver(match[1])):
            return True
        at = find(body, at + 1)
    far = _end_of_arguments(body)
    # A loop and not `any`: this runs before the answer to every finished call.
    for program in _program_marks():  # noqa: SIM110
        if body.find(program, 0, far) >= 0:
            return True
    return False


def _find_tool(body: bytes, at: int) -> int:
    found = body.find(_TOOL, at)
    return found if found >= 0 else len(body)


def _end_of_arguments(body: bytes) -> int:
    """A shell command comes before its output, which may be long. (Inside of a command the quotes of such a name are
    escaped.)"""
    answer = body.find(_ANSWER, 0, FAR_ENOUGH)
    return answer if answer >= 0 and body.find(_INPUT, 0, answer) >= 0 else FAR_ENOUGH


@lru_cache(1024)
def _is_driver(name: bytes) -> bool:
    """Asked before each answer: the same few tools come again and again."""
    return _is_driver_of({}, name)


def _is_driver_of(extra: Mapping[str, str], name: bytes) -> bool:
    return recognise_tool_use(name.decode("utf-8", "replace"), {}, extra).is_known


def _remember_call(event: Event) -> WholeCall:
    data: ToolPayload = event.data
    page = read_page(event) if isinstance(data, ToolEndPayload) else ""
    call = _whole_calls[event.key] = WholeCall(event.body, _whole_arguments(data, event.body), page)
    while len(_whole_calls) > MOST_WAITING:
        _whole_calls.popitem(last=False)
    return call


def _whole_arguments(data: ToolPayload, body: bytes) -> dict[str, Any]:
    """The arguments: the event keeps them cut down, the agent's own payload has them whole."""
    payload = _decode_payload(body)
    whole = next((payload[name] for name in _ARGUMENTS if isinstance(payload.get(name), dict)), data.input)
    return {**whole, **({"command": data.command} if data.command else {})}


def _decode_payload(body: bytes) -> dict[str, Any]:
    payload = decode_json(body)
    return payload if isinstance(payload, dict) else {}


def whole_call(event: Event) -> WholeCall:
    """As the agent sent it; the stored form where that is no longer known."""
    # Taken out: each is needed once, and holds what was typed.
    return _whole_calls.pop(event.key, None) or WholeCall(event.body, _whole_arguments(event.data, event.body), "")


def _hide_in_texts(event: Event, typed: list[str]) -> None:
    """Drivers repeat typed values in their answers, as code or in the fields of a snapshot."""
    data = event.data
    if isinstance(data, ToolEndPayload):
        data.output, data.error = _clean_text(data.output, typed), _clean_text(data.error, typed)
    if event.body:
        msgspec.structs.force_setattr(event, "body", clean_body(event.body, typed))


def clean_body(body: bytes, typed: list[str]) -> bytes:
    if payload := _decode_payload(body):
        return msgspec.json.encode(clean_value(payload, typed))
    # A payload that is no JSON, e.g. one that was cut: values are replaced as JSON would write them.
    for value in sorted((v for v in typed if len(v) >= SHORTEST_VALUE), key=len, reverse=True):
        body = body.replace(msgspec.json.encode(value)[1:-1], HIDDEN.encode())
    return body


def clean_value(value: Any, typed: list[str]) -> Any:
    """Removes typed values from all texts in it."""
    if isinstance(value, str):
        return _clean_text(value, typed)
    if isinstance(value, Mapping):
        return {name: clean_value(inner, typed) for name, inner in value.items()}
    return [clean_value(inner, typed) for inner in value] if isinstance(value, list) else value


def _clean_text(text: str, typed: list[str]) -> str:
    if text in typed:
        return HIDDEN
    text = without_typed_code(without_fields(text)) if len(text) > SHORTEST_VALUE else text
    # The longest first: a value may be part of another one.
    for value in sorted((v for v in typed if len(v) >= SHORTEST_VALUE), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text


def read_page(event: Event) -> str:
    """Playwright MCP writes its snapshot of the page to a file and names it in its answer."""
    name = first_match("page_file", text_of(response_of(event.body)) or event.data.output)
    if not name or not event.project:
        return ""
    path = Path(event.data.cwd or event.project, name)
    return _read_text(path) if is_inside_folders(path, (event.project,)) else ""


def _read_text(path: Path) -> str:
    try:
        with open(path, "rb", opener=open_regular_itself) as file:
            return file.read(LARGEST_PAGE).decode("utf-8", "replace")
    except OSError:
        return ""

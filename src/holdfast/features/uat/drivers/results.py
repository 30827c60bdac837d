"""What a tool reported: its result, the page it was on, console and network problems, files it left."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.checks import Verdict
from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.features.uat.drivers import answers
from holdfast.features.uat.drivers.table import ToolUse
from holdfast.features.uat.settings import clean_line

LARGEST_TEXT = 200_000
LONGEST_KEPT = 2_000
LARGEST_VALUE = 6_000
MOST_FILES = 10
SHORTEST_VALUE = 3
IN_ANSWER = "(in the answer)"
"""Instead of a file's name: the driver sent the picture itself."""
_FILE_ARGUMENTS = ("filename", "filePath", "path", "saveTo")
IMPACTS = ("minor", "moderate", "serious", "critical")
"""Of axe's violations, from harmless to grave."""


class Result(msgspec.Struct, frozen=True):
    value: Any
    """As the seed's `result`: the tool's own object, or its text."""
    text: str
    ok: bool
    error: str = ""
    url: str = ""
    title: str = ""
    status: int = 0
    errors: int = 0
    """Console errors on the page, network failures among them."""
    console_errors: int = 0
    problems: tuple[dict[str, str], ...] = ()
    shots: tuple[str, ...] = ()
    logs: tuple[tuple[str, int, int], ...] = ()
    ms: int = 0
    exit_code: int | None = None


def result_of(event: Event, body: bytes, use: ToolUse, page: str = "") -> Result:
    """The body is there while an event is handled; a replay reads what was made of it then."""
    response = response_of(body)
    text = text_of(response) or event.data.output or event.data.error
    text = answers.without_typed_code("\n".join(filter(None, (text, page)))[:LARGEST_TEXT])
    value, returned = _result_value(response, answers.without_fields(text))
    # A text that a script returned is also looked at as the person sees it, without JSON's escapes.
    text = f"{text}\n{returned}" if returned else text
    facts = value if isinstance(value, Mapping) else {}
    url, title = _page_of(facts, use, text)
    error = _why_failed(event, use, facts, response, text, url)
    problems = answers.find_problems(text)
    errors = [problem["type"] for problem in problems if problem["level"] == "error"]
    counted = answers.first_number("console_errors", text)
    return Result(
        value=bound_value(value),
        text=text,
        ok=not error,
        error=error,
        url=url,
        title=title,
        status=_first_number(facts, "statusCode", "status") or answers.first_number("status", text),
        errors=max(counted, len(errors)),
        console_errors=max(counted, errors.count("console")),
        problems=tuple(problems),
        shots=tuple(_screenshot_paths(event, use, text, response)),
        logs=tuple(answers.new_log_lines(text)[:MOST_FILES]),
    )


def _page_of(facts: Mapping[str, Any], use: ToolUse, text: str) -> tuple[str, str]:
    """(address, title): as a JSON result says it, else as Playwright does, else as another driver does."""
    page_title, page_url = answers.shown_page(use, text)
    url = _first_text(facts, "url", "currentUrl") or answers.first_match("url", text) or page_url
    return url, _first_text(facts, "title", "pageTitle") or answers.first_match("title", text) or page_title


def _why_failed(event: Event, use: ToolUse, facts: Mapping[str, Any], response: Any, text: str, url: str) -> str:
    """Why the call failed; empty where it succeeded."""
    says_ok = event.kind == "tool.finished" and event.data.ok is not False and facts.get("success") is not False
    # The text decides only for known drivers: other tools may quote the word "Error" from anywhere.
    if not says_ok or (use.is_known and answers.find_match("failed", answers.without_notes(text))):
        messages = (answers.own_error(text), event.data.error, facts.get("error"), text, "it was interrupted")
        message = str(next(filter(None, messages))).removeprefix("### Error").strip()
        return clean_line(message, 400) or "it failed"
    return _unproved_check(event) or (answers.hidden_error(response, text, url) if use.is_known else "")


def _unproved_check(event: Event) -> str:
    """A shell step that runs tests or a linter is done when those passed: `pytest || true` ends with 0 in any case."""
    judgement = event.data.judgement if isinstance(event.data, ToolEndPayload) else None
    for check in judgement.checks if judgement else ():
        if check.verdict in (Verdict.FAILED, Verdict.UNKNOWN) or check.could_not_start:
            return f"{check.runner}: {check.verdict.value.replace('_', ' ')}, {check.why}"
    return ""


def split_result(result: Result, uses: Sequence[ToolUse]) -> list[Result]:
    """What each command of a command line did; shorter where the line broke off at one of them."""
    if len(uses) == 1:
        return [result]
    failed = None if result.ok else answers.broke_off_at(result.text, uses)
    pictures = list(result.shots)
    made = []
    for number, use in enumerate(uses if failed is None else uses[: failed + 1]):
        taken, pictures = (pictures[:1], pictures[1:]) if use.meaning == "screenshot" else ([], pictures)
        ok = number != failed
        part = replace(result, ok=ok, error="" if ok else result.error, shots=tuple(taken))
        made.append(_with_asked(part, use) if number == len(uses) - 1 else part)
    return made


def _with_asked(result: Result, use: ToolUse) -> Result:
    """`… && agent-browser get title`: its answer is the last line."""
    last = clean_line((result.text.strip().splitlines() or [""])[-1], 2_000)
    return replace(result, **{use.asks: last}) if use.asks else result


Judged = list[dict[str, Any]]


def without_values(parts: tuple[Result, Judged, Judged], values: Iterable[str]) -> tuple[Result, Judged, Judged]:
    """Removes typed values: drivers repeat them in their answers."""
    hidden = sorted({v for v in values if len(v) >= SHORTEST_VALUE}, key=len, reverse=True)
    if not hidden:
        return parts
    pattern = re.compile("|".join(re.escape(value) for value in hidden))
    result, *judged = (_replace_matches(msgspec.to_builtins(part, enc_hook=str), pattern) for part in parts)
    return msgspec.convert(result, Result), judged[0], judged[1]


def _replace_matches(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub("…", value)
    if isinstance(value, Mapping):
        return {key: _replace_matches(inner, pattern) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_matches(inner, pattern) for inner in value]
    return value


def text_of(response: Any) -> str:
    """What a person would read of it."""
    if isinstance(response, list):
        return _joined(part.get("text") for part in response if isinstance(part, Mapping))
    if isinstance(response, Mapping):
        streams = _joined(response.get(name) or None for name in ("stdout", "stderr"))
        return streams or text_of(response.get("content") or response.get("result"))
    return response if isinstance(response, str) else ""


def _joined(parts: Iterable[Any]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str))


def bound_value(value: Any, depth: int = 4, purse: list[int] | None = None) -> Any:
    """The same structure, small enough to keep for ever. `purse` holds the characters that are left."""
    purse = [LARGEST_VALUE] if purse is None else purse
    if isinstance(value, str):
        return _bound_text(value, purse)
    purse[0] -= 8
    if isinstance(value, int | float | bool | None):
        return value
    if depth == 0 or purse[0] <= 0:
        return "…"
    if isinstance(value, Mapping):
        entries = takewhile(lambda _: purse[0] > 0, list(value.items())[:50])
        return {str(name)[:200]: bound_value(inner, depth - 1, purse) for name, inner in entries}
    if isinstance(value, list | tuple):
        return [bound_value(inner, depth - 1, purse) for inner in takewhile(lambda _: purse[0] > 0, value[:50])]
    return str(value)[:200]


def _bound_text(text: str, purse: list[int]) -> str:
    shortened = text[: max(0, min(LONGEST_KEPT, purse[0]))]
    purse[0] -= len(shortened) + 2
    return shortened if len(shortened) == len(text) else f"{shortened}…"


def response_of(body: bytes) -> Any:
    """What the tool answered, in the agent's own payload."""
    payload = decode_json(body)
    if not isinstance(payload, dict):
        return None
    return next((payload[name] for name in ("tool_response", "toolResult", "tool_output") if name in payload), None)


def _result_value(response: Any, text: str) -> tuple[Any, str]:
    """(what a tool returned, the text it is where a script returned one).

    A JSON text is what it says; parts of a message are their text; images are not kept here."""
    if isinstance(response, Mapping) and "stdout" not in response and "content" not in response:
        return response, ""
    decoded = _decoded(answers.returned_text(text))
    returned = decoded if isinstance(decoded, str) else ""
    # A script may end with JSON.stringify(…).
    return _object_of(_decoded(decoded) if isinstance(decoded, str) else decoded, text), returned


def _object_of(found: Any, text: str) -> Any:
    if isinstance(found, dict):
        return found
    if isinstance(found, list) and found and all(_is_violation(one) for one in found):
        return {"violations": found}
    return {"text": text} if text else {}


def _is_violation(one: Any) -> bool:
    return isinstance(one, dict) and one.get("impact") in IMPACTS


def _decoded(text: str) -> Any:
    return decode_json(text) if text.startswith(("{", "[", '"')) else None


def decode_json(text: str | bytes) -> Any:
    """None for anything that is no JSON."""
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _screenshot_paths(event: Event, use: ToolUse, text: str, response: Any) -> list[str]:
    """The picture a browser call left: in a file, or in its answer."""
    # Only a tool that makes screenshots is believed about files: a page may name any.
    wanted = sum(one.meaning == "screenshot" for one in (use, *use.following))
    files = (
        list(dict.fromkeys(path.removeprefix("file://") for path in _named_files(event, text)))[:wanted]
        if wanted
        else []
    )
    is_sent = use.is_known and next(answers.images_in(response), "")
    return files or ([IN_ANSWER] if is_sent else [])


def _named_files(event: Event, text: str) -> list[str]:
    """As the answer names them, else as the call asked for them."""
    named = next((found for pattern in answers.patterns("picture") if (found := pattern.findall(text))), [])
    return named or [path for name in _FILE_ARGUMENTS if isinstance(path := event.data.input.get(name), str)]


def _first_text(facts: Mapping[str, Any], *names: str) -> str:
    return next((clean_line(facts[n], 2_000) for n in names if isinstance(facts.get(n), str)), "")


def _first_number(facts: Mapping[str, Any], *names: str) -> int:
    return next((facts[n] for n in names if isinstance(facts.get(n), int) and not isinstance(facts[n], bool)), 0)

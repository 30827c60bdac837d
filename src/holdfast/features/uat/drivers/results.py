"""What a tool reported: its result, the page it was on, console and network problems, files it left."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.checks import Verdict
from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.features.uat.drivers import ToolUse
from holdfast.features.uat.drivers.answers import (
    broke_off_at,
    hidden_error,
    images_in,
    own_error,
    requests_in,
    returned_text,
    shown_page,
    without_fields,
    without_notes,
    without_typed_code,
)
from holdfast.features.uat.settings import MOST_PROBLEMS, clean_line

LARGEST_TEXT = 200_000
LONGEST_KEPT = 2_000
LARGEST_VALUE = 6_000
MOST_FILES = 10
IN_ANSWER = "(in the answer)"
"""Instead of a file's name: the driver sent the picture itself."""
_FILE_ARGUMENTS = ("filename", "filePath", "path", "saveTo")

_URL = re.compile(r"^- Page URL: (\S{1,2000})", re.MULTILINE)
_TITLE = re.compile(r"^- Page Title: ([^\n]{0,500})", re.MULTILINE)
_STATUS = re.compile(r"^- HTTP status: (\d{3})", re.MULTILINE)
_COUNT = re.compile(r"^- Console: (\d{1,6}) errors?", re.MULTILINE)
_CONSOLE = re.compile(
    r"(?:^|\]|^msgid=\d{1,9})\s{0,9}\[(ERROR|error|WARNING|warning|warn)\] ([^\n]{1,1000})", re.MULTILINE
)
_ARGUMENT_COUNT = re.compile(r" \(\d{1,4} args\)(?: \[\d{1,6} times\])?$")
# A path of a picture in running text; a link in Markdown; a sentence that says where it was saved.
_IMAGE = re.compile(r"[^\s()\[\]'\"<>|`]{1,1000}\.(?:png|jpe?g|webp)(?=[\s)\]'\"<>|`]|$)", re.IGNORECASE)
_LINKED = re.compile(r"\]\(([^()\n]{1,1000}\.(?:png|jpe?g|webp))\)", re.IGNORECASE)
_SAVED = re.compile(
    r"(?:screenshot saved to:?|saved screenshot to) ([^\n]{1,1000}?\.(?:png|jpe?g|webp))\.?$",
    re.IGNORECASE | re.MULTILINE,
)
_LOG = re.compile(r"- New console entries: ([^\n]{1,1000}\.log)(?:#L(\d{1,7})-L?(\d{1,7}))?")
_FAILED = re.compile(
    r"^(?:### Error|Error\b|✗|Failed to |Operation failed|\w{0,40}Error: |Timeout \d+ ?ms exceeded|Unable to |"
    r"Could not |Cannot |No such element|Element not found|MCP error)",
    re.IGNORECASE,
)
"""A driver may say success and tell of a failure in its text."""
_CRASH = re.compile(
    r"(?:target|page|browser|tab|renderer|session|connection)[\w ,'-]{0,60}(?:closed|crashed|gone|disconnected|"
    r"terminated|lost)\b|\bcrash(?:ed)?\b|invalid session id|(?:chrome|browser) not reachable|no such window|"
    r"browser process|not connected to|ECONNRESET|browser was restarted|browser '[^'\n]{0,60}' is not open",
    re.IGNORECASE,
)
"""The browser is gone. A context that a navigation destroyed is none: the page only went on."""
SHORTEST_VALUE = 3


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


def _unproved_check(event: Event) -> str:
    """A shell step that runs tests or a linter is done when those passed: `pytest || true` ends with 0 in any case."""
    judgement = event.data.judgement if isinstance(event.data, ToolEndPayload) else None
    for check in judgement.checks if judgement else ():
        if check.verdict in (Verdict.FAILED, Verdict.UNKNOWN) or check.could_not_start:
            return f"{check.runner}: {check.verdict.value.replace('_', ' ')}, {check.why}"
    return ""


def result_of(event: Event, body: bytes, use: ToolUse, page: str = "") -> Result:
    """The body is there while an event is handled; a replay reads what was made of it then."""
    response = response_of(body)
    text = text_of(response) or event.data.output or event.data.error
    text = f"{text}\n{page}" if page else text
    text = without_typed_code(text[:LARGEST_TEXT])
    value, returned = _result_value(response, without_fields(text))
    # A text that a script returned is also looked at as the person sees it, without JSON's escapes.
    text = f"{text}\n{returned}" if returned else text
    facts = value if isinstance(value, Mapping) else {}
    ok = event.kind == "tool.finished" and event.data.ok is not False and facts.get("success") is not False
    # The text decides only for known drivers: other tools may quote the word "Error" from anywhere.
    ok = bool(ok and not (use.is_known and _FAILED.match(without_notes(text))))
    page_title, page_url = shown_page(use, text)
    url = _first_text(facts, "url", "currentUrl") or _first_match(_URL, text) or page_url
    unproved = _unproved_check(event) or (hidden_error(response, text, url) if use.is_known else "") if ok else ""
    ok = ok and not unproved
    problems = tuple(_find_problems(text))
    return Result(
        value=bound_value(value),
        text=text,
        ok=ok,
        error="" if ok else unproved or _error_text(event, facts, text),
        url=url,
        title=_first_text(facts, "title", "pageTitle") or _first_match(_TITLE, text) or page_title,
        status=_first_number(facts, "statusCode", "status") or int(_first_match(_STATUS, text) or 0),
        errors=max(int(_first_match(_COUNT, text) or 0), sum(p["level"] == "error" for p in problems)),
        console_errors=max(
            int(_first_match(_COUNT, text) or 0),
            sum(p["type"] == "console" and p["level"] == "error" for p in problems),
        ),
        problems=problems,
        shots=tuple(_screenshot_paths(event, use, text, response)),
        logs=tuple((m[1], int(m[2] or 0), int(m[3] or 0)) for m in _LOG.finditer(text))[:MOST_FILES],
    )


def split_result(result: Result, uses: Sequence[ToolUse]) -> list[Result]:
    """What each command of a command line did; shorter where the line broke off at one of them."""
    if len(uses) == 1:
        return [result]
    failed = None if result.ok else broke_off_at(result.text, uses)
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


def is_crash(error: str) -> bool:
    """Whether the browser is gone, and not only one call of it failed."""
    return bool(_CRASH.search(error))


Judged = list[dict[str, Any]]


def without_values(parts: tuple[Result, Judged, Judged], values: Iterable[str]) -> tuple[Result, Judged, Judged]:
    """The same without what was typed: drivers repeat it in their answers."""
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
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        parts = (part.get("text") for part in response if isinstance(part, Mapping))
        return "\n".join(part for part in parts if isinstance(part, str))
    if isinstance(response, Mapping):
        streams = [response[name] for name in ("stdout", "stderr") if isinstance(response.get(name), str)]
        return "\n".join(s for s in streams if s) or text_of(response.get("content") or response.get("result") or "")
    return ""


def bound_value(value: Any, depth: int = 4, purse: list[int] | None = None) -> Any:
    """The same structure, small enough to keep for ever."""
    purse = [LARGEST_VALUE] if purse is None else purse
    if isinstance(value, str):
        shortened = value[: max(0, min(LONGEST_KEPT, purse[0]))]
        purse[0] -= len(shortened) + 2
        return shortened if len(shortened) == len(value) else f"{shortened}…"
    purse[0] -= 8
    if depth == 0 or purse[0] <= 0:
        return value if isinstance(value, int | float | bool | None) else "…"
    if isinstance(value, Mapping):
        return {str(k)[:200]: bound_value(v, depth - 1, purse) for k, v in list(value.items())[:50] if purse[0] > 0}
    if isinstance(value, list | tuple):
        return [bound_value(v, depth - 1, purse) for v in value[:50] if purse[0] > 0]
    return value if isinstance(value, int | float | bool | None) else str(value)[:200]


def response_of(body: bytes) -> Any:
    """What the tool answered, in the agent's own payload."""
    if not body:
        return None
    try:
        payload = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    if not isinstance(payload, dict):
        return None
    return next((payload[name] for name in ("tool_response", "toolResult", "tool_output") if name in payload), None)


def _result_value(response: Any, text: str) -> tuple[Any, str]:
    """(what a tool returned, the text it is where a script returned one).

    A JSON text is what it says; parts of a message are their text; images are not kept here."""
    if isinstance(response, Mapping) and "stdout" not in response and "content" not in response:
        return response, ""
    decoded = _decoded(returned_text(text))
    returned = decoded if isinstance(decoded, str) else ""
    # A script may end with JSON.stringify(…).
    return _object_of(_decoded(decoded) if isinstance(decoded, str) else decoded, text), returned


def _object_of(found: Any, text: str) -> Any:
    if (
        isinstance(found, list)
        and found
        and all(isinstance(one, dict) and one.get("impact") in IMPACTS for one in found)
    ):
        return {"violations": found}
    if isinstance(found, dict):
        return found
    return {"text": text} if text else {}


def _decoded(text: str) -> Any:
    if text[:1] not in ("{", "[", '"'):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _error_text(event: Event, facts: Mapping[str, Any], text: str) -> str:
    message = own_error(text) or event.data.error or facts.get("error") or text or "it was interrupted"
    return clean_line(str(message).removeprefix("### Error").strip(), 400)


def _find_problems(text: str) -> Iterator[dict[str, str]]:
    seen: set[str] = set()
    for level, message in _CONSOLE.findall(text)[:200]:
        said = _ARGUMENT_COUNT.sub("", message)
        yield from _new_problem(seen, "console", "error" if level.lower() == "error" else "warning", said)
    for method, url, status, words in requests_in(text):
        if not status.isdigit() or int(status) >= 400:
            yield from _new_problem(seen, "network", "error", f"{method} {url} → {status}{words.rstrip()}")


def _new_problem(seen: set[str], kind: str, level: str, message: str) -> Iterator[dict[str, str]]:
    text = clean_line(message, 300)
    if text not in seen and len(seen) < MOST_PROBLEMS:
        seen.add(text)
        yield {"type": kind, "level": level, "message": text}


def console_lines(text: str) -> list[dict[str, str]]:
    return list(_find_problems(text))


def _screenshot_paths(event: Event, use: ToolUse, text: str, response: Any) -> list[str]:
    """The picture a browser call left: in a file, or in its answer.

    Only a tool that makes screenshots is believed about files: a page may talk of any."""
    sent = [IN_ANSWER] if use.is_known and next(images_in(response), "") else []
    wanted = sum(one.meaning == "screenshot" for one in (use, *use.following))
    if not wanted:
        return sent
    arguments = event.data.input
    linked = _LINKED.findall(text) or _SAVED.findall(text) or _IMAGE.findall(text)
    requested = [
        arguments[n] for n in _FILE_ARGUMENTS if isinstance(arguments, Mapping) and isinstance(arguments.get(n), str)
    ]
    named = list(dict.fromkeys(path.removeprefix("file://") for path in (linked or requested)))[:wanted]
    return named or sent


def _first_text(facts: Mapping[str, Any], *names: str) -> str:
    return next((clean_line(facts[n], 2_000) for n in names if isinstance(facts.get(n), str)), "")


def _first_number(facts: Mapping[str, Any], *names: str) -> int:
    return next((facts[n] for n in names if isinstance(facts.get(n), int) and not isinstance(facts[n], bool)), 0)


def _first_match(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1].strip() if match else ""

"""How drivers word their answers: the patterns of `answers.toml`, and what is read with them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast.core.data_files import load_data
from holdfast.core.lazy import lazy_pattern
from holdfast.features.uat.drivers.table import ToolUse
from holdfast.features.uat.settings import MOST_PROBLEMS, clean_line

MOST_REQUESTS, MOST_MESSAGES = 500, 200
_DONE = ("✓ ", "### Ran Playwright code")
"""What agent-browser and playwright-cli say for each command that succeeded,"""
_SILENT_SUCCESS = ("snapshot", "console", "network", "tab", "close", "evaluate", "other")
"""except for these, which only print what they were asked for."""
_ERROR_PAGES = ("chrome-error://", "about:neterror", "about:certerror")
"""What a browser shows instead of a page that it could not load."""


@cache
def patterns(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(lazy_pattern(pattern) for pattern in _table()[name])


@cache
def _table() -> dict[str, list[str]]:
    return load_data(__file__, "answers", dict[str, list[str]])


def find_match(name: str, text: str) -> re.Match[str] | None:
    """By the first of the patterns that finds something."""
    return next((match for pattern in patterns(name) if (match := pattern.search(text))), None)


def first_match(name: str, text: str) -> str:
    match = find_match(name, text)
    return match[1].strip() if match else ""


def first_number(name: str, text: str) -> int:
    return int(first_match(name, text) or 0)


def new_log_lines(text: str) -> list[tuple[str, int, int]]:
    """(file, first line, last line) of console messages; 0 where the driver names no lines."""
    return [(m[1], int(m[2] or 0), int(m[3] or 0)) for m in patterns("log")[0].finditer(text)]


def without_matches(name: str, text: str, instead: str = "") -> str:
    for pattern in patterns(name):
        text = pattern.sub(instead, text)
    return text


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown_page(use: ToolUse, text: str) -> tuple[str, str]:
    """(title, address) of the page, where a driver other than Playwright says them."""
    # With further commands on the line the answer is not the title alone.
    if use.asks and not use.following:
        return (clean_line(text), "") if use.asks == "title" else ("", clean_line(text, 2_000))
    found = find_match("page", text)
    return ((found[1] or "").strip(), found[2] or "") if found else ("", "")


def page_text(use: ToolUse, text: str) -> str:
    """The page as a driver's snapshot shows it in its answer; empty where the answer is no snapshot."""
    _, found, inline = text.partition("```yaml\n")
    if found:
        return inline.partition("\n```")[0]
    _, found, snapshot = text.partition("## Latest page snapshot\n")
    return snapshot if found else text if use.driver == "agent-browser" and use.meaning == "snapshot" else ""


def readable_page(text: str) -> str:
    """What a person sees first of a page: of an accessibility snapshot the headings and messages, then the rest."""
    (unseen,), (is_telling,) = patterns("unseen"), patterns("telling")
    lines = without_matches("frame", text, " ").splitlines()
    seen = [without_matches("mark", line).strip(" -:") for line in lines if not unseen.match(line)]
    seen = [line.removeprefix("generic: ").removeprefix("text: ") for line in seen]
    telling = [line for line in seen if is_telling.match(line)]
    rest = [line for line in seen if line not in ("", "generic", "main", "document") and not is_telling.match(line)]
    return "; ".join(telling + rest) if telling else " ".join(rest)


def find_problems(text: str) -> list[dict[str, str]]:
    """Console messages and failed requests, each once."""
    found: dict[str, dict[str, str]] = {}
    for kind, level, message in (*_console_messages(text), *_failed_requests(text)):
        if len(found) < MOST_PROBLEMS:
            line = clean_line(message, 300)
            found.setdefault(line, {"type": kind, "level": level, "message": line})
    return list(found.values())


def _console_messages(text: str) -> Iterator[tuple[str, str, str]]:
    for level, message in patterns("console")[0].findall(text)[:MOST_MESSAGES]:
        yield "console", "error" if level.lower() == "error" else "warning", without_matches("argument_count", message)


def _failed_requests(text: str) -> Iterator[tuple[str, str, str]]:
    for pattern in patterns("request"):
        for method, url, status, words in pattern.findall(text)[:MOST_REQUESTS]:
            if not status.isdigit() or int(status) >= 400:
                yield "network", "error", f"{method} {url} → {status}{words.rstrip()}"


# ── what a call returned, and why it failed ──────────────────────────────────────────────────────────────────────────


def without_notes(text: str) -> str:
    return without_matches("notes", text)


def returned_text(text: str) -> str:
    """What a script returned, without the words each driver puts around it."""
    _, _, result = text.partition("### Result\n")
    if result:
        return result.partition("\n### ")[0].strip()
    found = find_match("returned", without_notes(text))
    return (found[1] if found else text).strip()


def hidden_error(response: Any, text: str, url: str) -> str:
    """Why a call failed whose driver says that it succeeded; empty where nothing speaks against it."""
    is_flagged = isinstance(response, Mapping) and (response.get("isError") is True or response.get("is_error") is True)
    if is_flagged or find_match("error_section", text):
        return own_error(text) or clean_line(text, 400) or "the driver says that it is an error"
    return f"the browser shows its own error page ({url})" if url.startswith(_ERROR_PAGES) else ""


def own_error(text: str) -> str:
    """The line in which a program says what went wrong; empty where it has no such line."""
    return first_match("own_error", text)


def is_crash(error: str) -> bool:
    """Whether the browser is gone, and not only one call of it failed."""
    return find_match("crash", error) is not None


def broke_off_at(text: str, uses: Sequence[ToolUse]) -> int:
    """Which command of a failed command line failed: those before it said that they were done."""
    done = sum(text.count(mark) for mark in _DONE)
    telling = [number for number, use in enumerate(uses) if use.meaning not in _SILENT_SUCCESS]
    return telling[done] if done < len(telling) else len(uses) - 1


def images_in(response: Any) -> Iterator[str]:
    """The pictures in a tool's answer, each as base64."""
    parts = response.get("content") if isinstance(response, Mapping) else response
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping) and part.get("type") == "image":
            source = part.get("source")
            data = source.get("data") if isinstance(source, Mapping) else part.get("data")
            if isinstance(data, str):
                yield data


# ── the content of a page's fields ───────────────────────────────────────────────────────────────────────────────────

_QUOTED = r"(?:'(?:[^'\\\n]|\\.){0,2000}'|\"(?:[^\"\\\n]|\\.){0,2000}\"|`[^`\n]{0,2000}`)"
_TYPED = re.compile(rf"(\.(?:fill|type|pressSequentially))\(\s*{_QUOTED}(?:\s*,\s*{_QUOTED})?")
"""Playwright repeats as code what it typed, passwords too (P10); the arguments of the call have it redacted."""
_ASSIGNED = re.compile(
    rf"(\.value\s{{0,3}}=(?!=)|set(?:ter)?\.call\([^,()\n]{{1,200}},)\s{{0,3}}{_QUOTED}", re.IGNORECASE
)
"""A script that puts a value into a field by itself types it too."""
_FIELD_ROLE = r"(?:textbox|searchbox|spinbutton|combobox)"
_FIELD = re.compile(rf"^(\s*- {_FIELD_ROLE}\b[^\n]*?): [^\n]+$", re.MULTILINE)
"""A snapshot repeats the content of a field, a password too."""
_FIELD_LINES = re.compile(rf"^( *)- {_FIELD_ROLE}\b[^\n]*:\n(?:\1 +- [^\n]*(?:\n|\Z))+", re.MULTILINE)
"""Where the field has a placeholder as well, Playwright puts its content in the lines below."""
_FIELD_CONTENT = re.compile(r"^( *- (?!/)[^\n:]*): [^\n]+$", re.MULTILINE)
_UID_FIELD = re.compile(
    rf"^( *)uid=\S+ {_FIELD_ROLE}\b[^\n]*(?:\n(?! *uid=)[^\n]*)*(?:\n\1 +uid=[^\n]*)*", re.MULTILINE
)
"""chrome-devtools-mcp: the value may have several lines, and come again as the texts below the field."""
_UID_CONTENT = re.compile(r"(\bvalue(?:text)?=)\".*?\"(?=\s|\Z)|(\n +uid=\S+ )\"[^\n]*", re.DOTALL)


def without_typed_code(text: str) -> str:
    return _ASSIGNED.sub(r"\1 …", _TYPED.sub(r"\1(…", text))


def without_fields(text: str) -> str:
    """A snapshot without the content of its fields: any of it may be secret."""
    text = _FIELD_LINES.sub(lambda m: _FIELD_CONTENT.sub(r"\1: …", m[0]), text)
    text = _FIELD.sub(r"\1: …", text)
    return _UID_FIELD.sub(lambda m: _UID_CONTENT.sub(r'\1\2"…"', m[0]), text)

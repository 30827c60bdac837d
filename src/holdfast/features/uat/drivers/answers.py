"""How each browser driver words its answers: the page, its requests, what a script returned, why a call failed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from holdfast.core.lazy import lazy_pattern
from holdfast.features.uat.drivers import ToolUse
from holdfast.features.uat.settings import clean_line

MOST_REQUESTS = 500

_REQUESTS = (
    # Playwright: [GET] http://x => [503] Service Unavailable
    re.compile(r"\[([A-Z]{3,7})\] (\S{1,1000}) => \[(\d{3}|FAILED)\]([^\n]{0,200})"),
    # chrome-devtools-mcp: reqid=3 GET http://x [503]
    re.compile(r"^reqid=\d{1,9} ([A-Z]{3,7}) (\S{1,1000}) \[(\d{3}|net::\w{1,60})\]()", re.MULTILINE),
    # agent-browser: [31059.2] GET http://x (Fetch) 503
    re.compile(r"^\[[^\]\n]{1,60}\] ([A-Z]{3,7}) (\S{1,1000}) \(\w{1,30}\) (\d{3})()", re.MULTILINE),
)
_PAGES = (
    # chrome-devtools-mcp: its snapshot, else its list of pages.
    re.compile(r'RootWebArea "([^"\n]{0,500})"(?:[^\n]{0,200}? url="([^"\n]{1,2000})")?'),
    re.compile(r"^\d{1,6}: (?:([^\n]{0,500}) \()?(\w{2,20}:[^\s()]{1,2000})\)? \[selected\]", re.MULTILINE),
    # agent-browser opened a page.
    re.compile(r"^✓ ([^\n]{0,500})\n {1,8}(\w{2,20}://\S{1,2000})", re.MULTILINE),
)
# Lines `Note: …` at the very beginning.
_NOTES = lazy_pattern(r"\A\s*(?:Note: [^\n]*\n+)*")
"""chrome-devtools-mcp puts notes before an answer."""
_RETURNED = lazy_pattern(
    r"\A[^\n]{0,200}\n```json\n(.*?)\n```|\AExecution result:\n(.*?)\n\nConsole output:", re.DOTALL
)
"""What a script returned, as chrome-devtools-mcp and puppeteer put it."""
_DONE = ("✓ ", "### Ran Playwright code")
"""What agent-browser and playwright-cli say for each command that succeeded,"""
_SILENT_SUCCESS = ("snapshot", "console", "network", "tab", "close", "evaluate", "other")
"""except for these, which only print what they were asked for."""
_OWN_ERROR = lazy_pattern(r"^✗ ([^\n]{1,1000})|^### Error\n([^\n]{1,1000})", re.MULTILINE)


def requests_in(text: str) -> Iterator[tuple[str, str, str, str]]:
    """(method, address, status, its words) of each request a driver lists."""
    return chain(*(form.findall(text)[:MOST_REQUESTS] for form in _REQUESTS))


def shown_page(use: ToolUse, text: str) -> tuple[str, str]:
    """(title, address) of the page, where a driver other than Playwright says them."""
    # With further commands on the line the answer is not the title alone.
    if use.asks and not use.following:
        return (clean_line(text), "") if use.asks == "title" else ("", clean_line(text, 2_000))
    found = next((match for form in _PAGES if (match := form.search(text))), None)
    return ((found[1] or "").strip(), found[2] or "") if found else ("", "")


def page_text(use: ToolUse, text: str) -> str:
    """The page as a driver's snapshot shows it in its answer; empty where the answer is no snapshot."""
    _, found, inline = text.partition("```yaml\n")
    if found:
        return inline.partition("\n```")[0]
    _, found, snapshot = text.partition("## Latest page snapshot\n")
    return snapshot if found else text if use.driver == "agent-browser" and use.meaning == "snapshot" else ""


def without_notes(text: str) -> str:
    return _NOTES.sub("", text)


def returned_text(text: str) -> str:
    """What a script returned, without the words each driver puts around it."""
    _, _, result = text.partition("### Result\n")
    if result:
        return result.partition("\n### ")[0].strip()
    found = _RETURNED.search(without_notes(text))
    return (found[1] or found[2] or "").strip() if found else text.strip()


_SECTION_ERROR = re.compile(r"^### Error$", re.MULTILINE)
_ERROR_PAGES = ("chrome-error://", "about:neterror", "about:certerror")
"""What a browser shows instead of a page that it could not load."""


def hidden_error(response: Any, text: str, url: str) -> str:
    """Why a call failed whose driver says that it succeeded; empty where nothing speaks against it."""
    flagged = isinstance(response, Mapping) and (response.get("isError") is True or response.get("is_error") is True)
    if flagged or _SECTION_ERROR.search(text):
        return own_error(text) or clean_line(text, 400) or "the driver says that it is an error"
    return f"the browser shows its own error page ({url})" if url.startswith(_ERROR_PAGES) else ""


def own_error(text: str) -> str:
    """The line in which a program says what went wrong; empty where it has no such line."""
    found = _OWN_ERROR.search(text)
    return found[1] or found[2] if found else ""


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


# ── what stands in a page's fields ─────────────────────────────────────────────────────────────────────────────────

_QUOTED = r"(?:'(?:[^'\\\n]|\\.){0,2000}'|\"(?:[^\"\\\n]|\\.){0,2000}\"|`[^`\n]{0,2000}`)"
_TYPED = re.compile(rf"(\.(?:fill|type|pressSequentially))\(\s*{_QUOTED}(?:\s*,\s*{_QUOTED})?")
"""Playwright repeats as code what it typed, passwords too (P10); the arguments of the call say it, redacted."""
_FIELD_ROLE = r"(?:textbox|searchbox|spinbutton|combobox)"
_FIELD = re.compile(rf"^(\s*- {_FIELD_ROLE}\b[^\n]*?): [^\n]+$", re.MULTILINE)
"""A snapshot repeats what stands in a field, a password too."""
_FIELD_LINES = re.compile(rf"^( *)- {_FIELD_ROLE}\b[^\n]*:\n(?:\1 +- [^\n]*(?:\n|\Z))+", re.MULTILINE)
"""Where the field has a placeholder as well, Playwright says in lines below it what stands in it."""
_FIELD_CONTENT = re.compile(r"^( *- (?!/)[^\n:]*): [^\n]+$", re.MULTILINE)
_UID_FIELD = re.compile(
    rf"^( *)uid=\S+ {_FIELD_ROLE}\b[^\n]*(?:\n(?! *uid=)[^\n]*)*(?:\n\1 +uid=[^\n]*)*", re.MULTILINE
)
"""chrome-devtools-mcp: the value may have several lines, and come again as the texts below the field."""
_UID_CONTENT = re.compile(r"(\bvalue(?:text)?=)\".*?\"(?=\s|\Z)|(\n +uid=\S+ )\"[^\n]*", re.DOTALL)


_ASSIGNED = re.compile(
    rf"(\.value\s{{0,3}}=(?!=)|set(?:ter)?\.call\([^,()\n]{{1,200}},)\s{{0,3}}{_QUOTED}", re.IGNORECASE
)
"""A script that puts a value into a field by itself types it too."""


def without_typed_code(text: str) -> str:
    return _ASSIGNED.sub(r"\1 …", _TYPED.sub(r"\1(…", text))


def without_fields(text: str) -> str:
    """A snapshot without what stands in its fields: nobody knows which of it is secret."""
    text = _FIELD_LINES.sub(lambda m: _FIELD_CONTENT.sub(r"\1: …", m[0]), text)
    text = _FIELD.sub(r"\1: …", text)
    return _UID_FIELD.sub(lambda m: _UID_CONTENT.sub(r'\1\2"…"', m[0]), text)

"""Makes payloads small and regular."""

# Pure, and safe with values of any type.

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from holdfast.core.text import shorten

# Characters kept of each kind of text.
PROMPT, MESSAGE, OUTPUT, COMMAND, ERROR = 10_000, 5_000, 4_000, 32_000, 4_000
NAME, PATH = 512, 4_096
# Characters of one string, of all together, entries of one list or mapping, levels.
INPUT_STRING, INPUT_TOTAL, INPUT_ITEMS, INPUT_DEPTH = 2_000, 16_000, 50, 6
LONGEST_KEY = 200
# The quotes, the colon and the comma around a name.
AROUND_KEY = 4
MOST_PATHS = 50
PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filepath")
PATH_LIST_KEYS = ("paths", "file_paths", "files")
PATH_NAMES = frozenset((*PATH_KEYS, *PATH_LIST_KEYS))
LEFT_OUT = "…"
# Named once: `bool | float` in a condition is evaluated each time it is reached.
_PLAIN, _NUMBER, _NESTED = (bool, float), (int, float), (Mapping, list, tuple)

# "Exit code 1", "exit code: 2", "exited with code 3".
_EXIT_CODE = re.compile(r"\bexit(?:ed with)? code:? (\d{1,3})\b", re.IGNORECASE)
# Characters.
LONGEST_STATUS_LINE = 200
# Only such a path has to be normalised; most are clean already.
_UNTIDY_PATH = re.compile(r"//|/\.")


def replace_surrogates(text: str) -> str:
    """JSON may hold half a surrogate pair, which no store can write."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def cap_text(text: str, limit: int) -> str:
    """Keeps head and tail: the request is at the beginning, the result at the end."""
    # Nearly every text of every payload: nothing to cut, nothing to replace.
    if len(text) <= limit and text.isascii():
        return text
    return replace_surrogates(shorten(text, limit))


def text_cleaner(limit: int) -> Callable[[Any], str | None]:
    """A cleaner for one field: the text within its limit, or nothing where there is no text."""

    def clean(value: Any) -> str | None:
        if not isinstance(value, str) or not value:
            return None
        # As in `cap_text`, without a call: several texts of every payload come through here.
        return value if len(value) <= limit and value.isascii() else cap_text(value, limit)

    return clean


def one_path(value: Any) -> str | None:
    """Cut, not shortened in the middle: half a path must never look like another one."""
    if not isinstance(value, str) or not value:
        return None
    if len(value) <= PATH and value.isascii() and "\0" not in value:
        return value
    return replace_surrogates(value.replace("\0", "")[:PATH])


def true_or_none(value: Any) -> bool | None:
    return True if value is True else None


def number_or_none(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, _NUMBER):
        return None
    # JSON readers that use doubles lose digits beyond 2**53.
    return value if -(1 << 53) <= value <= 1 << 53 else None


def pick_fields(payload: Mapping[str, Any], fields: Iterable[tuple[str, str, Callable[[Any], Any]]]) -> dict[str, Any]:
    """(our name, the agent's name, cleaner): only what is there and clean."""
    cleaned = {}
    for name, key, clean in fields:
        if (value := payload.get(key)) is not None and (value := clean(value)) is not None:
            cleaned[name] = value
    return cleaned


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Called several times for every payload, so the check for a plain dict comes first."""
    if type(value) is dict:
        return value
    return value if value is not None and isinstance(value, Mapping) else {}


def trim_input(value: Any) -> Any:
    """The same structure with long strings cut and no more than INPUT_TOTAL characters in all."""
    if type(value) is dict and _fits_whole(value):
        return dict(value)
    return _trim_value(value, INPUT_DEPTH, [INPUT_TOTAL])


def _fits_whole(value: dict[Any, Any]) -> bool:
    """Whether there is nothing to cut: most tools get a few short texts."""
    total = 0
    for name, item in value.items():
        if type(name) is not str or type(item) is not str or len(name) > LONGEST_KEY or len(item) > INPUT_STRING:
            return False
        total += len(name) + len(item) + AROUND_KEY
        if total >= INPUT_TOTAL or not (name.isascii() and item.isascii()):
            return False
    return len(value) <= INPUT_ITEMS


def _trim_value(value: Any, depth: int, purse: list[int]) -> Any:
    if isinstance(value, str):
        return _trim_text(value, purse)
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, int):
        return value if number_or_none(value) is not None else LEFT_OUT
    if depth == 0 or not isinstance(value, _NESTED):
        return LEFT_OUT
    return _trim_mapping(value, depth, purse) if isinstance(value, Mapping) else _trim_list(value, depth, purse)


def _trim_text(value: str, purse: list[int]) -> str:
    left = purse[0]
    text = cap_text(value, INPUT_STRING if left >= INPUT_STRING else max(left, 1))
    purse[0] = left - len(text)
    return text


def _trim_mapping(value: Mapping[Any, Any], depth: int, purse: list[int]) -> dict[str, Any]:
    trimmed_items: dict[str, Any] = {}
    for key, item in value.items():
        if len(trimmed_items) == INPUT_ITEMS or purse[0] <= 0:
            trimmed_items[LEFT_OUT] = len(value) - len(trimmed_items)
            break
        name = cap_text(str(key), LONGEST_KEY)
        purse[0] -= len(name) + AROUND_KEY
        trimmed_items[name] = _trim_value(item, depth - 1, purse)
    return trimmed_items


def _trim_list(value: Iterable[Any], depth: int, purse: list[int]) -> list[Any]:
    trimmed_items: list[Any] = []
    for item in value:
        if len(trimmed_items) == INPUT_ITEMS or purse[0] <= 0:
            trimmed_items.append(LEFT_OUT)
            break
        purse[0] -= 4
        trimmed_items.append(_trim_value(item, depth - 1, purse))
    return trimmed_items


def absolute_path(path: str, cwd: str) -> str:
    """A gate compares paths, so `a/../b` is `b`. Links are not followed: that would touch the disk."""
    whole = path if path[0] in "/~" or not cwd else f"{cwd}/{path}"
    return posixpath.normpath(whole) if _UNTIDY_PATH.search(whole) else whole


def paths_in(tool_input: Mapping[str, Any], cwd: str) -> list[str]:
    # Most tools are given no path.
    if PATH_NAMES.isdisjoint(tool_input):
        return []
    named = [tool_input[key] for key in PATH_KEYS if key in tool_input]
    for key in PATH_LIST_KEYS:
        if isinstance(listed := tool_input.get(key), list):
            named.extend(listed[:MOST_PATHS])
    unique_paths = {
        # Addresses on the web are no files.
        absolute_path(path, cwd): None
        for value in named
        if (path := one_path(value)) and "://" not in path
    }
    return list(unique_paths)[:MOST_PATHS]


def exit_code_in(error: Any) -> int | None:
    """From the first words of an error text; further down it may be what the command itself printed."""
    match = _EXIT_CODE.search(error, 0, 80) if isinstance(error, str) else None
    return int(match[1]) if match else None


def exit_code_at_end(output: Any, status_line: re.Pattern[str]) -> int | None:
    """From the line that the agent itself adds after the output of a command. The command may print similar words before it."""
    if not isinstance(output, str):
        return None
    # `$` of the pattern is the end of the text, and the line is short: only the end is searched.
    match = status_line.search(output, max(0, len(output) - LONGEST_STATUS_LINE))
    return int(match[1]) if match else None


def output_text(response: Any) -> str:
    """The readable text of a tool's response."""
    if isinstance(response, str):
        return cap_text(response, OUTPUT)
    if isinstance(response, list):
        texts = [str(part["text"]) for part in map(mapping_or_empty, response) if "text" in part]
        return cap_text("\n".join(texts), OUTPUT)
    parts = mapping_or_empty(response)
    streams = [stream for stream in (parts.get("stdout"), parts.get("stderr")) if stream and isinstance(stream, str)]
    if streams:
        return cap_text("\n".join(streams), OUTPUT)
    inner = mapping_or_empty(parts.get("file")).get("content", parts.get("content", parts.get("result")))
    return output_text(inner) if isinstance(inner, str | list) else ""


def milliseconds_of(stamp: str) -> int | None:
    """Of an ISO time such as agents write."""
    try:
        return round(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None

"""The lines that an edit changed."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

OLD, NEW = ("old_string", "old_str", "oldString", "old_text"), ("new_string", "new_str", "newString", "new_text")
WHOLE = ("content", "file_text", "contents")
PATHS = ("file_path", "path", "filePath", "notebook_path")
MOST_LINES = 400
LONGEST = 60_000
LONGEST_LINE = 500


class Change(NamedTuple):
    path: str
    lines: list[tuple[str, str]]
    """(+, -, space or @; the text)"""
    left_out: int


def list_changes(tool_input: Any) -> list[Change]:
    """Empty if it was no edit."""
    if not isinstance(tool_input, Mapping):
        return []
    path = _first_text(tool_input, PATHS)
    edits = tool_input.get("edits")
    each = edits if isinstance(edits, list) else [tool_input]
    all_changes = [made for edit in each[:50] if isinstance(edit, Mapping) and (made := _change_of_edit(edit, path))]
    patch = tool_input.get("patch") or tool_input.get("diff")
    return [*all_changes, _as_it_is(path, patch)] if isinstance(patch, str) and patch else all_changes


def _change_of_edit(edit: Mapping[str, Any], path: str) -> Change | None:
    old, new = _first_text(edit, OLD), _first_text(edit, NEW)
    if old or new:
        return _cap_change(path, _diff_lines(old, new))
    whole = _first_text(edit, WHOLE)
    return _cap_change(path, (("+", line) for line in whole[:LONGEST].splitlines())) if whole else None


def _diff_lines(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Very long texts are not compared line by line: that could take minutes."""
    if len(old) + len(new) > LONGEST:
        yield from (("-", line) for line in old[:LONGEST].splitlines())
        yield from (("+", line) for line in new[:LONGEST].splitlines())
        return
    # The first two lines name the files, which the page shows itself.
    for line in list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=3, lineterm=""))[2:]:
        yield line[:1] or " ", line[1:]


def _as_it_is(path: str, patch: str) -> Change:
    return _cap_change(
        path, ((line[:1] if line[:1] in ("+", "-", "@") else " ", line[1:]) for line in patch.splitlines())
    )


def _cap_change(path: str, lines: Iterator[tuple[str, str]]) -> Change:
    every = [(sign, text[:LONGEST_LINE]) for sign, text in lines]
    return Change(path, every[:MOST_LINES], max(0, len(every) - MOST_LINES))


def _first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")

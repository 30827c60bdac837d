"""Reads state documents of every age as version 4: v3 (agents' actions), the minimal v4, the full v4."""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

from holdfast.core.errors import HoldfastError
from holdfast.core.lazy import lazy_pattern
from holdfast.features.project.jobs.resolution import safe_name
from holdfast.features.project.state import MAX_HISTORY, SCHEMA_VERSION
from holdfast.features.project.state.task_list import SECTIONS

OLD_VERSION = "3.0.0"
# Bytes of a file, and levels of brackets.
LARGEST = 1 << 20
DEEPEST = 100
State = dict[str, Any]

# Control characters other than white space: such a file is no text.
_BINARY = lazy_pattern(rb"[\x00-\x08\x0e-\x1f\x7f]")
# Bytes that have no meaning in Windows' code page 1252.
_NOT_WINDOWS = lazy_pattern(rb"[\x81\x8d\x8f\x90\x9d]")
# `Delegated: …`, `assigned - …` and the like at the beginning.
_DELEGATION = lazy_pattern(r"^(?:delegated?|assign(?:ed)?|hand(?:ed)? over)\s*[:,\u2013-]\s*", re.IGNORECASE)
# A fenced block of YAML in Markdown, with its content.
FENCE = lazy_pattern(r"(?:\A---[ \t]*\n(.*?)^---|^```ya?ml[ \t]*\n(.*?)^```)[ \t]*$", re.MULTILINE | re.DOTALL)
# `p1` or `P1_urgent`, but not `p10` or `print`.
_LEVEL = lazy_pattern(r"(?i)(p[0-3])(?![a-z0-9])")
_NO_TEXT = "id agent assigned_to created_by status priority severity timestamp created_at updated_at time date".split()
GAP_WORDS = (
    ("broken_tests", ("failing test", "fix test", "broken test", "test fail")),
    ("unvalidated_changes", ("validat", "verify", "check uncommitted")),
    ("unpushed_commits", ("push",)),
    ("tree_out_of_sync", ("deploy", "apply", "sync")),
    ("old_uncommitted_work", ("commit",)),
)
PRIORITY_WORDS = {
    "0": "P0", "1": "P1", "2": "P2", "3": "P3", "blocker": "P0", "critical": "P0", "urgent": "P1", "high": "P1",
    "medium": "P2", "normal": "P2", "low": "P3",
}  # fmt: skip
SECTION_WORDS = (("git", ("git", "commit", "branch", "push", "merge")), ("tests", ("test",)),
                 ("filesystem", ("deploy", "apply", "file")), ("notion_workspace", ("notion",)))  # fmt: skip


class BadState(HoldfastError):
    """A state file cannot be used."""


def read_state(state_file: str | Path | TextIO) -> State:
    """The state in a file, as v4 whatever version it is of (S1-15, S1-16). `BadState` says what is wrong with it."""
    if isinstance(state_file, str | Path):
        where = str(Path(state_file).expanduser())
        text = _read_text(Path(where))
    else:
        where, text = getattr(state_file, "name", ""), state_file.read()
    return as_v4(parsed(text, where), where)


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise BadState(f"it is larger than {LARGEST >> 20} MB", where=str(path))
        return decode_text(path.read_bytes())
    except OSError as error:
        raise BadState(str(error.strerror), where=str(path)) from error
    except UnicodeDecodeError as error:
        raise BadState("it is not UTF-8 text", where=str(path), fix="The file was left as it is.") from error


def decode_text(content: bytes) -> str:
    """UTF-8, UTF-16 with its mark, else Windows' or plain Latin where it reads as text: `UnicodeDecodeError` for none of them."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # UTF-8 that fails and has control bytes is a binary file, not Latin text.
        if _BINARY.search(content):
            raise
        return content.decode("latin-1" if _NOT_WINDOWS.search(content) else "cp1252")


def as_v4(state: State, where: str = "") -> State:
    version = str(state.get("SCHEMA_VERSION", OLD_VERSION))
    if version == SCHEMA_VERSION:
        return state
    if version.partition(".")[0] == "3":
        return migrate_v3_to_v4(state)
    raise BadState(
        f"its SCHEMA_VERSION is {version[:40]!r}", where=where, fix=f"Known are {OLD_VERSION} and {SCHEMA_VERSION}."
    )


def parsed(text: str, where: str = "") -> State:
    """YAML, plain, before a Markdown text or in a block of it. Aliases are refused: a few bytes of them can become gigabytes."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    fenced = FENCE.search(text)
    body = fenced[1] or fenced[2] or "" if fenced else text
    if _bracket_depth(body) > DEEPEST:
        raise BadState("it is nested too deeply", where=where, fix="The file was left as it is.")
    try:
        yaml = YAML(typ="safe", pure=True)
        # Looked for in the events, before `load` would expand them.
        if any(isinstance(event, AliasEvent) for event in yaml.parse(StringIO(body))):
            raise BadState("it uses YAML aliases", where=where, fix="Write the values out.")
        loaded = YAML(typ="safe", pure=True).load(body)
    except (YAMLError, ValueError, RecursionError) as error:
        raise BadState(f"not YAML: {_first_words(error)}", where=where, fix="The file was left as it is.") from error
    if not isinstance(loaded, dict):
        raise BadState("it is not a mapping of sections", where=where, fix="The file was left as it is.")
    state: State = _plain_value(loaded)
    return state


def _bracket_depth(text: str) -> int:
    """Of brackets, roughly: a thousand of them would keep the YAML reader busy for minutes."""
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _first_words(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    line = f" (line {mark.line + 1})" if mark is not None else ""
    return " ".join(str(getattr(error, "problem", None) or error).split())[:160] + line


def _plain_value(value: Any) -> Any:
    """Times as text and keys as text, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain_value(inner) for inner in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=None, microsecond=0).isoformat() + "Z"
    return value.isoformat() if isinstance(value, date) else value


# ── v3 ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def migrate_v3_to_v4(v3_state: State) -> State:
    """State and tasks, without who did the work (S1-1)."""
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": v3_state.get("LAST_UPDATED"),
        "PROJECT": safe_name(str(v3_state.get("PROJECT") or "unknown")),
        "CURRENT_STATE": derive_state_from_v3(v3_state),
        "TASKS": convert_next_actions_to_tasks(
            [*entries_of(v3_state.get("BLOCKERS"), "P0"), *entries_of(v3_state.get("NEXT_ACTIONS"))]
        ),
        **_work_context(v3_state),
        "LEARNED_PATTERNS": [],
        "RESOURCE_LOCKS": {},
        "STATE_HISTORY": _history_lines(v3_state),
    }


def entries_of(written: Any, priority: str = "") -> Iterator[State]:
    """A text, a list, or a mapping: of lists by priority, or of entries by name. The priority of a list wins."""
    if isinstance(written, Mapping):
        for key, value in written.items():
            level = _LEVEL.match(str(key))
            for one in value if isinstance(value, list) else [value]:
                yield from _entry(one, "" if level else str(key), level[1].upper() if level else priority)
    else:
        for one in written if isinstance(written, list) else [written]:
            yield from _entry(one, "", priority)


def _entry(value: Any, name: str, priority: str) -> Iterator[State]:
    level = {"priority": priority} if priority else {}
    if isinstance(value, Mapping):
        yield {**({"action": name} if name else {}), **value, **level}
    elif value is not None:
        yield {"action": f"{name}: {value}" if name else str(value), **level}


def _work_context(v3_state: State) -> State:
    focus = v3_state.get("CURRENT_FOCUS")
    if isinstance(focus, Mapping):
        focus = focus.get("description") or focus.get("focus") or "; ".join(f"{k}: {v}" for k, v in focus.items())
    return {"WORK_CONTEXT": {"current_phase": str(focus)[:300]}} if focus else {}


def derive_state_from_v3(v3_state: State) -> State:
    """Facts that a v3 file happens to name. It never knew git's own state, so that is `unknown` unless it says so."""
    current = v3_state.get("CURRENT_STATE")
    state = dict(current) if isinstance(current, dict) else {}
    for old, section in (("GIT_STATUS", "git"), ("GIT", "git"), ("TESTS", "tests"), ("TOKEN_BUDGET", "token_budget")):
        if old in v3_state and section not in state:
            state[section] = v3_state[old]
    git = state.get("git")
    if not isinstance(git, dict):
        state["git"] = {"status": git if git in ("clean", "dirty") else "unknown"}
    return state


def convert_next_actions_to_tasks(next_actions: Iterable[Any]) -> State:
    """By priority; who was to do it is left out, and named nowhere in the text."""
    tasks: dict[str, list[State]] = {name: [] for name in SECTIONS.values()}
    actions = next_actions if isinstance(next_actions, Mapping | str) else list(next_actions or ())
    for number, action in enumerate(entries_of(actions), 1):
        tasks[SECTIONS[priority_of(action.get("priority"))]].append(_task_from_action(action, number))
    return tasks


def priority_of(value: Any) -> str:
    """P0 to P3, of what people write: P1, 1, high, urgent. P2 where nothing is said."""
    text = str(value or "").strip().lower()
    level = _LEVEL.match(text)
    return level[1].upper() if level else PRIORITY_WORDS.get(text, "P2")


def _task_from_action(action: Mapping[str, Any], number: int) -> State:
    text = _without_names(entry_text(action), action)
    task = {"id": f"task_{number:03}", "description": text, "gap_type": gap_type(text)}
    if action.get("created_at"):
        task["discovered_at"] = str(action["created_at"])
    return task


def gap_type(text: str) -> str:
    return _named_by_words(GAP_WORDS, text) or "own_task"


def _named_by_words(table: Iterable[tuple[str, tuple[str, ...]]], text: str) -> str:
    return next((name for name, words in table if any(word in text.lower() for word in words)), "")


def _history_lines(v3_state: State) -> list[State]:
    """Work without a time gets the time the file was written."""
    written = v3_state.get("RECENT_WORK")
    work = entries_of([written] if isinstance(written, Mapping) else written)
    last = str(v3_state.get("LAST_UPDATED") or "")
    last_time = last if re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", last) else None
    lines = [
        {
            "timestamp": str(one["timestamp"]) if one.get("timestamp") else last_time,
            "change_type": "state_update",
            "section": _section_name(entry_text(one)),
            "summary": _as_fact(_without_names(entry_text(one), one)),
        }
        for one in work
    ]
    return sorted(lines, key=lambda line: str(line["timestamp"] or ""), reverse=True)[:MAX_HISTORY]


def _section_name(text: str) -> str:
    return f"CURRENT_STATE.{_named_by_words(SECTION_WORDS, text)}".rstrip(".")


def _as_fact(text: str) -> str:
    """`Analyzed git status` becomes `Git status analyzed`."""
    first, _, rest = text.partition(" ")
    return f"{rest[0].upper()}{rest[1:]} {first.lower()}" if rest and first.lower().endswith("ed") else text


def _without_names(text: str, entry: Mapping[str, Any]) -> str:
    names = {str(entry[field]) for field in ("agent", "assigned_to", "created_by") if entry.get(field)}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?i)\b(?:by |to |with )?{re.escape(name)}\b", "", text)
    return _DELEGATION.sub("", " ".join(text.split()).replace(" :", ":")) or "unnamed"


def entry_text(fields: Mapping[str, Any]) -> str:
    """What an entry says under the names that people use, else its first text that says neither who, when nor how urgent."""
    names = ("action", "description", "task", "title", "name", "work", "summary")
    other = (value for name, value in fields.items() if isinstance(value, str) and name not in _NO_TEXT)
    return " ".join(str(next((fields[name] for name in names if fields.get(name)), next(other, ""))).split())[:500]

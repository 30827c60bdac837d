"""State documents of every age and hand: how they are read, and what one that is not of our writing means for the project."""

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import msgspec

from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.core.errors import HoldfastError
from holdfast.core.event import Event, own_event
from holdfast.core.kinds.project_events import DOCUMENT_SOURCE, AdoptedLine, DocumentAdopted, TaskAdded, TaskDone
from holdfast.core.lazy import lazy_pattern
from holdfast.features.project.document.text import HEAD_MARK, count_with_noun
from holdfast.features.project.jobs.resolution import safe_name
from holdfast.features.project.state import MAX_HISTORY, SCHEMA_VERSION, Project, Task
from holdfast.features.project.state.task_list import SECTIONS

# Reading state files of every age: v3 (agents' actions), the minimal v4, the full v4. Nothing is ever written here.

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
_FENCE = lazy_pattern(r"(?:\A---[ \t]*\n(.*?)^---|^```ya?ml[ \t]*\n(.*?)^```)[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = lazy_pattern(r"^#{1,6} .*$", re.MULTILINE)
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
        path = Path(state_file).expanduser()
        try:
            if path.stat().st_size > LARGEST:
                raise BadState(f"it is larger than {LARGEST >> 20} MB", where=str(path))
            return as_v4(parsed(decode_text(path.read_bytes()), str(path)), str(path))
        except OSError as error:
            raise BadState(str(error.strerror), where=str(path)) from error
        except UnicodeDecodeError as error:
            raise BadState("it is not UTF-8 text", where=str(path), fix="The file was left as it is.") from error
    return as_v4(parsed(state_file.read(), getattr(state_file, "name", "")), getattr(state_file, "name", ""))


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

    fenced = _FENCE.search(text)
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
    """What was true and what is to be done, without who did it (S1-1)."""
    return {
        "SCHEMA_VERSION": SCHEMA_VERSION,
        "LAST_UPDATED": v3_state.get("LAST_UPDATED"),
        "PROJECT": safe_name(str(v3_state.get("PROJECT") or "unknown")),
        "CURRENT_STATE": derive_state_from_v3(v3_state),
        "TASKS": convert_next_actions_to_tasks(
            [*_blocker_actions(v3_state), *_list_actions(v3_state.get("NEXT_ACTIONS"))]
        ),
        **_work_context(v3_state),
        "LEARNED_PATTERNS": [],
        "RESOURCE_LOCKS": {},
        "STATE_HISTORY": _history_lines(v3_state),
    }


def _blocker_actions(v3_state: State) -> list[State]:
    """What stood in the way is a task of the highest priority."""
    blockers = _list_actions(v3_state.get("BLOCKERS"))
    return [
        {**one, "priority": "P0"} if isinstance(one, Mapping) else {"action": one, "priority": "P0"} for one in blockers
    ]


def _list_actions(written: Any) -> list[Any]:
    """A list, one text, or a mapping: of lists by priority, or of actions by name."""
    if isinstance(written, str):
        return [written]
    if not isinstance(written, Mapping):
        return list(written) if isinstance(written, Iterable) else []
    actions: list[Any] = []
    for key, value in written.items():
        # `p1` or `P1_urgent`, but not `p10` or `print`.
        level = {"priority": str(key).upper()[:2]} if re.match(r"(?i)p[0-3](?![a-z0-9])", str(key)) else {}
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping):
                actions.append({**({} if level else {"action": str(key)}), **level, **one})
            elif one is not None:
                actions.append({"action": str(one) if level else f"{key}: {one}", **level})
    return actions


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
    listed = _list_actions(next_actions) if isinstance(next_actions, Mapping | str) else next_actions or ()
    actions = [action for action in listed if isinstance(action, Mapping | str)]
    tasks: dict[str, list[State]] = {name: [] for name in SECTIONS.values()}
    for number, action in enumerate(actions, 1):
        fields = action if isinstance(action, Mapping) else {"action": action}
        tasks[SECTIONS[priority_of(fields.get("priority"))]].append(_task_from_action(fields, number))
    return tasks


def priority_of(value: Any) -> str:
    """P0 to P3, of what people write: P1, 1, high, urgent. P2 where nothing is said."""
    text = str(value or "").strip().lower()
    return text[:2].upper() if re.match(r"p[0-3](?![a-z0-9])", text) else PRIORITY_WORDS.get(text, "P2")


def _task_from_action(action: Mapping[str, Any], number: int) -> State:
    text = _without_names(_entry_text(action), action)
    task = {"id": f"task_{number:03}", "description": text, "gap_type": gap_type(text)}
    if action.get("created_at"):
        task["discovered_at"] = str(action["created_at"])
    return task


def gap_type(text: str) -> str:
    lower = text.lower()
    return next((kind for kind, words in GAP_WORDS if any(word in lower for word in words)), "own_task")


def _history_lines(v3_state: State) -> list[State]:
    """Work without a time of its own happened, as far as is known, by the time the file was written."""
    written = v3_state.get("RECENT_WORK")
    listed = [written] if isinstance(written, str | Mapping) else written if isinstance(written, list) else []
    work = [one if isinstance(one, Mapping) else {"action": str(one)} for one in listed if one]
    last = _time_or_none(v3_state.get("LAST_UPDATED"))
    lines = [
        {
            "timestamp": str(one["timestamp"]) if one.get("timestamp") else last,
            "change_type": "state_update",
            "section": _section_name(_entry_text(one)),
            "summary": _as_fact(_without_names(_entry_text(one), one)),
        }
        for one in work
    ]
    return sorted(lines, key=lambda line: str(line["timestamp"] or ""), reverse=True)[:MAX_HISTORY]


def _time_or_none(value: Any) -> str | None:
    text = str(value or "")
    return text if re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text) else None


def _section_name(text: str) -> str:
    lower = text.lower()
    name = next((name for name, words in SECTION_WORDS if any(word in lower for word in words)), "")
    return f"CURRENT_STATE.{name}" if name else "CURRENT_STATE"


def _as_fact(text: str) -> str:
    """`Analyzed git status` says what somebody did; `Git status analyzed` says what was done."""
    first, _, rest = text.partition(" ")
    return f"{rest[0].upper()}{rest[1:]} {first.lower()}" if rest and first.lower().endswith("ed") else text


def _without_names(text: str, entry: Mapping[str, Any]) -> str:
    names = {str(entry[field]) for field in ("agent", "assigned_to", "created_by") if entry.get(field)}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?i)\b(?:by |to |with )?{re.escape(name)}\b", "", text)
    return _DELEGATION.sub("", " ".join(text.split()).replace(" :", ":")) or "unnamed"


# What a SESSION_STATE document that is not of our writing means for the project: tasks, history, focus, and what is left out.

MAX_TASKS = 500
NO_TEXT = "id agent assigned_to created_by status priority severity timestamp created_at updated_at time date".split()
OVER = ("done", "complete", "completed", "closed", "cancelled", "resolved")
UNDERSTOOD = frozenset(
    "SCHEMA_VERSION LAST_UPDATED PROJECT CURRENT_STATE TASKS PROJECT_RESOLUTION WORK_CONTEXT LEARNED_PATTERNS RESOURCE_LOCKS "
    "STATE_HISTORY NEXT_ACTIONS next_actions BLOCKERS RECENT_WORK CURRENT_FOCUS GIT_STATUS GIT TESTS TOKEN_BUDGET".split()
)
"""What a section says of git, tests, locks and the like is looked at anew, never believed."""
_TASK_ID = lazy_pattern(r"task_(\d{3,9})")
# A list item with an optional check mark and optional quotes: `- [x] "text"`, `3. text`.
_LISTED = lazy_pattern(r"""^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[(?P<mark>[ xX])\]\s*)?["']?(?P<text>.*?)["']?\s*$""")
_FIELD = lazy_pattern(r"^(?:id|path|pattern|intent|timestamp|action|agent|description|project|name):(\s|$)")
"""What the entries of the document's own lists begin with."""
# The heading of one of our own lists, such as `P1_urgent:`.
_SECTION = lazy_pattern(r"^\s*(P[0-3])_\w+:\s*$")


class FoundTask(msgspec.Struct, frozen=True):
    description: str
    priority: str = "P2"
    done_when: list[str] = []


class Adoption(msgspec.Struct):
    """`left` names what could not be taken, each with the reason; `done` are tasks of ours that it says are done."""

    version: str = ""
    tasks: list[FoundTask] = []
    done: list[str] = []
    history: list[AdoptedLine] = []
    focus: str = ""
    left: list[str] = []


def adopt_document(doc: Project, path: Path, content: bytes, now: int) -> list[Event]:
    """The events that bring it in. The same file twice gives the same events, which happen once."""
    adoption = read_adoption(content, doc)
    made_by_us = HEAD_MARK.encode() in content
    digest = hashlib.sha256(content).hexdigest()
    known_texts = {task.description for task in doc.own_tasks}
    events = []
    for task in adoption.tasks:
        if task.description not in known_texts:
            # The same words in another version of our own file are a new task;
            # in a foreign file they are the same one.
            key = adoption_key(doc.project, task.description, digest if made_by_us else "")
            added = TaskAdded(
                description=task.description, priority=task.priority, done_when=task.done_when, imported=DOCUMENT_SOURCE,
                why=f"It was written into {path.name}.",
            )  # fmt: skip
            events.append(msgspec.structs.replace(own_event(added, now, project=doc.project), key=key))
    events += _finished_tasks(doc, adoption.done, now)
    adopted = DocumentAdopted(
        path=str(path), version=adoption.version, tasks=len(events), history=adoption.history, focus=adoption.focus,
        left=adoption.left,
    )  # fmt: skip
    key = adoption_key(doc.project, str(path), digest)
    return [*events, msgspec.structs.replace(own_event(adopted, now, project=doc.project), key=key)]


def adoption_key(*parts: str) -> str:
    return hashlib.sha256("\n".join((DOCUMENT_SOURCE, *parts)).encode("utf-8", "replace")).hexdigest()


def _finished_tasks(doc: Project, ids: Iterable[str], now: int) -> Iterator[Event]:
    """Only tasks of one's own: derived ones close when what they were found on does."""
    for task in doc.tasks:
        if task.id in ids and task.type == "own_task":
            yield own_event(TaskDone(key=task.key, id=task.id), now, project=doc.project)


def describe_adoption(data: DocumentAdopted) -> str:
    """One line for people: what was taken, and what could not be."""
    taken = [count_with_noun(data.tasks, "task")] if data.tasks else []
    taken += [count_with_noun(len(data.history), "line of history", "lines of history")] if data.history else []
    taken += [f"the focus ({data.focus[:60]})"] if data.focus else []
    line = f"{Path(data.path).name}{f', version {data.version}' if data.version else ''}: "
    line += f"{', '.join(taken)} taken over" if taken else "nothing to take over"
    return line + (f"; not taken: {'; '.join(data.left[:5])}" if data.left else "")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_adoption(content: bytes, doc: Project | None = None) -> Adoption:
    """Never fails: a file that is no YAML is read line by line, and one that is no text at all is left."""
    try:
        text = decode_text(content)
    except UnicodeDecodeError:
        return Adoption(left=["the whole file (it is no text)"])
    try:
        adoption = _read_state(parsed(text), doc if HEAD_MARK in text else None)
        if _FENCE.search(text) and _HEADING.sub("", _FENCE.sub("", text, count=1)).strip():
            adoption.left.append("what stands beside its YAML")
        return adoption
    except BadState as error:
        return _read_lines(text, doc, error)


def _read_state(state: Mapping[str, Any], doc: Project | None) -> Adoption:
    version = str(state.get("SCHEMA_VERSION", OLD_VERSION))
    v4 = as_v4(dict(state))
    adoption = Adoption(version=version, tasks=[], done=[], history=[], left=[])
    for priority, item in _listed_by_priority(v4.get("TASKS"), ""):
        _add_task(adoption, priority, item, doc)
    if doc is not None or version[:1] == "4":  # Sections of version 3 in a version 4 file: a person's.
        for name, level in (("BLOCKERS", "P0"), ("NEXT_ACTIONS", ""), ("next_actions", "")):
            for priority, item in _listed_by_priority(state.get(name), level):
                _add_task(adoption, priority, item, doc)
    for name in state:
        if name not in UNDERSTOOD:
            _add_unknown_section(adoption, str(name), state[name])
    if isinstance(state.get("CURRENT_STATE"), str | list):
        adoption.left.append("CURRENT_STATE (no sections: it is found out anew)")
    # Our own document was changed by hand: its history and focus are known here already.
    if doc is None:
        adoption.history = list(_adopted_lines(v4.get("STATE_HISTORY")))
        context = v4.get("WORK_CONTEXT")
        adoption.focus = str(context.get("current_phase") or "")[:300] if isinstance(context, Mapping) else ""
    adoption.tasks = adoption.tasks[:MAX_TASKS]
    return adoption


def _add_unknown_section(adoption: Adoption, name: str, value: Any) -> None:
    """A list somebody wrote is taken as things to do; anything else is named."""
    if isinstance(value, list) and all(isinstance(item, str | Mapping) for item in value):
        for item in value:
            _add_task(adoption, "", item, None)
    else:
        adoption.left.append(f"{name[:60]} (an unknown section)")


def _listed_by_priority(written: Any, priority: str) -> Iterator[tuple[str, Any]]:
    """Lists, or mappings of lists by priority: both have been seen. The key `P1` or `P1_urgent` is the priority."""
    if isinstance(written, Mapping):
        for key, value in written.items():
            level = str(key)[:2].upper() if re.match(r"(?i)p[0-3](?![a-z0-9])", str(key)) else priority
            yield from _listed_by_priority(value if isinstance(value, list) else [value], level)
    elif isinstance(written, str):
        yield priority, written
    elif isinstance(written, list):
        yield from ((priority, item) for item in written)


def _add_task(adoption: Adoption, priority: str, item: Any, doc: Project | None) -> None:
    fields: Mapping[str, Any] = item if isinstance(item, Mapping) else {"description": item}
    description = _entry_text(fields)
    if doc is not None and (ours := _task_of_ours(fields, doc)):
        adoption.done += [ours] if _is_over(fields) else []
    elif not description:
        adoption.left.append("a task without a description")
    elif not _is_over(fields):
        level = priority or priority_of(fields.get("priority"))
        adoption.tasks.append(FoundTask(description, level, _done_when(fields)))


def _task_of_ours(fields: Mapping[str, Any], doc: Project) -> str:
    """Its id, where the entry is one that we wrote: numbered by us, with the time of its discovery."""
    match = _TASK_ID.fullmatch(str(fields.get("id") or ""))
    # A number that we have not given out yet is somebody else's.
    ours = match and int(match[1]) < doc.next_task and fields.get("discovered_at")
    return str(fields["id"]) if ours else ""


def _is_over(fields: Mapping[str, Any]) -> bool:
    return str(fields.get("status", "")).lower() in OVER


def _entry_text(fields: Mapping[str, Any]) -> str:
    """What an entry says under the names that people use, else its first text that tells neither who, when nor how urgent."""
    names = ("action", "description", "task", "title", "name", "work", "summary")
    other = (value for name, value in fields.items() if isinstance(value, str) and name not in NO_TEXT)
    return " ".join(str(next((fields[name] for name in names if fields.get(name)), next(other, ""))).split())[:500]


def _done_when(fields: Mapping[str, Any]) -> list[str]:
    names = ("done_when", "resolution_criteria", "completion_criteria", "success_criteria")
    value: Any = next((fields[name] for name in names if fields.get(name)), [])
    return [str(one)[:300] for one in value][:20] if isinstance(value, list) else [str(value)[:300]]


def _adopted_lines(written: Any) -> Iterator[AdoptedLine]:
    for line in written[:MAX_HISTORY] if isinstance(written, list) else ():
        if isinstance(line, Mapping) and line.get("summary"):
            at = parse_milliseconds(line.get("timestamp"))
            yield AdoptedLine(at=at, section=str(line.get("section") or "")[:100], summary=str(line["summary"])[:300])


def _read_lines(text: str, doc: Project | None, error: BadState) -> Adoption:
    """For a file that is no YAML any more: list items that are no fields of ours."""
    adoption = Adoption(tasks=[], done=[], history=[], left=[f"what is no list item ({error.detail})"])
    known_texts = _known_texts(doc)
    priority = "P2"
    for line in text.splitlines()[:20_000]:
        if section := _SECTION.match(line):
            priority = section[1]
        match = _LISTED.match(line)
        if not match or match["mark"] in ("x", "X"):
            continue
        words = " ".join(match["text"].split())[:500]
        if words and words not in known_texts and not _FIELD.match(words):
            adoption.tasks.append(FoundTask(words, priority))
    adoption.tasks = adoption.tasks[:MAX_TASKS]
    return adoption


def _known_texts(doc: Project | None) -> set[str]:
    tasks: list[Task] = doc.tasks if doc else []
    lists = [text for task in tasks for text in (*task.done_when, *task.blocking, *task.capabilities, *task.resources)]
    evidence = doc.git.conflicts if doc else []
    return {*lists, *evidence, *(task.description for task in tasks)}

"""SESSION_STATE.md, versions 3 and 4: its open tasks become tasks of the project."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from holdfast.core.event import Event
from holdfast.imports.source import Found, Importer, Place, Skipped, key_of

NAME = "session-state"
FILES = ("SESSION_STATE.md", "SESSION_STATE.yaml", "SESSION_STATE.yml")
LARGEST = 4 << 20
FENCE = re.compile(r"^```(?:ya?ml)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRIORITY = re.compile(r"(?i)p[0-3](?![a-z0-9])")
OVER = ("done", "complete", "completed", "closed", "cancelled")


def find(place: Place) -> Iterable[Path]:
    folders = (place.project, place.project / ".claude", place.project / "docs")
    return [file for folder in folders for name in FILES if (file := folder / name).is_file()]


def read(path: Path, place: Place) -> Iterator[Found]:
    state = _parsed(path)
    if not isinstance(state, Mapping):
        yield Skipped(str(path), "no YAML mapping in it")
        return
    found = _tasks(state)
    if not found:
        yield Skipped(str(path), "no TASKS (version 4) and no NEXT_ACTIONS (version 3)")
    for n, task in enumerate(found):
        description = _description(task)
        if not description:
            yield Skipped(f"{path}: task {n + 1}", "it has no description")
        elif isinstance(task, Mapping) and str(task.get("status", "")).lower() in OVER:
            yield Skipped(f"{path}: {description[:60]}", "it is done", expected=True)
        else:
            yield _event(path, place, task, description)


def _parsed(path: Path) -> Any:
    content = path.read_bytes()[:LARGEST]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    fenced = FENCE.search(text)
    try:
        return YAML(typ="safe").load(fenced[1] if fenced else text)
    except (YAMLError, ValueError, RecursionError):
        return None


def _tasks(state: Mapping[str, Any]) -> list[Any]:
    """Lists, or mappings of lists by priority: both have been seen in the wild."""
    written = state.get("TASKS", state.get("NEXT_ACTIONS", state.get("next_actions")))
    found = [*_with_priority(state.get("BLOCKERS"), "P0"), *_with_priority(written, "")]
    return found[:500]


def _with_priority(written: Any, priority: str) -> list[Any]:
    """The key `P1` or `P1_urgent` of a mapping is the priority of what is listed under it."""
    if isinstance(written, Mapping):
        levels = (
            (str(key)[:2].upper() if PRIORITY.match(str(key)) else priority, value) for key, value in written.items()
        )
        return [
            item
            for level, value in levels
            for item in _with_priority(value if isinstance(value, list) else [value], level)
        ]
    listed = [written] if isinstance(written, str) else written if isinstance(written, list) else []
    if not priority:
        return listed
    return [
        {"priority": priority, **item} if isinstance(item, Mapping) else {"priority": priority, "action": item}
        for item in listed
    ]


def _description(task: Any) -> str:
    if isinstance(task, str):
        return task.strip()[:500]
    names = ("description", "action", "task", "title", "name")
    told = next((task[n] for n in names if task.get(n)), "") if isinstance(task, Mapping) else ""
    return str(told).strip()[:500]


def _event(path: Path, place: Place, task: Any, description: str) -> Event:
    given = task if isinstance(task, Mapping) else {}
    done_when = given.get("done_when") or given.get("completion_criteria") or given.get("success_criteria") or []
    done_when = [str(one)[:300] for one in done_when][:20] if isinstance(done_when, list) else [str(done_when)[:300]]
    data = {"description": description, "priority": str(given.get("priority") or ""), "done_when": done_when}
    return Event(
        key=key_of(NAME, place.project, description),
        kind="project.task_added",
        at=int(path.stat().st_mtime * 1000),
        project=str(place.project),
        data={**{k: v for k, v in data.items() if v}, "imported": NAME},
    )


IMPORTER = Importer(NAME, "SESSION_STATE documents", find, read)

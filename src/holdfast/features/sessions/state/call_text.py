"""What a tool call is about, on one line: the same words for its row, for what runs now and for what is asked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.features.sessions.state.documents import one_line

NAMING_FIELDS = (
    "subject", "description", "query", "pattern", "url", "question", "prompt", "message", "dir_path", "path", "name",
    "task_name", "plan",
)  # fmt: skip
"""Of a call that names neither a command nor a file: which of its inputs says what it does, the best first."""
SEARCHED_FIELDS = ("pattern", "patterns", "query", "regex", "glob_pattern", "information_request")
PLACE_FIELDS = ("dir_path", "directory", "directory_path", "dirpath", "folder", "directory_absolute_path")
AGENT_FIELDS = ("agent_name", "subagent_type", "agent_type")
LIST_FIELDS = ("todos", "plan", "tasks", "items", "questions")
"""Where agents keep the points of a list or their questions."""
ITEM_FIELDS = ("question", "content", "step", "title", "subject", "description", "name", "text")
DONE = ("completed", "complete", "done")
UNDER_WAY = ("in_progress", "in-progress", "active")
# Inputs shown of a call that none of these says anything about.
MOST_VALUES = 4


def about_call(event: Event) -> str:
    """What a tool call is about: its command, its files, what it looks for and where, its skill, its task or question."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return one_line(data.get("message"))
    given: Mapping[str, Any] = data.input if isinstance(data.input, Mapping) else {}
    if data.command:
        return one_line(data.command)
    if data.action == "agent":
        return one_line(_agent_text(given))
    files = _first_of([_short_path(path, event.project) for path in data.paths or filter(None, [data.path])])
    if data.action == "search":
        return one_line(_search_text(given, files, event.project) or _input_text(given))
    return one_line(files or data.skill or data.get("message") or _input_text(given))


def _short_path(path: str, project: str) -> str:
    return path.removeprefix(f"{project}/") if project else path


def _first_of(texts: Sequence[str]) -> str:
    """The first, and how many more there are."""
    more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    return f"{texts[0]}{more}" if texts else ""


def _search_text(given: Mapping[str, Any], files: str, project: str) -> str:
    wanted = _named_text(given, SEARCHED_FIELDS)
    place = files or _short_path(_named_text(given, PLACE_FIELDS), project)
    return f"{wanted} in {place}" if wanted and place else wanted or place


def _agent_text(given: Mapping[str, Any]) -> str:
    kind, task = _named_text(given, AGENT_FIELDS), _named_text(given, NAMING_FIELDS)
    return f"{kind}: {task}" if kind and task else kind or task or _input_text(given)


def _input_text(given: Mapping[str, Any]) -> str:
    return _list_text(given) or _named_text(given, NAMING_FIELDS) or ", ".join(_plain_values(given))


def _named_text(given: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((text for name in names if (text := _as_text(given.get(name)))), "")


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(one for one in value[:MOST_VALUES] if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _list_text(given: Mapping[str, Any]) -> str:
    """A list of points: how many are done and which is under way, else the first."""
    listed: list[Any] = next((given[name] for name in LIST_FIELDS if isinstance(given.get(name), list)), [])
    points = [
        (str(point.get("status", "")).lower(), _named_text(point, ITEM_FIELDS))
        for point in listed
        if isinstance(point, Mapping)
    ]
    if not any(state for state, _ in points):
        return _first_of([text for _, text in points if text])
    now = next((f": {text}" for state, text in points if state in UNDER_WAY and text), "")
    return f"{sum(state in DONE for state, _ in points)} of {len(points)} done{now}"


def _plain_values(given: Mapping[str, Any]) -> list[str]:
    """A tool that nobody here knows: its first inputs, by their names."""
    values = {name: _as_text(value) or value for name, value in given.items()}
    return [f"{k}: {v}" for k, v in values.items() if isinstance(v, str | int | float) and v != ""][:MOST_VALUES]

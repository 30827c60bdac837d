"""Imports what earlier tools left in files: state, requirements, UAT sessions."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.agents.source import key_of, session_name
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.core.event import Event
from holdfast.core.kinds.project_events import DOCUMENT_SOURCE
from holdfast.setup.imports.oak import OAK_IMPORTER


def _read_json(path: Path) -> Any:
    """The parsed file, or why it is skipped."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return Skipped(str(path), f"not JSON: {error}")


# The reindex system's file, version 1: which session was shown the first-prompt status.

REINDEX_STATE_NAME = "reindex"
REINDEX_STATE_FILE = "logs/state/session-reindex-tracking.json"


def find_state_file(location: ImportLocation) -> Iterable[Path]:
    return [file] if (file := location.project / REINDEX_STATE_FILE).is_file() else []


def read_state_file(path: Path, location: ImportLocation) -> Iterator[Found]:
    state = _read_json(path)
    if isinstance(state, Skipped):
        yield state
        return
    session = session_name(state.get("session_id")) if isinstance(state, dict) else ""
    shown = state.get("first_semantic_search_shown") if isinstance(state, dict) else None
    if not session or not isinstance(shown, bool):
        yield Skipped(str(path), "no session_id, or no first_semantic_search_shown")
        return
    yield Event(
        key=key_of(REINDEX_STATE_NAME, location.project, session, shown),
        kind="reindex.marked",
        at=int(path.stat().st_mtime * 1000),
        session=session,
        project=str(location.project),
        data={"shown": shown, "imported": REINDEX_STATE_NAME},
    )


REINDEX_STATE_IMPORTER = Importer(REINDEX_STATE_NAME, "the reindex system's state", find_state_file, read_state_file)


# The requirements system's branch files, `.git/requirements/BRANCH.json`: who satisfied what.

REQUIREMENTS_STATE_NAME = "requirements"
SCOPES = ("session", "branch", "permanent", "single_use")


def find_requirement_files(location: ImportLocation) -> Iterable[Path]:
    return sorted((location.project / ".git" / "requirements").rglob("*.json"))


def read_requirement_file(path: Path, location: ImportLocation) -> Iterator[Found]:
    state = _read_json(path)
    if isinstance(state, Skipped):
        yield state
        return
    named = state.get("requirements") if isinstance(state, dict) else None
    if not isinstance(named, dict):
        yield Skipped(str(path), "no requirements in it")
        return
    branch = str(state.get("branch") or path.relative_to(location.project / ".git" / "requirements").with_suffix(""))
    for name, entry in named.items():
        yield from _read_requirement(path, location, branch, str(name), entry)


def import_file(path: Path) -> Iterator[Event]:
    """Import a branch file that is in our file's place (S2-7); nothing for other files."""
    folder = next((one for one in path.parents if one.name == "requirements" and one.parent.name == ".git"), None)
    if folder is not None:
        location = ImportLocation(Path.home(), folder.parent.parent)
        yield from (record for record in read_requirement_file(path, location) if isinstance(record, Event))


def _read_requirement(path: Path, location: ImportLocation, branch: str, name: str, entry: Any) -> Iterator[Found]:
    where = f"{path}: {name}"
    if not isinstance(entry, Mapping) or entry.get("scope", "session") not in SCOPES:
        yield Skipped(where, "not a requirement of a known scope")
        return
    sessions = entry.get("sessions")
    if entry.get("satisfied") is True:
        yield _satisfied_event(path, location, branch, name, "", entry, entry)
    for session, satisfaction in sessions.items() if isinstance(sessions, Mapping) else ():
        if isinstance(satisfaction, Mapping) and satisfaction.get("satisfied") is True:
            yield _satisfied_event(path, location, branch, name, session_name(session), entry, satisfaction)
        else:
            yield Skipped(f"{where}: {session}", "it was not satisfied", expected=True)


def _satisfied_event(
    path: Path,
    location: ImportLocation,
    branch: str,
    name: str,
    session: str,
    entry: Mapping[str, Any],
    satisfaction: Mapping[str, Any],
) -> Event:
    at = parse_milliseconds(satisfaction.get("satisfied_at")) or int(path.stat().st_mtime * 1000)
    ttl = satisfaction.get("ttl", entry.get("ttl"))
    until = {"until": at + int(ttl * 1000)} if isinstance(ttl, int | float) and not isinstance(ttl, bool) else {}
    scope = str(entry.get("scope", "session"))
    metadata = satisfaction.get("metadata") if isinstance(satisfaction.get("metadata"), dict) else {}
    data = {
        "requirements": [{"name": name, "scope": scope, **until}], "method": str(satisfaction.get("satisfied_by") or "import"),
        "metadata": metadata, "branch": branch, "repo": str(location.project / ".git"), "imported": REQUIREMENTS_STATE_NAME,
    }  # fmt: skip
    key = key_of(REQUIREMENTS_STATE_NAME, location.project, branch, name, session, at)
    return Event(key=key, kind="gates.satisfied", at=at, session=session, project=str(location.project), data=data)


REQUIREMENTS_STATE_IMPORTER = Importer(
    REQUIREMENTS_STATE_NAME, "the requirements system's state", find_requirement_files, read_requirement_file
)


# SESSION_STATE.md, versions 3 and 4: open tasks, history and focus of the project.

FILES = ("SESSION_STATE.md", "SESSION_STATE.yaml", "SESSION_STATE.yml")
LARGEST = 4 << 20


def find_session_documents(location: ImportLocation) -> Iterable[Path]:
    own = location.home / ".claude" / "sessions" / location.project.name
    folders = (location.project, location.project / ".claude", location.project / "docs", own)
    candidates = [file for folder in folders for name in FILES if (file := folder / name).is_file()]
    if not candidates:
        return []
    # Features are loaded only if there is something for them to read.
    from holdfast.features.project.files import is_ours

    # Documents that Holdfast wrote are no history of another system.
    return [file for file in candidates if not is_ours(file.read_bytes()[:LARGEST])]


def read_session_document(path: Path, location: ImportLocation) -> Iterator[Found]:
    content = path.read_bytes()
    if len(content) > LARGEST:
        yield Skipped(str(path), f"larger than {LARGEST >> 20} MB")
        return
    from holdfast.features.project.document.adoption import adopt_document, read_adoption
    from holdfast.features.project.state import Project

    adoption = read_adoption(content)
    yield from (Skipped(f"{path}: {what.partition(' (')[0]}", _skip_reason(what)) for what in adoption.left)
    if not (adoption.tasks or adoption.history or adoption.focus):
        yield Skipped(str(path), "no TASKS (version 4), no NEXT_ACTIONS (version 3), no history")
        return
    yield from adopt_document(Project(project=str(location.project)), path, content, int(path.stat().st_mtime * 1000))


def _skip_reason(left: str) -> str:
    return left.partition(" (")[2].removesuffix(")") or "it cannot be taken"


SESSION_STATE_IMPORTER = Importer(
    DOCUMENT_SOURCE, "SESSION_STATE documents", find_session_documents, read_session_document
)


# The UAT system's session files: completed runs with steps and tool calls.

UAT_SESSIONS_NAME = "uat"
FORMAT = "claude-uat-session-state"
# The old system could be installed in different folders of a project.
FOLDERS = ("uat/sessions", ".claude/uat/sessions", "sessions", "uat")
MOST_CALLS = 5_000


def find_uat_sessions(location: ImportLocation) -> Iterable[Path]:
    candidates = [file for name in FOLDERS for file in sorted((location.project / name).glob("claude-session-*.json"))]
    return list(dict.fromkeys(candidates))


def read_uat_session(path: Path, location: ImportLocation) -> Iterator[Found]:
    state = _read_json(path)
    if isinstance(state, Skipped):
        yield state
        return
    meta, run = _mapping_in(state, "meta"), _mapping_in(state, "session")
    uat, session = run.get("uatSessionId"), session_name(run.get("claudeSessionId"))
    if meta.get("format") != FORMAT or not isinstance(uat, str) or not uat or not session:
        yield Skipped(str(path), f"not a {FORMAT} with both its ids")
        return
    yield from _Run(path, location, session, uat, state).events()


class _Run:
    def __init__(self, path: Path, location: ImportLocation, session: str, uat: str, state: Mapping[str, Any]) -> None:
        self.path, self.place, self.session, self.uat, self.state = path, location, session, uat, state
        self.begun = parse_milliseconds(_mapping_in(state, "session").get("startTime"))

    def events(self) -> Iterator[Found]:
        scenario = _mapping_in(self.state, "scenario")
        plan = {
            "name": str(scenario.get("name", "")),
            "steps": [_planned_step(step) for step in _list_in(scenario, "steps")],
        }
        mode = str(_mapping_in(self.state, "session").get("mode", ""))
        yield self._event("uat.started", "", self.begun, plan=plan, mode=mode)
        for n, call in enumerate(_list_in(_mapping_in(self.state, "execution"), "toolCalls")[:MOST_CALLS], 1):
            yield from self._call(n, call)
        for step in _list_in(scenario, "steps"):
            yield from self._step(step)
        last = parse_milliseconds(_mapping_in(self.state, "session").get("lastActivity")) or self.begun
        yield self._event("uat.ended", "", last, reason="import")

    def _call(self, n: int, call: Any) -> Iterator[Found]:
        if not isinstance(call, Mapping) or not call.get("toolName"):
            yield Skipped(f"{self.path}: tool call {n}", "it names no tool")
            return
        at, name = parse_milliseconds(call.get("timestamp")) or self.begun, str(call.get("id") or n)
        shared = {"n": n, "call": name, "step": call.get("stepNumber") or 0, "tool": str(call["toolName"])}
        yield self._event("uat.call_started", name, at, parameters=call.get("parameters"), **shared)
        ended = {"parameters": call.get("parameters"), "result": call.get("result"), "ms": call.get("executionTime")}
        yield self._event("uat.call_ended", name, at, ok=call.get("success") is not False, **ended, **shared)

    def _step(self, step: Any) -> Iterator[Found]:
        fields = step if isinstance(step, Mapping) else {}
        number, status = fields.get("stepNumber"), fields.get("status")
        if not isinstance(number, int) or not isinstance(status, str):
            yield Skipped(f"{self.path}: a step", "it has no number or no status")
            return
        at = parse_milliseconds(fields.get("endTime")) or parse_milliseconds(fields.get("startTime")) or self.begun
        yield self._event("uat.step", str(number), at, step=number, status=status)

    def _event(self, kind: str, which: str, at: int, **data: Any) -> Event:
        return Event(
            key=key_of(UAT_SESSIONS_NAME, self.uat, kind, which),
            kind=kind,
            at=at,
            session=self.session,
            project=str(self.place.project),
            data={"uat": self.uat, **data, "imported": UAT_SESSIONS_NAME},
        )


def _planned_step(step: Any) -> dict[str, Any]:
    fields = step if isinstance(step, Mapping) else {}
    return {"action": str(fields.get("action", "")), "description": str(fields.get("description", ""))}


def _mapping_in(value: Any, name: str) -> Mapping[str, Any]:
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _list_in(value: Mapping[str, Any], name: str) -> list[Any]:
    inner = value.get(name)
    return inner if isinstance(inner, list) else []


UAT_SESSIONS_IMPORTER = Importer(UAT_SESSIONS_NAME, "the UAT system's sessions", find_uat_sessions, read_uat_session)


IMPORTERS = (
    REINDEX_STATE_IMPORTER, SESSION_STATE_IMPORTER, REQUIREMENTS_STATE_IMPORTER, UAT_SESSIONS_IMPORTER, OAK_IMPORTER,
)  # fmt: skip

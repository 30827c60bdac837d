"""The requirements system's branch files, `.git/requirements/BRANCH.json`: who had satisfied what."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.imports.source import Found, Importer, Place, Skipped, key_of, parse_milliseconds, session_name

NAME = "requirements"
SCOPES = ("session", "branch", "permanent", "single_use")


def find_requirement_files(location: Place) -> Iterable[Path]:
    return sorted((location.project / ".git" / "requirements").rglob("*.json"))


def read_requirement_file(path: Path, location: Place) -> Iterator[Found]:
    try:
        state = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        yield Skipped(str(path), f"not JSON: {error}")
        return
    named = state.get("requirements") if isinstance(state, dict) else None
    if not isinstance(named, dict):
        yield Skipped(str(path), "no requirements in it")
        return
    branch = str(state.get("branch") or path.relative_to(location.project / ".git" / "requirements").with_suffix(""))
    for name, entry in named.items():
        yield from _read_requirement(path, location, branch, str(name), entry)


def import_file(path: Path) -> Iterator[Event]:
    """Of a branch file that Holdfast meets where it writes its own (S2-7); nothing for any other file."""
    folder = next((one for one in path.parents if one.name == "requirements" and one.parent.name == ".git"), None)
    if folder is not None:
        location = Place(Path.home(), folder.parent.parent)
        yield from (record for record in read_requirement_file(path, location) if isinstance(record, Event))


def _read_requirement(path: Path, location: Place, branch: str, name: str, entry: Any) -> Iterator[Found]:
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
    location: Place,
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
        "metadata": metadata, "branch": branch, "repo": str(location.project / ".git"), "imported": NAME,
    }  # fmt: skip
    key = key_of(NAME, location.project, branch, name, session, at)
    return Event(key=key, kind="gates.satisfied", at=at, session=session, project=str(location.project), data=data)


IMPORTER = Importer(NAME, "the requirements system's state", find_requirement_files, read_requirement_file)

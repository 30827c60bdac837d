"""The reindex system's file, version 1: which session was shown the first-prompt status."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.core.event import Event
from holdfast.imports.source import Found, Importer, Place, Skipped, key_of, session_name

NAME = "reindex"
FILE = "logs/state/session-reindex-tracking.json"


def find_state_file(location: Place) -> Iterable[Path]:
    return [file] if (file := location.project / FILE).is_file() else []


def read_state_file(path: Path, location: Place) -> Iterator[Found]:
    try:
        state = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        yield Skipped(str(path), f"not JSON: {error}")
        return
    session = session_name(state.get("session_id")) if isinstance(state, dict) else ""
    shown = state.get("first_semantic_search_shown") if isinstance(state, dict) else None
    if not session or not isinstance(shown, bool):
        yield Skipped(str(path), "no session_id, or no first_semantic_search_shown")
        return
    yield Event(
        key=key_of(NAME, location.project, session, shown),
        kind="reindex.marked",
        at=int(path.stat().st_mtime * 1000),
        session=session,
        project=str(location.project),
        data={"shown": shown, "imported": NAME},
    )


IMPORTER = Importer(NAME, "the reindex system's state", find_state_file, read_state_file)

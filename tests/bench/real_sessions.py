"""Real sessions for the benches: transcripts below the folder that HOLDFAST_SESSIONS names, read by the importers."""

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from holdfast.analysis.transcripts import ImportLocation
from holdfast.core.event import Event
from holdfast.core.kinds import HookPayload, ToolEndPayload
from holdfast.setup.imports import IMPORTERS
from tests.bench.figures import fact

VARIABLE = "HOLDFAST_SESSIONS"
READERS = {"claude-code": "claude-code", "agent": "claude-code", "codex": "codex", "gemini-cli": "gemini", "pi": "pi"}
"""By folder: REPOSITORY/AGENT/SESSION.jsonl."""


class RealSession(msgspec.Struct):
    repository: str
    events: list[Event]

    @property
    def began(self) -> int:
        return self.events[0].at


@cache
def repositories() -> dict[str, list[RealSession]]:
    """Oldest session first; their repository is the archive's name."""
    folder = os.environ.get(VARIABLE)
    if not folder or not Path(folder).is_dir():
        return {}
    found = {
        place.name: sorted(_sessions(place), key=lambda one: one.began) for place in sorted(Path(folder).iterdir())
    }
    return {name: sessions for name, sessions in found.items() if sessions}


def needs_data() -> bool:
    """Say that a bench is skipped, where there is no data."""
    if not repositories():
        fact("skipped: no transcripts", f"set {VARIABLE} to a folder of REPOSITORY/AGENT/SESSION.jsonl")
    return bool(repositories())


def _sessions(place: Path) -> Iterator[RealSession]:
    for name, importer in READERS.items():
        for path in sorted((place / name).glob("*.jsonl")):
            events = [_judged(one) for one in _read(importer, path)]
            if events:
                yield RealSession(place.name, list(_placed(events, place.name)))


def _read(importer: str, path: Path) -> list[Event]:
    try:
        found = IMPORTERS[importer].read(path, ImportLocation(path.parent, path.parent))
        return [one for one in found if isinstance(one, Event)]
    except Exception as error:
        print(f"  {path.name}: {error}", file=sys.stderr)
        return []


def _judged(event: Event) -> Event:
    """As the engine does it on import: what each command was."""
    from holdfast.features.checks.observe import judge_imported

    if isinstance(event.data, ToolEndPayload):
        judge_imported(event)
    return event


def _placed(events: list[Event], repository: str) -> Iterator[Event]:
    """One project for each session, and one repository for all of the archive, as git's common folder has it live."""
    project = next((event.project for event in events if event.project), "")
    for seq, event in enumerate(events, 1):
        if isinstance(event.data, HookPayload):
            event.data.repo = repository
        yield msgspec.structs.replace(event, project=project, seq=seq, body=b"")

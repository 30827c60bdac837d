"""One look at a project: the quick facts together, and one event when any of them changed."""

import zlib
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc, Reader
from holdfast.features.project import activity, everywhere, habits
from holdfast.features.project.collectors import git_facts, junit, resolving
from holdfast.features.project.collectors.spending import budget
from holdfast.features.project.model import EVERYWHERE, activity_ref, empty, habits_ref, number, project_ref, said
from holdfast.features.project.settings import DEFAULTS, ProjectSettings

MOST_PATTERNS = 20


def refresh(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    settings = call.settings(root) or DEFAULTS
    doc = call.reader.state(project_ref(root)) or empty(root)
    git = git_facts.look(root, call.run, doc["git"], call.now)
    facts = {"git": git, **told(call.reader, root, git.get("remote") or "", settings, call.now)}
    reports = junit.reports(root, settings.junit, _known_reports(doc))
    if reports:
        facts["junit"] = reports
    return observed(doc, facts, call.now, number(call.job.payload.get("pid")))


def _known_reports(doc: Doc) -> dict[str, int]:
    """When each report that was read was written."""
    return {run["runner"]: run["at"] for run in doc["results"] if run["runner"].startswith(junit.PREFIX)}


def told(reader: Reader, root: str, remote: str, settings: ProjectSettings, now: int) -> dict[str, Any]:
    """What needs no look at the disk but the mapping file."""
    doing = reader.state(activity_ref(root))
    found = resolving.resolution(reader, root, remote, settings, now)
    return {
        "rules": settings.rules(),
        "activity": activity.summary(doing, now),
        "tokens": budget(doing, settings.tokens, now),
        "patterns": patterns(reader, root, str(found["project"]), now),
        "resolution": found,
        "name": found["project"],
        "folder": resolving.folder_name(reader, root, found["project"]),
    }


def patterns(reader: Reader, root: str, name: str, now: int) -> list[dict[str, Any]]:
    own = habits.told(reader.state(habits_ref(root)), now)
    shared = [h for h in everywhere.shared_habits(reader.state(EVERYWHERE), now) if name in h["projects"]]
    return [*own, *shared][:MOST_PATTERNS]


def observed(doc: Doc, facts: dict[str, Any], now: int, pid: int = 0) -> list[Event]:
    """Compared by a sum of what was reported: what is stored may have been redacted."""
    sums = {name: zlib.crc32(msgspec.json.encode(_storable(value), enc_hook=str)) for name, value in facts.items()}
    known = doc.get("sums") or {}
    changed = {name: value for name, value in facts.items() if known.get(name) != sums[name]}
    if not changed:
        return []
    if "resolution" in changed:
        changed["resolution"] = {**changed["resolution"], "resolved_at": now}
    data: dict[str, Any] = {"facts": changed, "sums": {name: sums[name] for name in changed}}
    return [said("project.observed", doc["project"], now, **data, **({"pid": pid} if pid else {}))]


def _storable(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)

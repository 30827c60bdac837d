"""By schedule: gaps that only time opens or closes, leases whose owner is gone."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc
from holdfast.features.project import owners
from holdfast.features.project.collectors.recent import recent_projects
from holdfast.features.project.model import LEASES, project_ref, said
from holdfast.features.project.tasks import due


def watch(call: JobCall) -> list[Event]:
    return [*freed(call.reader.state(LEASES), call.now), *_time(call)]


def freed(table: Doc | None, now: int) -> Iterator[Event]:
    """Holders and waiters who are dead, or whose time is up when nobody can tell whether they live."""
    for name, lease in ((table or {}).get("leases") or {}).items():
        for entry in (*lease["holders"], *lease["waiters"]):
            if why := owners.lost(entry, now):
                data = {"name": name, "owner": entry["owner"], "why": f"{name} was freed: {why}"}
                yield said("project.lease_freed", entry["project"], now, **data)


def _time(call: JobCall) -> Iterator[Event]:
    for root in recent_projects(call.reader, call.now):
        doc = call.reader.state(project_ref(root))
        if doc and due(doc, call.now):
            yield said("project.time_passed", root, call.now)

"""Records restores outside the store, and ends what was open before one."""

import contextlib
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.event import Event, own_event
from holdfast.core.kinds.engine_events import StoreRestored
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.times import now_ms
from holdfast.paths import Paths, sync_path

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

MOST_READ = 1 << 20


class Restore(msgspec.Struct):
    at: int
    event: StoreRestored


def note_restore(path: Path, restore: Restore) -> None:
    """Before the exchange: a crash in between voids approvals, never revives them."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, msgspec.json.encode(restore) + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_path(path.parent)


def read_restores(path: Path) -> list[Restore]:
    """Oldest first. A torn line is skipped."""
    restores = []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(fd, "rb") as file:
        for line in file.read(MOST_READ).splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                restores.append(msgspec.json.decode(line, type=Restore))
    return restores


def settle_restores(daemon: "Daemon") -> None:
    """At each start: log every restore, and end whatever was open before the newest one."""
    restores = read_restores(daemon.paths.restores)
    if restores:
        # With the same key, so a restore already in the log is not added again.
        daemon.pipeline.commit_events([own_event(one.event, one.at, once=one.at) for one in restores])
        daemon.pipeline.flush()
    reader = daemon.app.store.reader()
    try:
        newest = newest_restore(daemon.paths, reader)
        if newest and (endings := list(_endings(daemon, reader, newest["at"]))):
            daemon.pipeline.commit_events(endings)
    finally:
        reader.close()


def newest_restore(paths: Paths, reader: Reader) -> dict[str, Any] | None:
    """The last time a person restored a backup, or a repair lost events."""
    repairs = reader.events(EventQuery(kinds=("store.restored",), limit=100, newest=True))
    restores = [Restore(event.at, event.data) for event in repairs if event.data.asked or event.data.lost]
    newest = max([*restores, *read_restores(paths.restores)], key=lambda one: one.at, default=None)
    return {"at": newest.at, **msgspec.structs.asdict(newest.event)} if newest else None


def _endings(daemon: "Daemon", reader: Reader, restored: int) -> Iterable[Event]:
    for feature in daemon.app.features:
        if feature.after_restore:
            settings = partial(_section, daemon, feature.name)
            yield from feature.after_restore(reader, settings, restored, now_ms())


def _section(daemon: "Daemon", name: str, project: str) -> Any:
    return daemon.app.settings.for_project(project).get(name)

"""What a person wants forgotten leaves the log, everything made from it, the files and the backups."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.engine import Committed
from holdfast.core.erase import Change, eraser, probe
from holdfast.core.errors import HoldfastError
from holdfast.core.replay import Rebuild
from holdfast.stores import backup, sqlite_path
from holdfast.stores.erase import rewrite_file

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

Wanted = list[tuple[bytes, Change]]


def erase(daemon: "Daemon", texts: tuple[str, ...]) -> None:
    """The documents are made anew from the log as it is then, so that state is still its replay (P5)."""
    wanted = [(probe(text), eraser(text)) for text in texts if text.strip()]
    if not wanted:
        return
    daemon.call(lambda: _rewrite(daemon, wanted))
    _rebuild(daemon)
    _empty(daemon.paths.derived)
    daemon.call(daemon.app.store.vacuum_erased)
    if sqlite_path(daemon.app.store.url):
        for path in backup.listed(daemon.paths.backups):
            _in_backup(daemon, path, wanted)


def _empty(folder: Path) -> None:
    """After the rebuild is told: whoever writes there from now on has seen it."""
    for path in folder.glob("*"):
        path.unlink(missing_ok=True)


def _rewrite(daemon: "Daemon", wanted: Wanted) -> None:
    with daemon.app.store.transaction():
        for found, change in wanted:
            daemon.app.store.rewrite(found, change)
    daemon.journal.wipe()


def _rebuild(daemon: "Daemon") -> None:
    from holdfast.daemon.service import finish_rebuild

    reader = daemon.app.store.reader()
    try:
        work = Rebuild(daemon.app.features, reader)
        work.read()
        daemon.call(lambda: finish_rebuild(daemon, work))
    finally:
        reader.close()
    documents = [(f, ref, doc) for f in work.features if f.files for ref, doc in work.docs[f.name].items()]
    daemon.files.watch(Committed((), tuple(documents), 0))


def _in_backup(daemon: "Daemon", path: Path, wanted: Wanted) -> None:
    try:
        for found, change in wanted:
            rewrite_file(path, found, change)
        backup.check(path)
    except HoldfastError as error:
        daemon.log.error("backup.not-erased", error, path=path.name)

"""One piece of the daemon's work in a process of its own, for strace to break.

`python -m tests.campaign.work drain STATE`
"""

import sys
from pathlib import Path

from holdfast.agents import AGENTS
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.service import Daemon
from holdfast.paths import Paths
from holdfast.stores import backup
from holdfast.stores.sqlite import SqliteStore


def drain(paths: Paths) -> None:
    """The daemon drains a small spool before it serves."""
    Daemon(paths.prepare(), Log(paths.log_file))


def migration(paths: Paths) -> None:
    SqliteStore(paths.database, backups=paths.backups).close()


def backing_up(paths: Paths) -> None:
    backup.write_backup(paths.database, paths.backups, reason="test")


def repair(paths: Paths) -> None:
    """The database is damaged; starting puts it right."""
    Daemon(paths.prepare(), Log(paths.log_file))


def install(paths: Paths) -> None:
    from holdfast.setup.install import hooks

    hooks.install_hooks(AGENTS["claude-code"], "project", paths.state.parent / "project", paths.state)


if __name__ == "__main__":
    {f.__name__: f for f in (drain, migration, backing_up, repair, install)}[sys.argv[1]](Paths(Path(sys.argv[2])))

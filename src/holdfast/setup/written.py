"""Lists everything Holdfast has written on this machine: its own folders, agents' settings, projects, git hooks."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.daemon.units import service_file
from holdfast.paths import Paths, default_config_dir, plain_files
from holdfast.setup.install import git_hooks
from holdfast.setup.install.locations import Records
from holdfast.stores.footprint import Footprint


class Written(msgspec.Struct, frozen=True):
    path: str
    what: str
    size: int
    """Of the whole folder; of a file of somebody else, in which there is an entry of ours, the whole file."""
    shared: bool = False
    """Whether it is somebody else's file with an entry of ours."""


def list_written(paths: Paths) -> list[Written]:
    """What is there now; where it should be and is not, nothing is listed."""
    return [one for one in _all(paths) if Path(one.path).exists() or Path(one.path).is_symlink()]


def _all(paths: Paths) -> Iterator[Written]:
    yield _folder(paths.state, "the log and everything derived from it")
    yield _folder(default_config_dir(), "your settings")
    # One file may hold several entries of ours: hooks, a status line, an MCP server.
    for record in {one.path: one for one in sorted(Records(paths.state).all(), key=lambda one: one.made_file)}.values():
        what = f"settings of {record.agent}, made by us" if record.made_file else f"entries of ours for {record.agent}"
        yield _file(record.path, what, shared=not record.made_file)
    for kept in Footprint(paths.state).in_force():
        what = "names our files, so that git ignores them" if kept.exclude else "a view of the state, for other tools"
        yield _file(kept.path, what, shared=kept.exclude and not kept.created)
    for folder in git_hooks.listed_folders(paths.state):
        for name in git_hooks.NAMES:
            if git_hooks.is_ours(Path(folder, name)):
                yield _file(str(Path(folder, name)), "asks before agents commit or push")
    for kind in ("systemd", "launchd"):
        yield _file(str(service_file(kind, paths)[1]), "starts the daemon when you log in")


def _folder(path: Path, what: str) -> Written:
    return Written(str(path), what, sum(_size(file) for file in plain_files(path)))


def _file(path: str, what: str, *, shared: bool = False) -> Written:
    return Written(path, what, _size(Path(path)), shared)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0

"""Checks for every known problem of an installation, each with the command that fixes it."""

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast import client
from holdfast.core.errors import HoldfastError
from holdfast.core.times import format_bytes
from holdfast.paths import INTENT_SUFFIX, plain_files
from holdfast.setup.doctor.agent_checks import check_agents
from holdfast.setup.doctor.finding import Finding

if TYPE_CHECKING:
    from holdfast.settings import SettingsCache

# Older versions are reported to corrupt databases.
OLDEST_SQLITE = (3, 51, 3)
# In seconds: a spool not emptied by a running daemon by then is stuck.
STALE_SPOOL_S = 10
STALE_ERASURE_S = 600


def run_checks(*, replay: bool = True) -> list[Finding]:
    """All findings; a check that fails to run is a finding too. Replaying takes seconds on a long log; a daemon that
    runs does it in the background and reports the result as a trouble."""
    checks = (check for check in CHECKS if replay or check is not _check_replay)
    return [finding for check in checks for finding in _run_check(check)]


def _run_check(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(check())
    except HoldfastError as error:
        return [Finding(error.message, error.fix or "see the message")]
    except OSError as error:
        return [Finding(str(error), "holdfast doctor")]


def _check_permissions() -> Iterator[Finding]:
    paths = client.state_paths()
    expected_modes = dict.fromkeys((paths.state, paths.run, paths.spool, paths.backups, paths.logs), 0o700)
    expected_modes |= dict.fromkeys((paths.database, paths.log_file), 0o600)
    for path, mode in expected_modes.items():
        # Through a link we could change the mode of somebody else's file.
        if path.is_symlink():
            yield Finding(f"{path} is a link; it is not followed", "Move it away and start Holdfast again.")
        # Only what others may do counts; a stricter mode is fine.
        elif path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding(f"{path} can be read by others", f"chmod {mode:o} {path}", partial(path.chmod, mode))
    yield from _open_files(paths.state, set(expected_modes))


def _open_files(state: Path, checked_paths: set[Path]) -> Iterator[Finding]:
    """All other files in the state folder, in one finding."""
    open_paths = [p for p in plain_files(state) if p not in checked_paths and stat.S_IMODE(p.lstat().st_mode) & 0o077]
    if open_paths:
        names = ", ".join(str(p.relative_to(state)) for p in open_paths[:3])
        more = f" and {len(open_paths) - 3} more" if len(open_paths) > 3 else ""
        yield Finding(
            f"files in {state} can be read by others: {names}{more}",
            f"chmod -R go-rwx {state}",
            partial(_close_files, open_paths),
        )


def _close_files(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(0o600)


def _check_erasures() -> Iterator[Finding]:
    """Erasures that are not complete yet."""
    run = client.state_paths().run
    # In seconds as well: an erasure in progress has its intent file, too.
    waiting = [p for p in run.glob(f"*{INTENT_SUFFIX}") if time.time() - p.lstat().st_mtime > STALE_ERASURE_S]
    if waiting:
        yield Finding(f"{len(waiting)} erasures are not finished", "holdfast daemon restart")


def missing_git() -> str:
    """What does not work without git; empty if it is installed."""
    return "" if shutil.which("git") else "git is not on the PATH: branches and commits are not recorded"


def _check_git() -> Iterator[Finding]:
    if problem := missing_git():
        yield Finding(problem, "install git, then: holdfast daemon restart")


def _check_sqlite() -> Iterator[Finding]:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SQLITE:
        yield Finding(f"SQLite {apsw.sqlite_lib_version()} can corrupt a database", "pip install --upgrade apsw")


def _check_daemon() -> Iterator[Finding]:
    failed = client.state_paths().failed
    # Where nothing was ever stored, no daemon is missing.
    if client.running_pid() or not client.state_paths().state.exists():
        return
    if failed.exists():
        yield Finding(
            f"the daemon could not start: {failed.read_text().strip()}", "holdfast daemon run", client.start_daemon
        )


def _check_spool() -> Iterator[Finding]:
    folder = client.state_paths().spool
    # Spooled files may be ingested at this moment.
    waiting = [seen for path in plain_files(folder) if (seen := _stat_of(path)) and seen.st_size]
    old = [seen for seen in waiting if time.time() - seen.st_mtime > STALE_SPOOL_S]
    if old:
        total = sum(seen.st_size for seen in old)
        yield Finding(
            f"{format_bytes(total)} wait in the spool", "holdfast daemon start", lambda: client.ask_daemon("drain")
        )


def _stat_of(path: Path) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return path.lstat()
    return None


def _restart_daemon() -> None:
    client.stop_daemon("replaced by another version")
    client.start_daemon()


def _check_store() -> Iterator[Finding]:
    if not client.running_pid():
        return
    answer = client.ask_daemon("status")
    limit = _open_settings().for_project("")["store"].size_warn_mb
    if difference := client.version_difference(answer):
        yield Finding(difference, "holdfast daemon restart", _restart_daemon)
    if answer["store_bytes"] > limit << 20:
        yield Finding(f"the store is {format_bytes(answer['store_bytes'])}", "holdfast config set store.body_days 30")
    bodies = answer.get("bodies") or {}
    if bodies.get("wanted") and bodies.get("left") and not bodies.get("problem"):
        yield Finding(f"{bodies['left']} older payloads are not encrypted yet", "wait; the daemon continues by itself")
    # `_check_spool` also mends what waits, and works without a daemon.
    for one in answer.get("troubles", ()):
        if one["name"] != "spool":
            yield Finding(one["text"], one["fix"])


def _check_replay() -> Iterator[Finding]:
    """Replay a sample of the documents in this process and compare them with the daemon's."""
    from holdfast.app import all_features, database_path
    from holdfast.core.replay import sample_differences
    from holdfast.stores.sqlite_reader import SqliteReader

    database = database_path(client.state_paths(), _open_settings())
    if not database.exists():
        return
    reader = SqliteReader(database)
    try:
        different = sample_differences(all_features(), reader)
    finally:
        reader.close()
    if different:
        yield Finding(f"{len(different)} documents are not what the log says: {different[0]}", "holdfast data rebuild")


def _open_settings() -> "SettingsCache":
    # It loads every feature, which takes longer than the rest of `holdfast up`.
    from holdfast.app import open_settings

    return open_settings()


def _check_settings() -> Iterator[Finding]:
    for notice in _open_settings().for_project(client.current_project()).notices:
        yield Finding(notice.problem, notice.fix or "Correct it there.")


def _check_gates() -> Iterator[Finding]:
    """Settings that would loosen what is in force, and wait for a person."""
    if not client.running_pid():
        return
    for line in client.ask_view("gates.attention").get("waiting", ()):
        yield Finding(line, "holdfast gate accept")


def _check_owner() -> Iterator[Finding]:
    state = client.state_paths().state
    if state.exists() and state.stat().st_uid != os.geteuid():
        yield Finding(f"{state} belongs to another user", "set HOLDFAST_STATE to a folder you own")


# From the foundation up: a folder of another user explains most of what follows.
CHECKS = (
    _check_owner,
    _check_permissions,
    _check_erasures,
    _check_git,
    _check_sqlite,
    _check_daemon,
    _check_spool,
    _check_store,
    _check_replay,
    check_agents,
    _check_settings,
    _check_gates,
)

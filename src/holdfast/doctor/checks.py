"""Everything that is known to go wrong with an installation, each with the command that fixes it."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import apsw

from holdfast import client
from holdfast.app import open_settings
from holdfast.core.errors import HoldfastError
from holdfast.core.times import format_bytes
from holdfast.doctor import agents
from holdfast.doctor.finding import Finding
from holdfast.doctor.readiness import missing_git
from holdfast.paths import INTENT_SUFFIX, plain_files

OLDEST_SQLITE = (3, 51, 3)
STALE_SPOOL_S = 10
STALE_ERASURE_S = 600


def run_checks() -> list[Finding]:
    """All findings; a check that cannot be made is a finding too."""
    return [finding for check in CHECKS for finding in _run_check(check)]


def _run_check(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(check())
    except HoldfastError as error:
        return [Finding(error.message, error.fix or "see the message")]
    except OSError as error:
        return [Finding(str(error), "holdfast doctor")]


def _permissions() -> Iterator[Finding]:
    place = client.paths()
    wanted = dict.fromkeys((place.state, place.run, place.spool, place.backups, place.logs), 0o700)
    wanted |= dict.fromkeys((place.database, place.log_file), 0o600)
    for path, mode in wanted.items():
        if path.is_symlink():
            yield Finding(f"{path} is a link; it is not followed", "Move it away and start Holdfast again.")
        elif path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding(f"{path} can be read by others", f"chmod {mode:o} {path}", partial(path.chmod, mode))
    yield from _open_files(place.state, set(wanted))


def _open_files(state: Path, known: set[Path]) -> Iterator[Finding]:
    """Whatever else lies in the state folder, in one finding."""
    found = [p for p in plain_files(state) if p not in known and stat.S_IMODE(p.lstat().st_mode) & 0o077]
    if found:
        names = ", ".join(str(p.relative_to(state)) for p in found[:3])
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        yield Finding(
            f"files in {state} can be read by others: {names}{more}",
            f"chmod -R go-rwx {state}",
            partial(_close_files, found),
        )


def _close_files(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(0o600)


def _erasures() -> Iterator[Finding]:
    """What was to be erased and is not gone yet."""
    run = client.paths().run
    waiting = [p for p in run.glob(f"*{INTENT_SUFFIX}") if time.time() - p.stat().st_mtime > STALE_ERASURE_S]
    if waiting:
        yield Finding(f"{len(waiting)} erasures are not finished", "holdfast daemon restart")


def _git() -> Iterator[Finding]:
    if problem := missing_git():
        yield Finding(problem, "install git, then: holdfast daemon restart")


def _sqlite() -> Iterator[Finding]:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SQLITE:
        yield Finding(f"SQLite {apsw.sqlite_lib_version()} can corrupt a database", "pip install --upgrade apsw")


def _daemon() -> Iterator[Finding]:
    failed = client.paths().failed
    if client.running() or not client.paths().state.exists():
        return
    if failed.exists():
        yield Finding(
            f"the daemon could not start: {failed.read_text().strip()}", "holdfast daemon run", client.start_daemon
        )


def _spool() -> Iterator[Finding]:
    folder = client.paths().spool
    waiting = [p for p in folder.iterdir() if p.stat().st_size] if folder.is_dir() else []
    old = [p for p in waiting if time.time() - p.stat().st_mtime > STALE_SPOOL_S]
    if old:
        total = sum(p.stat().st_size for p in old)
        yield Finding(f"{format_bytes(total)} wait in the spool", "holdfast daemon start", lambda: client.ask("drain"))


def _store() -> Iterator[Finding]:
    if not client.running():
        return
    told = client.ask("status")
    limit = open_settings().for_project("")["store"].size_warn_mb
    if told["refusing"]:
        yield Finding(told["refusing"], "free some space; nothing received is lost meanwhile")
    if told["store_bytes"] > limit << 20:
        yield Finding(f"the store is {format_bytes(told['store_bytes'])}", "holdfast config set store.body_days 30")
    if told["counts"].get("dead_jobs"):
        yield Finding(f"{told['counts']['dead_jobs']} background jobs failed", "holdfast daemon logs")
    for feature, count in told["errors"].items():
        yield Finding(f"{count} rules of “{feature}” failed since the daemon started", "holdfast daemon logs")


def _settings() -> Iterator[Finding]:
    for notice in open_settings().for_project(client.project()).notices:
        yield Finding(notice.problem, notice.fix or "Correct it there.")


def _gates() -> Iterator[Finding]:
    """Settings that would loosen what is in force, and wait for a person."""
    if not client.running():
        return
    for line in client.view("gates.attention").get("waiting", ()):
        yield Finding(line, "holdfast gate accept")


def _owner() -> Iterator[Finding]:
    state = client.paths().state
    if state.exists() and state.stat().st_uid != os.geteuid():
        yield Finding(f"{state} belongs to another user", "set HOLDFAST_STATE to a folder of yours")


CHECKS = (_owner, _permissions, _erasures, _git, _sqlite, _daemon, _spool, _store, agents.check, _settings, _gates)

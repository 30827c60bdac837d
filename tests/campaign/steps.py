"""Death, and a failing disk, at every system call that changes something: of a delivery, a drain, a migration, a
backup, a repair, an installation. What was promised is there afterwards, once; files are old or new, never half."""

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from holdfast.core.errors import HoldfastError
from holdfast.daemon.ingest.frames import as_record
from holdfast.stores import backup
from tests.campaign import tracing
from tests.campaign.acks import fire, frame, judge, serving, settled
from tests.kit import World, alive, spooled, wait_until

FULL = 10_000
"""Calls of each piece of work: all there are."""
SETTLES_S = 0.05
"""What follows an answer is over by then."""
ROOT = Path(__file__).parents[2]


@dataclass
class Piece:
    """A piece of work: how the world is before it, what runs, and what must hold whatever happened."""

    name: str
    before: Callable[[World], None]
    after: Callable[[World], None]


def run(folder: Path, size: int) -> str:
    tracing.can_trace() or unable("strace may not trace here")
    figures = [f"{one.name} {broken(folder / one.name, one, size)}" for one in PIECES]
    figures.append(f"delivery {delivery(folder / 'delivery', size)}")
    return f"faults at every changing call: {', '.join(figures)}; 0 lost, 0 doubled, 0 half-written"


def unable(reason: str) -> None:
    raise NotImplementedError(reason)


def broken(folder: Path, piece: Piece, size: int, errors: tuple[str, ...] = tracing.ERRORS) -> int:
    """How many faults it stood."""
    pristine = World(folder / "pristine")
    piece.before(pristine)
    pristine.close()
    trial = copy_of(pristine, folder / "trial")
    out = folder / "trace"
    assert work(trial, piece.name, tracing.prefix(out)) == 0
    calls = tracing.counted(out)
    piece.after(trial)
    trial.close()
    assert len(calls) > 2, "nothing was traced"
    done = 0
    for number, fault in enumerate(faults(calls, size, errors)):
        world = copy_of(pristine, folder / f"{number}")
        try:
            work(world, piece.name, tracing.prefix(inject=fault))
            piece.after(world)
        except (AssertionError, HoldfastError) as failure:
            raise AssertionError(f"{piece.name} with {fault}: {failure}") from failure
        finally:
            world.close()
        shutil.rmtree(world.root)
        done += 1
    return done


def faults(calls: list[tracing.Call], size: int, errors: tuple[str, ...]) -> Iterator[str]:
    chosen = calls if size >= len(calls) else random.Random(len(calls)).sample(calls, size)
    for call in chosen:
        yield tracing.killed_at(call)
        for error in errors:
            yield tracing.failing_from(call, error)
            yield tracing.failing_once(call, error)


def copy_of(world: World, root: Path) -> World:
    shutil.copytree(world.root, root, ignore=shutil.ignore_patterns("*.sock*"))
    return World(root)


def work(world: World, name: str, prefix: list[str]) -> int:
    command = [*prefix, sys.executable, "-B", "-m", "tests.campaign.work", name, str(world.paths.state)]
    done = subprocess.run(command, env={**world.env, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=120)
    return done.returncode


# ── the pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────

PROMISED = {f"stored-{n}" for n in range(3)}
WAITING = {f"waiting-{n}" for n in range(3)}


def some_events(world: World) -> None:
    serving(world)
    for call in sorted(PROMISED):
        assert fire(world, call, "ask") == 0
    pid = world.kill()
    wait_until(lambda: not alive(pid), "its locks are gone too")


def some_spooled(world: World) -> None:
    some_events(world)
    log = b"".join(as_record(frame(call, key=f"key{n:029d}")) for n, call in enumerate(sorted(WAITING)))
    (world.paths.spool / "spool.log").write_bytes(log)


def all_drained(world: World) -> None:
    judge(world, PROMISED | WAITING)
    assert not spooled(world.paths.spool)


def an_old_schema(world: World) -> None:
    """As the first version made it: no views, no full-text index, no hash chain."""
    some_events(world)
    db = apsw.Connection(str(world.paths.database))
    for (view,) in db.execute("select name from sqlite_schema where type = 'view'").fetchall():
        db.execute(f'drop view "{view}"')
    for column in ("salt", "leaf", "link"):
        db.execute(f"alter table facts drop column {column}")
    db.execute("drop table history")
    db.execute("delete from meta where name = 'history'")
    db.pragma("user_version", 1)
    db.close()


def migrated(world: World) -> None:
    judge(world, PROMISED)
    for made in backup.list_backups(world.paths.backups):
        backup.check_database(made)


def backups_whole(world: World) -> None:
    for made in backup.list_backups(world.paths.backups):
        backup.check_database(made)
    judge(world, PROMISED)


def damaged(world: World) -> None:
    """A backup of all, and then a hole in the middle of the file."""
    some_events(world)
    backup.write_backup(world.paths.database, world.paths.backups)
    db = apsw.Connection(str(world.paths.database))
    db.execute("pragma wal_checkpoint(truncate)").fetchall()
    db.close()
    with world.paths.database.open("r+b") as file:
        file.write(b"\xde\xad" * 2048)


def restored(world: World) -> None:
    judge(world, PROMISED)
    told = world.events(kinds=("store.restored",))
    assert told, "the damage was not said"
    assert all(e.data.lost == 0 for e in told), told


def a_settings_file(world: World) -> None:
    world.paths.prepare()
    (world.project / ".claude").mkdir()
    (world.project / ".claude" / "settings.json").write_text('{"model": "opus"}\n')


def old_or_new(world: World) -> None:
    file = world.project / ".claude" / "settings.json"
    assert file.read_text() == '{"model": "opus"}\n' or "SessionStart" in file.read_text()
    world.cli("uninstall", "--agent", "claude-code", "--project")
    assert file.read_text() == '{"model": "opus"}\n'
    assert [p.name for p in file.parent.iterdir()] == ["settings.json"]


PIECES = (
    Piece("drain", some_spooled, all_drained),
    Piece("migration", an_old_schema, migrated),
    Piece("backing_up", some_events, backups_whole),
    Piece("repair", damaged, restored),
    Piece("install", a_settings_file, old_or_new),
)


# ── a delivery, with the daemon running ──────────────────────────────────────────────────────────────────────────────


def delivery(folder: Path, size: int, errors: tuple[str, ...] = tracing.ERRORS) -> int:
    """strace holds the running daemon while a real hook delivers. The hook's exit 0 is the promise."""
    world, promised, maybe = World(folder), set(), set()
    try:
        serving(world)
        out = folder / "trace"
        with tracing.attached(world.pid, "", out):
            assert fire(world, "counted", "ask") == 0
            world.ask(op="settle")  # What follows the answer belongs to the delivery too.
        promised.add("counted")
        calls = tracing.counted(out)
        assert len(calls) > 4
        done = 0
        for number, fault in enumerate(faults(calls, size, errors)):
            call = f"under-{number}"
            with tracing.attached(serving(world), fault):
                (promised if fire(world, call, "ask") == 0 else maybe).add(call)
                time.sleep(SETTLES_S)
            done += 1
            if number % 10 == 9:
                settled(world)
        judge(world, promised, maybe)
    finally:
        world.close()
    return done

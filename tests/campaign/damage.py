"""Bytes overwritten at random places of the database, its write-ahead log, the spool, the settings (P7): found, set
aside, restored, and what was lost counted and said. Hooks go on all the while."""

import random
import sys
from pathlib import Path

import apsw

from holdfast.daemon.ingest.frames import as_record
from holdfast.stores import backup
from tests.campaign.acks import calls, fire, frame, send, serving, settled, state_is_replay
from tests.kit import World, alive, wait_until

FULL = 200
EVENTS = 40
WAYS = ("database", "log", "database running", "both", "spool", "settings", "gone")


def run(folder: Path, size: int) -> str:
    told = {"lost": 0, "restored": 0}
    for number in range(size):
        way = WAYS[number % len(WAYS)]
        world = World(folder / str(number))
        try:
            _one(world, way, random.Random(number), told)
        except AssertionError as failure:
            raise AssertionError(f"{way}, number {number}: {failure}") from failure
        finally:
            world.close()
    return (
        f"{size} damaged states, {told['restored']} restored, {told['lost']} events lost, "
        f"each of them counted and said, 0 hooks refused"
    )


def _one(world: World, way: str, chance: random.Random, told: dict[str, int]) -> None:
    serving(world)
    first = {f"before-{n}" for n in range(EVENTS)}
    for n, call in enumerate(sorted(first)):
        assert send(world, frame(call)) is not None
        if n == EVENTS // 2:
            backup.write_backup(world.paths.database, world.paths.backups)
    BREAK[way](world, chance)
    assert fire(world, "after", "ask") == 0
    found = settled(world)
    assert found["after"] == 1, "the hook that met the damage was not kept"
    assert max(found.values()) == 1
    wait_until(lambda: _sound(world), "a sound database again")
    _count(world, first, calls(world), told)
    wait_until(lambda: state_is_replay(world), "state = replay of the log (P5)")


def _sound(world: World) -> bool:
    try:
        backup.check_database(world.paths.database)
        return True
    except Exception:
        return False


def _count(world: World, first: set[str], found: dict[str, int], told: dict[str, int]) -> None:
    """What the log says was lost is exactly what is missing, and the damaged file is still there to look at."""
    events = world.events()
    restored = [e for e in events if e.kind == "store.restored"]
    told["restored"] += bool(restored)
    said = sum(e.data.lost for e in restored)
    told["lost"] += said
    missing = first - set(found)
    numbers = {e.seq for e in events}
    gone = sum(1 for seq in range(1, max(numbers) + 1) if seq not in numbers)
    assert gone == said, f"{gone} events are missing and {said} were said"
    assert bool(missing) <= bool(said)
    if restored:
        assert any(world.paths.quarantine.iterdir()), "nothing is deleted to recover"


def _scribble(path: Path, chance: random.Random) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for _ in range(chance.randint(1, 4)):
            file.seek(chance.randrange(size))
            file.write(chance.randbytes(chance.choice((1, 16, 512, 4096, 20_000))))


def _stopped(world: World) -> None:
    pid = world.kill()
    wait_until(lambda: not alive(pid), "its locks are gone too")


def _fold(world: World) -> None:
    """The write-ahead log into the file, so that the file is what counts."""
    db = apsw.Connection(str(world.paths.database))
    db.execute("pragma wal_checkpoint(truncate)").fetchall()
    db.close()


def _database(world: World, chance: random.Random) -> None:
    _stopped(world)
    _fold(world)
    _scribble(world.paths.database, chance)


def _log(world: World, chance: random.Random) -> None:
    _stopped(world)
    _scribble(Path(f"{world.paths.database}-wal"), chance)


def _both(world: World, chance: random.Random) -> None:
    _stopped(world)
    _scribble(world.paths.database, chance)
    _scribble(Path(f"{world.paths.database}-wal"), chance)


def _running(world: World, chance: random.Random) -> None:
    """Under the feet of a running daemon."""
    _scribble(chance.choice((world.paths.database, Path(f"{world.paths.database}-wal"))), chance)
    for n in range(20):
        assert fire(world, f"while-{n}") == 0
    _stopped(world)


def _gone(world: World, _chance: random.Random) -> None:
    _stopped(world)
    for path in world.paths.state.glob("holdfast.db*"):
        path.unlink()


def _spool(world: World, chance: random.Random) -> None:
    _stopped(world)
    path = world.paths.spool / "spool.log"
    path.write_bytes(b"".join(as_record(frame(f"spooled-{n}")) for n in range(20)))
    _scribble(path, chance)


def _settings(world: World, chance: random.Random) -> None:
    path = Path(world.env["HOLDFAST_CONFIG"]) / "settings.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("daemon:\n  workers: 3\nstore:\n  body_days: 10\n")
    _scribble(path, chance)
    _stopped(world)


BREAK = {
    "database": _database, "log": _log, "both": _both, "database running": _running, "spool": _spool,
    "settings": _settings, "gone": _gone,
}  # fmt: skip

if __name__ == "__main__":  # one number again: python -m tests.campaign.damage 17
    import tempfile

    number = int(sys.argv[1])
    world = World(Path(tempfile.mkdtemp()))
    try:
        _one(world, WAYS[number % len(WAYS)], random.Random(number), {"lost": 0, "restored": 0})
    finally:
        print(world.root, world.paths.log_file.read_text())
        world.close()

"""kill -9 at random system calls of an erasure: it is done, or done at the next start; the text is nowhere afterwards."""

import contextlib
import random
import shutil
import subprocess
from pathlib import Path

from holdfast.paths import INTENT_SUFFIX, plain_files
from holdfast.stores import backup
from tests.campaign import tracing
from tests.campaign.acks import serving, state_is_replay
from tests.kit import World, alive, wait_until

FULL = 300
TEXT = "The codename of the merger is Zebrafinch, keep it in vault/zebra.key"
WORDS = (b"zebrafinch", b"zebra.key")
PATIENCE_S = 120.0


def run(folder: Path, size: int, **env: str) -> str:
    if not tracing.can_trace():
        raise NotImplementedError("strace may not trace here")
    pristine = World(folder / "pristine", **env)
    prepare(pristine)
    calls = count_calls(pristine, folder, **env)
    chance = random.Random(size)
    early = 0
    for number in range(size):
        world = copy_of(pristine, folder / f"{number}", **env)
        try:
            early += erase_under(world, tracing.killed_at(chance.choice(calls)))
        finally:
            world.close()
        shutil.rmtree(world.root)
    return f"{size} kills among {len(calls)} calls ({early} before the intent, done when asked again), 0 leftovers"


def prepare(world: World) -> None:
    """A session that says it in many fields, a memory, a backup, a torn record, a line in the log, and spooled words."""
    serving(world)
    agent = world.session("session-one")
    agent.start()
    agent.prompt(f"We decided: {TEXT}. Always remember this.")
    agent.tool("Bash", {"stdout": TEXT, "stderr": ""}, command=f"echo '{TEXT}'")
    agent.stop(f"Understood: **{TEXT.lower()}**")
    world.cli("memory", "add", TEXT)
    world.cli("backup")
    pid = world.kill()
    wait_until(lambda: not alive(pid), "its locks are gone too")
    world.paths.quarantine.mkdir(mode=0o700, exist_ok=True)
    (world.paths.quarantine / "torn.log").write_bytes(b"\x00\xff" + TEXT.encode())
    with world.paths.log_file.open("a") as log:
        log.write(f'{{"error": "{TEXT}"}}\n')


def copy_of(world: World, root: Path, **env: str) -> World:
    shutil.copytree(world.root, root, ignore=shutil.ignore_patterns("*.sock*"))
    return World(root, **env)


def count_calls(pristine: World, folder: Path, **env: str) -> list[tracing.Call]:
    world = copy_of(pristine, folder / "counted", **env)
    try:
        with tracing.attached(ready(world), "", folder / "trace"):
            assert ask(world)
        assert not leftovers(world), leftovers(world)
    finally:
        world.close()
    calls = tracing.counted(folder / "trace")
    assert len(calls) > 50, "nothing was traced"
    return calls


def ready(world: World) -> int:
    """A daemon that also answers people's tools."""
    serving(world)
    wait_until(lambda: _answers(world), "it answers", PATIENCE_S)
    return world.pid


def _answers(world: World) -> bool:
    with contextlib.suppress(AssertionError, ValueError, OSError):
        return bool(world.ask(op="settle"))
    return False


def ask(world: World) -> bool:
    """Whether it was acknowledged."""
    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired, ValueError, OSError):
        world.ask(op="erase", texts=[TEXT])
        return True
    return False


def erase_under(world: World, fault: str) -> int:
    """1 when it died before the intent was on disk, so that nothing was promised."""
    with tracing.attached(ready(world), fault):
        acknowledged = ask(world)
        world.kill()  # Where the call was not reached, it dies right after the answer.
    begun = acknowledged or bool(intents(world))
    ready(world)
    wait_until(lambda: not intents(world), "the next start finishes it", PATIENCE_S)
    early = not begun and bool(leftovers(world))
    if early:
        assert ask(world), "it can be asked again"
    wait_until(lambda: not partials(world), "half-written files are removed")
    assert not leftovers(world), f"{fault}: left in {leftovers(world)}"
    backup.check_database(world.paths.database)
    for made in backup.list_backups(world.paths.backups):
        backup.check_database(made)
    assert state_is_replay(world), f"{fault}: state is not the replay of the log"
    return int(early)


def intents(world: World) -> list[Path]:
    return list(world.paths.run.glob(f"*{INTENT_SUFFIX}"))


def partials(world: World) -> list[Path]:
    return [p for p in plain_files(world.paths.state) if ".partial" in p.name]


def leftovers(world: World) -> list[str]:
    return [p.name for p in plain_files(world.paths.state) if any(w in p.read_bytes().lower() for w in WORDS)]

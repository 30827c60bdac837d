"""Ten thousand transcripts of several agents, imported while the import and the daemon are killed: everything once, in bounded memory."""

import random
import resource
import shutil
import subprocess
import time
from pathlib import Path

from tests.bench.importing import Texts, _record
from tests.kit import BIN, World

FULL = 10_000
KILLS = 6
SAMPLES = Path(__file__).parents[1] / "usage" / "samples"
LARGE_SHARE = 200
"""Megabytes of one transcript, per 10,000 small ones."""
MOST_MEMORY = 400 << 20


def run(folder: Path, size: int) -> str:
    world, chance = World(folder), random.Random(size)
    try:
        write_transcripts(world.home, size)
        world.start()
        for _ in range(KILLS):
            interrupt_import(world, chance)
        done = import_measured(world)
        assert done["skipped"] == [], done["skipped"][:3]
        found = judge(world, size)
        again = world.json("import", "--again")
        assert again["taken"] == 0, again
    finally:
        world.close()
    return f"{found} sessions of {size} transcripts and {KILLS} kills, each once; the second import took 0 of {again['known']} events"


def write_transcripts(home: Path, size: int) -> None:
    """Small sessions of Claude Code, one large one, and those that other programs really wrote."""
    import json

    for agent in ("codex", "gemini", "copilot", "qwen", "droid", "kimi"):
        shutil.copytree(SAMPLES / agent, home, dirs_exist_ok=True)
    texts, folder = Texts(), home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    for n in range(size):
        (folder / f"small-{n}.jsonl").write_text(_session(f"small-{n}", 1, texts))
    with (folder / "large.jsonl").open("w") as file:
        while file.tell() < LARGE_SHARE * size * 100:
            file.write(json.dumps(_record("assistant", "large", f"a{file.tell()}", [{"type": "text", "text": texts.piece()}])) + "\n")


def _session(name: str, turns: int, texts: Texts) -> str:
    from tests.bench.importing import _turn

    return "".join(_turn(name, n, texts) for n in range(turns))


def interrupt_import(world: World, chance: random.Random) -> None:
    process = _start_import(world)
    time.sleep(chance.uniform(0.5, 4))
    if chance.random() < 0.5:
        world.kill()
    process.kill()
    process.communicate()


def import_measured(world: World) -> dict:
    import json

    done = world.json("import")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert used < MOST_MEMORY, f"a child took {used >> 20} MB"
    return done


def _start_import(world: World) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [BIN / "holdfast", "import", "--json"], env=world.env, cwd=world.project, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def judge(world: World, size: int) -> int:
    """Every prompt of every small session once."""
    prompts: dict[str, int] = {}
    for event in world.events(kinds=("prompt.submitted",)):
        if event.session.startswith("small-"):
            prompts[event.session] = prompts.get(event.session, 0) + 1
    assert len(prompts) == size and set(prompts.values()) == {1}, (len(prompts), set(prompts.values()))
    return len(prompts)

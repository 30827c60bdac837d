"""Ten thousand transcripts of several agents, imported while the import and the daemon are killed: everything once, in bounded
memory. One of them is large."""

import json
import random
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.bench.importing import Texts, make_record, make_turn
from tests.kit import BIN, World

FULL = 10_000
KILLS = 6
SAMPLES = Path(__file__).parents[1] / "analysis" / "usage" / "samples"
REAL_AGENTS = ("codex", "gemini", "copilot", "qwen", "droid", "kimi")
LARGE_BYTES = 20_000
"""Of the one large transcript, for each small one."""
MOST_MEMORY = 400 << 20


def run(folder: Path, size: int) -> str:
    world, chance, kills = World(folder), random.Random(size), min(KILLS, 1 + size // 20)
    before = largest_child()
    try:
        write_transcripts(world.home, size)
        world.start()
        for _ in range(kills):
            interrupt_import(world, chance)
        done = import_all(world)
        assert done["skipped"] == [], done["skipped"][:3]
        check_prompts(world, size)
        again = import_all(world, "--again")
        assert again["taken"] == 0, again
    finally:
        world.close()
    used = largest_child()
    # The system tells the largest child of all: one that was there before (a browser of another test) says nothing here.
    assert used in (before, min(used, MOST_MEMORY)), f"a process took {used >> 20} MB"
    once = f"every prompt once, the second import took 0 of {again['known']} events"
    return f"{size} transcripts, {kills} kills: {once}, at most {used >> 20} MB"


def largest_child() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def write_transcripts(home: Path, size: int) -> None:
    for agent in REAL_AGENTS:
        shutil.copytree(SAMPLES / agent, home, dirs_exist_ok=True)
    texts, folder = Texts(), home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    for n in range(size):
        (folder / f"small-{n}.jsonl").write_text(make_turn(f"small-{n}", 0, texts))
    with (folder / "large.jsonl").open("w") as file:
        while file.tell() < LARGE_BYTES * size:
            said = [{"type": "text", "text": texts.piece()}]
            file.write(json.dumps(make_record("assistant", "large", f"a{file.tell()}", said)) + "\n")


def interrupt_import(world: World, chance: random.Random) -> None:
    process = _start_import(world, stdout=subprocess.DEVNULL)
    time.sleep(chance.uniform(0.5, 4))  # What is tried is the moment of the kill.
    if chance.random() < 0.5:
        world.kill()
    process.kill()
    process.wait()


def import_all(world: World, *words: str) -> Any:
    """However long it takes."""
    out, _ = _start_import(world, *words, stdout=subprocess.PIPE).communicate()
    return json.loads(out.splitlines()[-1])["data"]


def _start_import(world: World, *words: str, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [BIN / "holdfast", "import", "--json", *words], env=world.env, cwd=world.project, stdout=stdout,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def check_prompts(world: World, size: int) -> None:
    """Every prompt of every small session once."""
    prompts: dict[str, int] = {}
    for event in world.events(kinds=("prompt.submitted",)):
        if event.session.startswith("small-"):
            prompts[event.session] = prompts.get(event.session, 0) + 1
    assert len(prompts) == size and set(prompts.values()) == {1}, (len(prompts), set(prompts.values()))

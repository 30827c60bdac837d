"""How fast transcripts come in: megabytes per second of `holdfast data import`, of our own and of real transcripts."""

import itertools
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from tests.bench.figures import fact, figure, heading
from tests.bench.real_sessions import VARIABLE
from tests.kit import BIN, World

MEGABYTES = 60
SOURCES = Path(tempfile.__file__).parent
SAMPLE = Path(__file__).parents[1] / "setup" / "imports" / "samples" / "claude.jsonl"
COMMANDS = ("git status", "rg -n TODO src", "pytest -q tests/unit", "sed -n 1,80p README.md")
LONGEST_OUTPUT = 6_000
IDLE_S, IDLE_SHARE = 3.0, 0.03
"""A daemon that uses less than this share of one processor has nothing left to derive."""


def main() -> None:
    heading(f"Import of {MEGABYTES} MB of transcripts")
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        size = write(world.home / ".claude" / "projects" / "-p", MEGABYTES << 20)
        daemon = psutil.Process(world.start())
        try:
            began, busy = time.perf_counter(), processor_seconds(daemon)
            told = world.json("import", "claude-code")
            seconds, busy = time.perf_counter() - began, processor_seconds(daemon) - busy
            fact("events, seconds", f"{told['taken']:,}  {seconds:.1f} s")
            figure("of the daemon's processor time", size / busy / 1e6, 20, more_is_better=True, unit="MB/s")
            fact("megabytes per second on the clock", f"{size / seconds / 1e6:.1f} MB/s")
        finally:
            world.close()
    import_real_ones()


def import_real_ones() -> None:
    """Those of Claude Code and Codex below HOLDFAST_SESSIONS, copied under other ids until they are HOLDFAST_IMPORT_MB."""
    folder, wanted = os.environ.get(VARIABLE), int(os.environ.get("HOLDFAST_IMPORT_MB", "1400"))
    if not folder:
        return
    with tempfile.TemporaryDirectory() as place:
        world = World(Path(place))
        size = sum(copy_real_ones(Path(folder), world.home, wanted * 1_000_000))
        heading(f"Import of {size / 1e6:,.0f} MB of real transcripts")
        daemon = psutil.Process(world.start())
        try:
            busy = processor_seconds(daemon)
            ran = [BIN / "holdfast", "import", "claude-code", "codex", "--json"]
            told = json.loads(subprocess.check_output(ran, env=world.env, cwd=world.project).splitlines()[-1])["data"]
            wait_until_idle(daemon)
            busy = processor_seconds(daemon) - busy
            sessions = len(world.view("sessions.list", all=True, limit=100_000)["sessions"])
            fact("events, sessions", f"{told['taken']:,}  {sessions:,}")
            figure(
                "of the daemon's processor time, with what is derived",
                size / busy / 1e6,
                20,
                more_is_better=True,
                unit="MB/s",
            )
            figure("the daemon's largest memory", peak_memory(daemon.pid), 250, unit="MB")
        finally:
            world.close()


def copy_real_ones(folder: Path, home: Path, wanted: int) -> Iterator[int]:
    """Sizes of the copies."""
    originals = sorted([*folder.glob("*/claude-code/*.jsonl"), *folder.glob("*/codex/*.jsonl")])
    total = 0
    for n in itertools.count() if originals else ():
        for path in originals:
            name = f"{path.stem[:-4]}{n:04x}"
            text = path.read_bytes().replace(path.stem.encode(), name.encode())
            is_codex = path.parent.name == "codex"
            to = home / (".codex/sessions/2026" if is_codex else f".claude/projects/{path.parts[-3]}")
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{'rollout-' if is_codex else ''}{name}.jsonl").write_bytes(text)
            yield len(text)
            total += len(text)
            if total >= wanted:
                return


def wait_until_idle(process: psutil.Process) -> None:
    before = -1.0
    while (now := processor_seconds(process)) - before > IDLE_SHARE * IDLE_S:
        before = now
        time.sleep(IDLE_S)


def peak_memory(pid: int) -> float:
    """In MB, as the kernel kept it."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def processor_seconds(process: psutil.Process) -> float:
    """What others run meanwhile counts less in it than on the clock."""
    times = process.cpu_times()
    return float(times.user + times.system)


def write(folder: Path, wanted: int) -> int:
    """Sessions of fifty turns: a prompt, four calls with their results, what the agent writes besides."""
    folder.mkdir(parents=True)
    texts, total, session = Texts(), 0, 0
    while total < wanted:
        session += 1
        text = "".join(make_turn(f"session-{session}", n, texts) for n in range(50))
        (folder / f"session-{session}.jsonl").write_text(text)
        total += len(text)
    return total


class Texts:
    """Pieces of the source code of the standard library, as an agent reads files: the same ones in every run."""

    def __init__(self) -> None:
        self._random = random.Random(17)
        self._sources = [file.read_text() for file in sorted(SOURCES.glob("*.py"))]

    def piece(self) -> str:
        source = self._random.choice(self._sources)
        begin = self._random.randrange(max(1, len(source) - 200))
        return source[begin : begin + self._random.randrange(100, LONGEST_OUTPUT)]


def make_turn(session: str, n: int, texts: Texts) -> str:
    """In the records of the real program: a prompt, four calls and an answer, with the requests it writes down between them."""
    records = [make_record("user", session, f"{n}-p", f"please do thing {n}")]
    for c in range(4):
        output = texts.piece()
        call = {"type": "tool_use", "id": f"toolu_{n}_{c}", "name": "Bash", "input": {"command": COMMANDS[c]}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}_{c}", "content": output}
        records += [
            make_record("api-request", session, f"{n}-{c}-r"),
            make_record("assistant", session, f"{n}-{c}-a", [call]),
            make_record("user", session, f"{n}-{c}-u", [result]) | {"toolUseResult": {"stdout": output, "stderr": ""}},
        ]
    records.append(make_record("assistant", session, f"{n}-z", [{"type": "text", "text": "Done."}]))
    return "".join(json.dumps(record) + "\n" for record in records)


def make_record(kind: str, session: str, uuid: str, content: object = None) -> dict[str, Any]:
    made = {**_templates()[kind], "toolDenialKind": None, "sessionId": session, "uuid": f"{session}-{uuid}"}
    if content is not None:
        made["message"] = {**made["message"], "id": f"msg-{session}-{uuid}", "content": content}
    return made


@cache
def _templates() -> dict[str, dict[str, Any]]:
    """The last record of each kind that Claude Code 2.1.325 wrote in a recorded session."""
    return {record["type"]: record for record in map(json.loads, SAMPLE.read_text().splitlines())}

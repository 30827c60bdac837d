"""How fast transcripts come in: megabytes per second of `holdfast import`, and a second time when nothing is new."""

import json
import tempfile
import time
from pathlib import Path

from tests.bench.figures import fact, figure, heading
from tests.kit import World

MEGABYTES = 60
COMMANDS = ("git status", "rg -n TODO src", "pytest -q tests/unit", "sed -n 1,80p README.md")
OUTPUT = "collected 42 items, all of them passed in a reasonable time on this machine. " * 60


def main() -> None:
    heading(f"Import of {MEGABYTES} MB of transcripts")
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        size = write(world.home / ".claude" / "projects" / "-p", MEGABYTES << 20)
        world.start()
        try:
            began = time.perf_counter()
            told = world.json("import", "claude-code")
            seconds = time.perf_counter() - began
            fact("events, seconds", f"{told['taken']:,}  {seconds:.1f} s")
            figure("megabytes per second", size / seconds / 1e6, 20, more_is_better=True, unit="MB/s")
        finally:
            world.close()


def write(folder: Path, wanted: int) -> int:
    """Sessions of fifty turns: a prompt, four calls with their results, what the agent writes besides."""
    folder.mkdir(parents=True)
    total = session = 0
    while total < wanted:
        session += 1
        text = "".join(_turn(f"session-{session}", n) for n in range(50))
        (folder / f"session-{session}.jsonl").write_text(text)
        total += len(text)
    return total


def _turn(session: str, n: int) -> str:
    records = [_record(session, f"{n}-p", "user", f"please do thing {n}")]
    for c in range(4):
        call = {"type": "tool_use", "id": f"toolu_{n}_{c}", "name": "Bash", "input": {"command": COMMANDS[c]}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}_{c}", "content": OUTPUT}
        records += [
            _record(session, f"{n}-{c}-a", "assistant", [call]),
            _record(session, f"{n}-{c}-u", "user", [result]),
        ]
        records.append(
            {"type": "attachment", "sessionId": session, "uuid": f"{n}-{c}-x", "attachment": {"text": OUTPUT}}
        )
    records.append(_record(session, f"{n}-z", "assistant", [{"type": "text", "text": "Done."}]))
    return "".join(json.dumps(record) + "\n" for record in records)


def _record(session: str, uuid: str, kind: str, content: object) -> dict:
    return {
        "type": kind, "uuid": uuid, "sessionId": session, "timestamp": "2026-11-15T10:11:26.684Z", "cwd": "/p",
        "gitBranch": "main", "message": {"role": kind, "content": content, "model": "m", "usage": {"input_tokens": 10}},
        "toolUseResult": {"stdout": OUTPUT, "stderr": "", "interrupted": False} if kind == "user" else None,
    }  # fmt: skip

"""What keeping versions of files adds to a hook: calls in a repository against the same calls in one where it is off."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench.figures import fact, figure, heading, ms, p50
from tests.kit import NATIVE_HOOK, World, wait_until

ROUNDS, FILES = 150, 7_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        off, repo = _repository(world.root / "off"), _repository(world.root / "repo")
        (off / ".holdfast").mkdir()
        (off / ".holdfast" / "settings.yaml").write_text("workspace: {snapshots: off}\n")
        world.start()
        try:
            heading(f"Keeping versions of files, {FILES} tracked files, {ROUNDS} rounds")
            _first_call(world, off, repo)
            wait_until(lambda: all(one["current"] for one in _roots(world)), "the repository is watched")
            for tool, pending, limit in (("Read", 0, 0.1), ("Bash", 0, 0.7), ("Bash", 1, 0.7), ("Bash", 50, 8.0)):
                _compare(world, off, repo, tool, pending, limit)
        finally:
            world.close()


def _repository(root: Path) -> Path:
    for number in range(FILES):
        path = root / f"d{number % 200}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 40)
    subprocess.run(
        "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm x", shell=True, cwd=root
    )
    return root


def _roots(world: World) -> list[dict]:
    return world.view("workspace.status")["roots"]


def _first_call(world: World, off: Path, repo: Path) -> None:
    """Without a current watcher: git is asked, in front of the call."""
    without = _hook(world, off, "Bash")
    took = _hook(world, repo, "Bash") - without
    figure(f"first call in a repository of {FILES} files, ms more", took / 1e6, 75.0)


def _compare(world: World, off: Path, repo: Path, tool: str, pending: int, limit: float) -> None:
    more, without = [], []
    for number in range(ROUNDS):
        for folder, took in ((off, without), (repo, more)):
            for n in range(pending):
                (folder / f"new{n}.py").write_text(f"version {number} of file {n}\n" * 40)
            took.append(_hook(world, folder, tool))
    fact(f"{tool} with {pending} pending files, off / on: p50", f"{ms(p50(without))} / {ms(p50(more))}")
    figure(f"{tool}, {pending} pending files, ms more", (p50(more) - p50(without)) / 1e6, limit)


def _hook(world: World, folder: Path, tool: str) -> int:
    payload = {
        "session_id": "bench", "cwd": str(folder), "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": {"command": "true"}, "tool_use_id": os.urandom(8).hex(),
    }  # fmt: skip
    body = json.dumps(payload).encode()
    began = time.perf_counter_ns()
    subprocess.run([NATIVE_HOOK, "ask", "claude-code", "PreToolUse"], input=body, env=world.env, cwd=folder, check=True)
    return time.perf_counter_ns() - began

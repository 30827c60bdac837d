"""What keeping versions of files adds to a hook: calls in a repository against the same calls in one where it is off."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench.figures import fact, figure, heading, ms, p50
from tests.kit import NATIVE_HOOK, World, wait_until

ROUNDS, FILES, MANY_FILES = 150, 7_000, 60_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        world.start()
        try:
            for files, firsts, limit in ((FILES, 7, 75.0), (MANY_FILES, 3, 250.0)):
                heading(f"Keeping versions of files, {files} tracked files, {ROUNDS} rounds")
                off, repo = (
                    _repository(world.root / f"off{files}", files),
                    _repository(world.root / f"on{files}", files),
                )
                (off / ".holdfast").mkdir()
                (off / ".holdfast" / "settings.yaml").write_text("workspace: {snapshots: off}\n")
                _first_calls(world, off, repo, firsts, limit)
                wait_until(lambda: all(one["current"] for one in _roots(world)), "the repository is watched", 60)
                if files == FILES:
                    for tool, pending, most in (
                        ("Read", 0, 0.1),
                        ("Bash", 0, 0.7),
                        ("Bash", 1, 0.7),
                        ("Bash", 50, 8.0),
                    ):
                        _compare(world, off, repo, tool, pending, most)
        finally:
            world.close()


def _repository(root: Path, files: int) -> Path:
    for number in range(files):
        path = root / f"d{number % (files // 35)}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 40)
    commands = "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm x"
    # Of files as old as the index git would read every one.
    subprocess.run(f"{commands}; sleep 1.1; git update-index --refresh -q", shell=True, cwd=root, check=True)
    return root


def _roots(world: World) -> list[dict]:
    return world.view("workspace.status")["roots"]


def _first_calls(world: World, off: Path, repo: Path, rounds: int, limit: float) -> None:
    """Without a current watcher: git is asked, in front of the call. Each worktree is linked to the same repository."""
    without, more = [], []
    for number in range(rounds):
        tree = repo.parent / f"{repo.name}-{number}"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree], cwd=repo, check=True)
        subprocess.run(
            "sleep 1.1; git update-index --refresh -q; git status --porcelain", shell=True, cwd=tree, check=True
        )
        for folder, took in ((off, without), (tree, more)):
            took.append(_hook(world, folder, "Bash"))
        wait_until(lambda: all(one["current"] for one in _roots(world)), "it is watched", 60)
    fact("first call, off / on: p50", f"{ms(p50(without))} / {ms(p50(more))}")
    figure("first call without a watcher, ms more", (p50(more) - p50(without)) / 1e6, limit)


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

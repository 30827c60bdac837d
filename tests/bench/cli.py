"""The command line, warm: CPU of the command together with its share in the warm server, and its memory."""

import json
import subprocess
import tempfile
from pathlib import Path

from holdfast.doors.cli import warm_client
from tests.bench.figures import fact, figure, heading, p50
from tests.kit import BIN, World, wait_until

ROUNDS = 7
COMMANDS = (
    "who", "status", "session list", "session show", "session timeline", "gate status", "gate satisfy plan", "task list",
    "cost", "event tail --no-follow", "search retries",
)  # fmt: skip
# A small process in between: the memory of a process counts that of the one it was forked from.
BETWEEN = """
import os, sys
pid = os.fork()
if not pid:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1); os.dup2(1, 2); os.execv(sys.argv[1], sys.argv[1:])
used = os.wait4(pid, 0)[2]
print([used.ru_utime + used.ru_stime, used.ru_maxrss])
"""
SHARE = """
import os, sys
from holdfast.doors.cli import warm_client
shown = os.dup(1); os.dup2(os.open(os.devnull, os.O_WRONLY), 1); os.dup2(1, 2)
warm_client.run_warm(sys.argv[1:]); os.write(shown, str(warm_client.spent).encode())
"""


def main() -> None:
    heading("The command line, warm (CPU seconds on this machine; the ratio is to an empty Python)")
    with tempfile.TemporaryDirectory(prefix="hf") as folder:
        world = World(Path(folder), HOLDFAST_CLI_SERVER="1")
        try:
            world.session("44444444-aaaa-4bbb-8ccc-000000000001").prompt("Make it faster")
            world.cli("who")
            wait_until(lambda: (world.paths.run / warm_client.server_name()).exists(), "the warm server listens")
            empty = p50([_spent(world, BIN / "python", "-c", "pass")[0] for _ in range(ROUNDS)])
            fact("python -c pass, CPU", f"{empty * 1000:.0f} ms")
            for command in COMMANDS:
                _measure(world, command, empty)
            _measure(world, "", empty, "completion", 0.08, COMP_WORDS="holdfast session show ", COMP_CWORD="3")
        finally:
            world.close()


def _measure(world: World, command: str, empty: float, name: str = "", most: float = 0.10, **complete: str) -> None:
    env = {"_HOLDFAST_COMPLETE": "complete_bash", **complete} if complete else {}
    found = [_spent(world, BIN / "holdfast", *command.split(), **env) for _ in range(ROUNDS)]
    cpu, memory = p50([one for one, _ in found]), max(one for _, one in found) / 1024
    share = p50([_share(world, command, env) for _ in range(ROUNDS)]) / 1000
    note = f"itself {cpu * 1000:.0f} ms ({cpu / empty:.1f} × empty), in the warm server {share * 1000:.0f} ms"
    figure(name or command, cpu + share, most, unit="s", note=note)
    figure(f"{name or command}: memory", memory, 25, unit="MB")


def _spent(world: World, *command: object, **env: str) -> list[float]:
    words = [str(BIN / "python"), "-I", "-S", "-c", BETWEEN, *map(str, command)]
    done = subprocess.run(
        words, env={**world.env, **env}, cwd=world.project, capture_output=True, text=True, check=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def _share(world: World, command: str, env: dict[str, str]) -> float:
    words = [str(BIN / "python"), "-c", SHARE, *command.split()]
    done = subprocess.run(
        words, env={**world.env, **env}, cwd=world.project, capture_output=True, text=True, check=True
    )
    return float(json.loads(done.stdout)[-1])

"""kill -9 of the team server, of PostgreSQL, of daemons and forwarders while machines work: nothing lost, nothing doubled."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.kit import wait_until
from tests.team import postgres as server
from tests.team.processes import TeamHost, TeamMachine, a_team, code_for

FULL = 50
PATIENCE_S = 120.0
RESTARTED: list[subprocess.Popen[bytes]] = []


def run(folder: Path, size: int) -> str:
    """`size` kills, of each kind in turn."""
    chance = random.Random(size)
    with server.postgres() as url, a_team(url, folder, "ann", "ben") as (host, machines):
        ann, ben = machines
        ann.join(host, code_for(host, "ann"))
        ben.join(host, code_for(host, "ben"), "full")
        kills = [
            lambda: _kill_server(host),
            lambda: _kill_database(url),
            lambda: _kill_daemon(ann),
            lambda: _kill_forwarder(ben),
        ]
        for n in range(size):
            _work(machines, chance)
            kills[n % len(kills)]()
            _work(machines, chance)
        for machine in machines:
            machine.start()
            machine.fire("UserPromptSubmit", prompt="the last one")
            wait_until(machine.is_current, "everything was sent", PATIENCE_S)
        stored = [_check(host, machine) for machine in machines]
        while RESTARTED:
            RESTARTED.pop().kill()
    return f"{size} kills of server, database, daemon and forwarder, {sum(stored)} events: 0 lost, 0 doubled"


def _work(machines: list[TeamMachine], chance: random.Random) -> None:
    for machine in machines:
        for n in range(chance.randrange(1, 4)):
            machine.fire("UserPromptSubmit", prompt=f"prompt {n}")
    time.sleep(chance.random() / 2)


def _check(host: TeamHost, machine: TeamMachine) -> int:
    """Every prompt of the log is there once; nothing else is."""
    prompts = {event.key for event in machine.events(kinds=("prompt.submitted",), limit=100_000)}
    stored = host.stored_keys(machine.machine)
    assert len(stored) == len(set(stored)), f"{machine.root.name}: doubled"
    assert prompts <= set(stored), f"{machine.root.name}: {len(prompts - set(stored))} lost"
    assert set(stored) <= {event.key for event in machine.sent()}
    return len(stored)


def _kill_server(host: TeamHost) -> None:
    host.kill()
    host.start()


def _kill_daemon(machine: TeamMachine) -> None:
    machine.kill()
    machine.start()


def _kill_forwarder(machine: TeamMachine) -> None:
    """The daemon starts another one."""
    for pid in machine.forwarder_pids():
        os.kill(pid, signal.SIGKILL)


def _kill_database(url: str) -> None:
    """The whole cluster by SIGKILL, then the same command again: PostgreSQL recovers from its log."""
    data = Path(parse_qs(urlsplit(url).query)["host"][0]) / "data"
    pid = int((data / "postmaster.pid").read_text().split()[0])
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    program = os.readlink(f"/proc/{pid}/exe")
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    user, group = int(status["Uid"].split()[0]), int(status["Gid"].split()[0])
    children = [
        int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
    ]
    for one in (pid, *children):
        os.kill(one, signal.SIGKILL)
    wait_until(lambda: not any(_lives(one) for one in (pid, *children)), "the cluster is gone")
    for left in (
        data / "postmaster.pid",
        *data.parent.glob(".s.PGSQL.*"),
    ):  # A zombie's pid still counts for PostgreSQL.
        left.unlink(missing_ok=True)
    who = {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 else {}
    RESTARTED.append(subprocess.Popen(
        [program, *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=data.parent,
        preexec_fn=server._die_with_parent, **who,
    ))  # fmt: skip
    wait_until(lambda: _answers(url), "PostgreSQL is back")


def _lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
        return True
    except psycopg.OperationalError:
        return False

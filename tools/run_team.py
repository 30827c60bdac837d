"""`make run-team`: PostgreSQL from its wheel, a team server and three machines with made-up sessions, all in a throw-away folder.

With `--once` it ends by itself after showing the board; otherwise with Ctrl-C.
"""

import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.kit import wait_until
from tests.stores import server
from tests.team.processes import TeamHost, TeamMachine, a_team, code_for

PEOPLE = ("ann", "ben", "zoe")
FILES = ("src/api.py", "src/login.py", "docs/guide.md", "src/api.py")


def main() -> None:
    # A closed terminal or `kill` ends it as Ctrl-C does, with the daemons and the folder.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    print("Starting PostgreSQL, a team server and three machines …", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="hfteam", dir="/tmp") as folder,
        server.postgres() as url,
        a_team(url, Path(folder), *PEOPLE) as (host, machines),
    ):
        _join_all(host, machines)
        for turn in range(3):
            _work(machines, turn)
        wait_until(lambda: len(machines[0].board()["sessions"]) == len(PEOPLE), "everybody is on the board")
        print(machines[0].cli("team", "board"))
        if "--once" not in sys.argv:
            print(
                f"To look around while it runs: HOLDFAST_STATE={folder}/ann/state holdfast team status (also ben, zoe)"
            )
            _work_on(machines)


def _join_all(host: TeamHost, machines: list[TeamMachine]) -> None:
    machines[0].join(host, code_for(host, PEOPLE[0]))
    for machine, person in zip(machines[1:], PEOPLE[1:], strict=True):
        machine.join(host, machines[0].json("team", "invite", person)["code"])
    for machine in machines:
        machine.fire("SessionStart", source="startup")


def _work(machines: list[TeamMachine], turn: int) -> None:
    for n, machine in enumerate(machines):
        machine.fire("UserPromptSubmit", prompt=f"step {turn}")
        machine.edit(FILES[(n + turn) % len(FILES)])


def _work_on(machines: list[TeamMachine]) -> None:
    print("The machines work on. The board as a page (each link works once, for a minute):")
    print(machines[0].cli("team", "board", "--open"))
    try:
        for turn in range(3, 1_000_000):
            time.sleep(5)
            _work(machines, turn)
    except KeyboardInterrupt:
        print("Stopping.", flush=True)


if __name__ == "__main__":
    main()

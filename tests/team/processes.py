"""A team as real processes: a server on its own PostgreSQL, and machines with a daemon, a forwarder and a clone each."""

import contextlib
import os
import signal
import socket
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from holdfast_team.membership import TeamFiles, connect_team, need_membership
from holdfast_team.protocol import SharedEvent
from holdfast_team.sent import SentLog
from holdfast_team.server.database import migrate_database, owner_connection
from holdfast_team.server.run import add_tenant
from tests.kit import BIN, World, wait_until
from tests.team.test_privacy import a_repository

REMOTE = "git@example.org:acme/app.git"


class TeamHost:
    """`holdfast team server run` on a free port; it can be killed and started again."""

    def __init__(self, database: str, home: Path) -> None:
        self.database = database
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        self._env = {**os.environ, "HOLDFAST_TEAM_DATABASE": database, "HOME": str(home)}
        self._process: subprocess.Popen[bytes] | None = None
        migrate_database(database)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [BIN / "holdfast", "server", "run", "--port", str(self.port)], env=self._env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(self.ready, "the team server is ready")

    def ready(self) -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/ready", timeout=5) as answer:
            return answer.status == 200
        return False

    def kill(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def process(self) -> psutil.Process:
        assert self._process
        return psutil.Process(self._process.pid)

    def memory_mb(self) -> float:
        return float(self.process().memory_info().rss / 1e6)

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with owner_connection(self.database) as db:
            return db.execute(query, values).fetchall()

    def stored_keys(self, machine: str) -> list[str]:
        return [
            row["key"] for row in self.rows("select key from events where machine = %s order by stream, seq", machine)
        ]


class TeamMachine(World):
    """One state folder, one clone of the repository, one person."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.project.rmdir()
        a_repository(self.project, REMOTE)
        self.session_id = f"session-{root.name}"

    @property
    def machine(self) -> str:
        return (self.paths.state / "machine-id").read_text().strip()

    def join(self, host: TeamHost, code: str, level: str = "facts") -> None:
        self.cli("team", "join", host.url, "--code", code, "--level", level, "--yes")

    def fire(self, event: str, mode: str = "ask", **more: Any) -> dict[str, Any]:
        return self.reply(event, {"session_id": self.session_id, "cwd": str(self.project), **more}, mode)

    def edit(self, path: str) -> dict[str, Any]:
        call = {
            "tool_name": "Edit", "tool_input": {"file_path": str(self.project / path)}, "tool_use_id": uuid.uuid4().hex,
        }  # fmt: skip
        answer = self.fire("PreToolUse", **call)
        self.fire("PostToolUse", "tell", **call, tool_response={})
        return answer

    # What the commands show, without starting them: for looking again and again.

    def board(self) -> dict[str, Any]:
        membership = need_membership(self.paths)
        return connect_team(membership).request("GET", "/v1/board", dict[str, Any])

    def sent(self) -> list[SharedEvent]:
        return [event for batch in SentLog(TeamFiles(self.paths)).batches() for event in batch.events]

    def is_current(self) -> bool:
        """Everything that is in the log now was looked at, and what is shared of it was acknowledged."""
        with self.reader() as reader:
            head = reader.head()
        how, upstream = TeamFiles(self.paths).status(), TeamFiles(self.paths).upstream()
        return how.state == "current" and upstream is not None and upstream.cursor >= head

    def forwarder_pids(self) -> list[int]:
        def is_ours(process: psutil.Process) -> bool:
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                return "holdfast_team.forwarder" in words and str(self.paths.state) in words
            return False

        return [process.pid for process in psutil.process_iter() if is_ours(process)]

    def close(self) -> None:
        super().close()
        wait_until(lambda: not self.forwarder_pids(), "the forwarder ended with its daemon")


@contextlib.contextmanager
def a_team(database: str, folder: Path, *names: str) -> Iterator[tuple[TeamHost, list[TeamMachine]]]:
    """The first is the admin; the others joined by her invitation. Nobody has joined yet."""
    host = TeamHost(database, folder)
    machines = [TeamMachine(folder / name) for name in names]
    try:
        host.start()
        yield host, machines
    finally:
        host.kill()
        for machine in machines:
            machine.close()


def code_for(host: TeamHost, person: str, tenant: str = "acme") -> str:
    return add_tenant(host.database, tenant, person).code

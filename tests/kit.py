"""A whole Holdfast in a folder of its own, driven as an agent and a person drive it: real processes, real files."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw
import psutil

from holdfast.core.errors import StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS
from holdfast.core.machine import lease_holder
from holdfast.core.ports import EventQuery, Reader
from holdfast.paths import Paths
from holdfast.stores.sqlite_reader import SqliteReader

BIN = Path(sys.executable).parent
NATIVE_HOOK = BIN / "holdfast-hook"
PYTHON_HOOK = Path(__file__).parents[1] / "src" / "holdfast" / "hook.py"
PAYLOADS = Path(__file__).parent / "agents" / "payloads"
PATIENCE_S = 30.0

T = TypeVar("T")


class World:
    """`home`, `state` and `config` are temporary; nothing of the real user is seen or touched."""

    def __init__(self, root: Path, **env: str) -> None:
        self.root = root
        self.home, self.project = root / "home", root / "project"
        self.paths = Paths(root / "state")
        for folder in (self.home, self.project):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "HOLDFAST_STATE": str(self.paths.state),
            "HOLDFAST_CONFIG": str(root / "config"),
            "XDG_RUNTIME_DIR": str(root / "runtime"),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "160",
            "HOLDFAST_CLI_SERVER": "0",
            **env,
        }

    # ── as an agent ────────────────────────────────────────────────────────────────────────────────────────────────

    def hook(
        self, event: str, payload: Mapping[str, Any] | bytes, mode: str = "ask", *, agent: str = "claude-code",
        python: bool = False, env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
        """One hook call, the way an agent makes it. Exit code, stdout and stderr are the caller's to look at."""
        body = payload if isinstance(payload, bytes) else json.dumps({"hook_event_name": event, **payload}).encode()
        return subprocess.run(
            [*hook_command(python), mode, agent, event],
            input=body, capture_output=True, env={**self.env, **(env or {})}, cwd=self.project, timeout=60, check=False,
        )  # fmt: skip

    def reply(self, event: str, payload: Mapping[str, Any], mode: str = "ask", **kwargs: Any) -> dict[str, Any]:
        """The answer as the agent reads it; {} when there is nothing to say. Exit 0, nothing on stderr: always."""
        done = self.hook(event, payload, mode, **kwargs)
        assert (done.returncode, done.stderr) == (0, b""), done
        return json.loads(done.stdout) if done.stdout else {}

    def session(self, session: str = "session-1", **common: Any) -> "Agent":
        return Agent(self, session, common)

    # ── as a person ────────────────────────────────────────────────────────────────────────────────────────────────

    def cli(self, *words: str, code: int | None = 0, stdin: str = "", **env: str) -> str:
        """As a person in a session of their own: what runs in the session of the hooks' process is the agent's."""
        done = subprocess.run(
            [BIN / "holdfast", *words],
            input=stdin, capture_output=True, text=True, env={**self.env, **env}, cwd=self.project, timeout=120,
            check=False, start_new_session=True,
        )  # fmt: skip
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def json(self, *words: str, **kwargs: Any) -> Any:
        return json.loads(self.cli(*words, "--json", **kwargs).splitlines()[-1])["data"]

    def view(self, name: str, **args: Any) -> Any:
        """What the command line would be told, without starting it: for tests that look again and again."""
        return self.ask(op="view", name=name, args=args)

    def ask(self, **request: Any) -> Any:
        """By a relative name: the address of a socket may not be longer than 108 bytes."""
        with socket.socket(socket.AF_UNIX) as sock:
            before = os.open(".", os.O_RDONLY)
            try:
                os.chdir(self.paths.control_socket.parent)
                sock.connect(self.paths.control_socket.name)
            finally:
                os.fchdir(before)
                os.close(before)
            sock.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(sock.makefile("rb").readline())
        assert "done" in answer, answer
        return answer["done"]

    # ── the daemon ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> int:
        self.cli("daemon", "start")
        return self.pid

    @property
    def pid(self) -> int:
        return lease_holder(self.paths.lease)

    def kill(self, sig: int = signal.SIGKILL) -> int:
        pid = self.pid
        if pid > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
            wait_until(lambda: lease_holder(self.paths.lease) != pid, "the daemon is gone")
        return pid

    def close(self) -> None:
        self.kill()

    # ── the log ────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        """What was answered is in the store a moment later: a daemon that runs is asked to have written it."""
        with contextlib.suppress(OSError):
            self.ask(op="settle")
        reader = SqliteReader(self.paths.database)
        try:
            yield reader
        finally:
            reader.close()

    def events(self, **query: Any) -> list[Event]:
        try:
            with self.reader() as reader:
                return reader.events(EventQuery(**{"limit": 1_000_000, **query}))
        except (StoreUnavailable, apsw.SQLError):
            return []  # The daemon is making the database at this moment.

    def hooks_seen(self, **query: Any) -> list[Event]:
        """What agents told and were answered, without what the daemon and its features derived from it."""
        return [e for e in self.events(**query) if e.agent and (e.kind in HOOK_KINDS or e.kind == "decision.made")]

    def drained(self) -> None:
        """Everything the hooks had to spool is in the log."""
        self.cli("daemon", "start")
        wait_until(lambda: not spooled(self.paths.spool), "the spool is drained")


class Agent:
    """Claude Code's side of one session, in the payloads it really sends."""

    def __init__(self, world: World, session: str, common: Mapping[str, Any]) -> None:
        self.world, self.id = world, session
        self._calls = 0
        self.common = {
            "session_id": session,
            "transcript_path": str(world.home / f"{session}.jsonl"),
            "cwd": str(world.project),
            **common,
        }
        self.env = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(world.project)}

    def fire(self, event: str, mode: str = "ask", **fields: Any) -> dict[str, Any]:
        return self.world.reply(event, {**self.common, **fields}, mode, env=self.env)

    def start(self, source: str = "startup", **fields: Any) -> dict[str, Any]:
        return self.fire("SessionStart", "start", source=source, **fields)

    def prompt(self, text: str, **fields: Any) -> dict[str, Any]:
        return self.fire("UserPromptSubmit", prompt=text, permission_mode="default", **fields)

    def before(self, tool: str, call: str = "", **tool_input: Any) -> dict[str, Any]:
        return self.fire("PreToolUse", tool_name=tool, tool_input=tool_input, tool_use_id=call or self._next_call())

    def after(self, tool: str, call: str = "", response: Any = None, **tool_input: Any) -> dict[str, Any]:
        return self.fire(
            "PostToolUse", tool_name=tool, tool_input=tool_input, tool_use_id=call or f"call-{self._calls}",
            tool_response=response if response is not None else {"stdout": "ok", "stderr": ""}, duration_ms=12,
        )  # fmt: skip

    def failed(self, tool: str, error: str, call: str = "", **tool_input: Any) -> dict[str, Any]:
        return self.fire(
            "PostToolUseFailure", "tell", tool_name=tool, tool_input=tool_input, error=error, is_interrupt=False,
            tool_use_id=call or f"call-{self._calls}",
        )  # fmt: skip

    def tool(self, tool: str, response: Any = None, **tool_input: Any) -> dict[str, Any]:
        """Before and after; the reply to before. A denied tool does not run."""
        call = self._next_call()
        told = self.before(tool, call, **tool_input)
        if told.get("hookSpecificOutput", {}).get("permissionDecision") != "deny":
            self.after(tool, call, response, **tool_input)
        return told

    def stop(self, message: str = "Done.", *, again: bool = False, **fields: Any) -> dict[str, Any]:
        return self.fire("Stop", last_assistant_message=message, stop_hook_active=again, background_tasks=[], **fields)

    def end(self, reason: str = "prompt_input_exit") -> dict[str, Any]:
        return self.fire("SessionEnd", "tell", reason=reason)

    def _next_call(self) -> str:
        self._calls += 1
        return f"call-{self._calls}"


def hook_command(python: bool = False) -> list[str]:
    if python or not NATIVE_HOOK.exists():
        return [sys.executable, "-I", "-S", str(PYTHON_HOOK)]
    return [str(NATIVE_HOOK)]


def spooled(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if _size(p)] if folder.is_dir() else []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # Drained at this very moment.


def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: a browser that other tests of this process drive keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(asyncio.run, coroutine).result()


def wait_until(true, what: str, patience: float = PATIENCE_S, says=lambda: "") -> None:
    """`says`: what there is instead, for the message of the failure."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"waited {patience} s, and still not: {what}\n{says()}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Pid 1 of a container may not reap: a zombie is dead."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    return done.stdout


def needs(program: str) -> str:
    """For pytest.mark.skipif: empty when the program is there."""
    return "" if shutil.which(program) else f"{program} is not installed"

"""Who asks is told by real processes: below an agent, beside one, left behind by one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.core import machine
from holdfast.core.caller import AgentProcess, HookOrigins, Orphans, ProcessChains, judge_caller, list_ancestors

WAITS = "import os,sys; print(os.getpid(), flush=True); sys.stdin.read()"
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@contextmanager
def started(words: list[str], *, own_session: bool = True, env: dict[str, str] | None = None) -> Iterator[int]:
    """The id that the program prints, while it runs."""
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env or PLAIN, start_new_session=own_session
    )
    assert process.stdout and process.stdin
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()


def agent_program(folder: Path) -> str:
    program = folder / "claude"
    program.write_text(f'#!/bin/bash\n"{sys.executable}" -c "$1"\nexit $?\n')
    program.chmod(0o755)
    return str(program)


def test_what_runs_below_an_agents_program_is_the_agents(tmp_path: Path) -> None:
    with started([agent_program(tmp_path), WAITS]) as pid:
        found = judge_caller(pid)
    assert found.is_agent
    assert "claude" in found.why


def test_a_process_of_its_own_without_a_terminal_is_a_person_of_whom_little_is_known() -> None:
    with started([sys.executable, "-c", WAITS]) as pid:
        found = judge_caller(pid)
    assert (found.kind, found.certain) == ("person", False)


def test_the_environment_of_an_agents_shell_tells_it() -> None:
    with started([sys.executable, "-c", WAITS], env={**PLAIN, "CLAUDECODE": "1"}) as pid:
        assert judge_caller(pid).is_agent


def test_below_a_sessions_process_it_depends_on_the_session_and_on_running_calls() -> None:
    me = machine.look_up_process(os.getpid())
    assert me
    with started([sys.executable, "-c", WAITS]) as pid:
        assert not judge_caller(pid, [AgentProcess(me.pid, me.start)]).is_agent
        assert judge_caller(pid, [AgentProcess(me.pid, me.start, busy=True)]).is_agent
    with started([sys.executable, "-c", WAITS], own_session=False) as pid:
        assert judge_caller(pid, [AgentProcess(me.pid, me.start)]).is_agent
        assert not judge_caller(pid, [AgentProcess(me.pid, me.start + 1)]).is_agent


def test_a_process_that_cannot_be_looked_at_is_nobody_to_trust() -> None:
    assert judge_caller(2**22 + 5).is_agent


def test_hooks_from_below_the_sessions_own_process_are_claims() -> None:
    origins, chain = HookOrigins(), tuple(process.pid for process in list_ancestors(os.getpid()))
    assert not origins.is_claim("claude-code", "s-1", chain)
    with started(["bash", "-c", f'"{sys.executable}" -c "{WAITS}"; true']) as pid:
        forged = ProcessChains().above(pid)
        assert origins.is_claim("claude-code", "s-1", forged)
    assert not origins.is_claim("claude-code", "s-1", chain)
    assert not origins.is_claim("claude-code", "s-1", ())


def test_a_shell_that_only_starts_the_hook_is_looked_through(tmp_path: Path) -> None:
    hook = tmp_path / "holdfast-hook"
    hook.write_text(f'#!/bin/sh\n"{sys.executable}" -c "{WAITS}"\n')
    hook.chmod(0o755)
    with started(["bash", "-c", f"{hook} ask claude-code PreToolUse || true"]) as pid:
        parent = machine.look_up_process(pid)
        assert parent
        shell = machine.look_up_process(parent.parent)
        assert shell and shell.name == "holdfast-hook"
        assert ProcessChains().above(shell.pid)[0] == os.getpid()


def test_a_detached_shell_calls_no_hooks_for_an_agent_that_lives() -> None:
    origins, chain = HookOrigins(), tuple(process.pid for process in list_ancestors(os.getpid()))
    assert not origins.is_claim("claude-code", "s-1", chain)
    with started(["sh", "-c", f'"{sys.executable}" -c "{WAITS}"; true']) as pid:
        shell = list_ancestors(pid)[1].pid
        assert origins.is_claim("claude-code", "s-1", (shell,))
    assert origins.is_claim("claude-code", "s-1", (shell,)), "the process is gone: no agent ends so soon"
    assert not origins.is_claim("claude-code", "s-1", chain)
    assert not origins.is_claim("claude-code", "s-2", (2**22 + 5,)), (
        "of a session that nobody knows nothing can be said"
    )


# Processes that outlive an agent's tool call, told from a person's, with real processes.

WAIT = "import time; print('here', flush=True); time.sleep(60)"
Start = Callable[..., int]


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Start]:
    """Starts a process in a session of its own whose starter is gone; it is ended with the test."""
    started: list[int] = []

    def start(**variables: str) -> int:
        # The starter tells the number and ends: nothing above the process is ours any more.
        code = (
            f"import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', {WAIT!r}], stdout=subprocess.PIPE,"
            " stderr=subprocess.DEVNULL, start_new_session=True)\np.stdout.readline()\nprint(p.pid)"
        )
        environment = {"HOME": os.path.expanduser("~"), "PATH": os.environ["PATH"], **variables}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        started.append(int(done.stdout))
        return started[-1]

    yield start
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="told by /proc")


def test_what_an_agent_left_behind_was_running_until_it_is_seen_to_be_gone(detached: Start) -> None:
    left = Orphans()
    left.look(1_000)
    pid = detached(CLAUDECODE="1")
    left.look(2_000)
    assert f"process {pid}" in left.name_running_at(2_500, 3_000)
    assert not left.name_running_at(1_500, 3_000), "it was not there yet"
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(pid)
    assert left.name_running_at(3_500, 4_000), "it may have ended right after it wrote"
    assert not left.name_running_at(4_500, 5_000)


def test_a_persons_process_and_one_of_another_home_are_not_an_agents(detached: Start, tmp_path: Path) -> None:
    left = Orphans()
    left.look(1_000)
    detached()
    detached(CLAUDECODE="1", HOME=str(tmp_path))
    left.look(2_000)
    assert not left.name_running_at(2_500, 3_000)


def _wait_until_gone(pid: int) -> None:
    for _ in range(500):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} does not end")

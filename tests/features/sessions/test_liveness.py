"""Is it alive? Asked of real processes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from holdfast.core import machine
from holdfast.core.event import Event
from holdfast.core.kinds import HookPayload
from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.times import now_ms
from holdfast.features.sessions import FEATURE, liveness, views
from holdfast.features.sessions.jobs import recovery
from holdfast.features.sessions.state.documents import COMPLETED, Session
from tests.kit import wait_until

from .story import House

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
Start = Callable[..., subprocess.Popen]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs that are gone after the test."""
    started: list[subprocess.Popen] = []

    def run(argv: list[str], **kw) -> subprocess.Popen:
        started.append(subprocess.Popen(argv, start_new_session=True, **kw))
        return started[-1]

    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def record(process: subprocess.Popen) -> AgentProcess:
    found = liveness.look_up_process(process.pid)
    assert found
    return liveness.agent_process(found)


def test_a_process_is_alive_until_it_is_gone(start: Start):
    process = start(SLEEP)
    seen = record(process)
    assert liveness.is_alive(seen) is True
    process.kill()
    wait_until(lambda: liveness.is_alive(seen) is False, "killed, not yet reaped: a zombie is no life")
    process.wait()
    assert liveness.is_alive(seen) is False


def test_the_same_number_later_is_another_process(start: Start):
    seen = record(start(SLEEP))
    assert liveness.is_alive(replace(seen, start=seen.start - 1)) is False


def test_nothing_survives_a_reboot(start: Start):
    assert liveness.is_alive(replace(record(start(SLEEP)), boot="the one before")) is False


def test_what_runs_on_another_machine_is_not_ours_to_judge(start: Start):
    assert liveness.is_alive(replace(record(start(SLEEP)), machine="elsewhere", pid=1 << 22)) is None


def test_a_kernel_that_does_not_say_is_no_death(start: Start, monkeypatch: pytest.MonkeyPatch):
    seen = record(start(SLEEP))
    monkeypatch.setattr(liveness, "look_up_process", _refuse)
    assert liveness.is_alive(seen) is None


def _refuse(_pid: int) -> None:
    raise OSError("too many open files")


@pytest.mark.parametrize("shell", ["sh -c", "sh -ec", "bash -c", "env X=1 sh -c", "timeout 60 sh -c"])
def test_the_agent_is_found_above_shells_and_wrappers(start: Start, shell: str):
    """The hook's parent may be a shell; the agent is the first process above it that is none."""
    me = liveness.look_up_process(os.getpid())
    # Two commands, so that the shell stays between us and the sleeper.
    wrapped = start([*shell.split(), "sleep 60; true"])
    wait_until(lambda: _descendant(wrapped.pid, "sleep") is not None, "the sleeper runs")
    parent = liveness.look_up_process(_descendant(wrapped.pid, "sleep") or 0)
    assert parent
    found = liveness.agent_above(parent.parent)
    assert found == me


def _descendant(pid: int, name: str) -> int | None:
    try:
        return next((c.pid for c in psutil.Process(pid).children(recursive=True) if c.name() == name), None)
    except psutil.NoSuchProcess:
        return None


def test_a_parent_that_is_gone_or_another_names_no_agent(start: Start):
    process = start(SLEEP)
    seen = liveness.look_up_process(process.pid)
    assert seen and liveness.agent_above(process.pid, seen.start) == seen
    assert liveness.agent_above(process.pid, seen.start + 1) is None
    process.kill()
    process.wait()
    assert liveness.agent_above(process.pid) is None
    assert liveness.agent_above(0) is None


def test_a_name_with_brackets_is_read_right(start: Start, tmp_path):
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to(sys.executable)
    process = start([str(odd), "-c", "import time; time.sleep(60)"])
    wait_until(lambda: (liveness.look_up_process(process.pid) or _nobody).name == "a) R 1 (b", "it has its name")
    assert record(process).pid == process.pid


_nobody = liveness.Process(0, 0, 0, "")


# ---- from the first hook


def hook_of(process: subprocess.Popen, start: int) -> HookPayload:
    return HookPayload(pid=process.pid, pid_start=start)


def test_the_process_is_known_with_the_first_hook_and_looked_for_once(start: Start):
    process, lookup = start(SLEEP), liveness.ProcessLookup()
    seen = record(process)
    hook = hook_of(process, seen.start)
    assert lookup.identify(("claude-code", "s-1"), "tool.started", hook, now_ms()) == seen
    assert lookup.identify(("claude-code", "s-1"), "tool.finished", hook, now_ms()) is None
    assert lookup.identify(("claude-code", "s-1"), "session.started", hook, now_ms()) is None
    assert lookup.identify(("claude-code", "s-2"), "prompt.submitted", hook, now_ms()) == seen


def test_an_agent_that_died_while_its_hook_waits_is_known_to_be_gone(start: Start):
    process, lookup = start(SLEEP), liveness.ProcessLookup()
    hook = hook_of(process, record(process).start)
    process.kill()
    process.wait()
    found = lookup.identify(("claude-code", "s-1"), "session.started", hook, now_ms())
    assert found and liveness.is_alive(found) is False


def test_a_hook_from_the_spool_says_nothing_about_a_parent_that_is_gone(start: Start):
    """Its shell is gone long since; the agent may live."""
    process, lookup = start(SLEEP), liveness.ProcessLookup()
    hook = hook_of(process, record(process).start)
    process.kill()
    process.wait()
    assert lookup.identify(("claude-code", "s-1"), "session.started", hook, now_ms() - 60_000) is None


def test_a_resume_in_another_process_is_noticed(start: Start):
    first, second, lookup = start(SLEEP), start(SLEEP), liveness.ProcessLookup()
    lookup.identify(("claude-code", "s-1"), "session.started", hook_of(first, record(first).start), now_ms())
    found = lookup.identify(("claude-code", "s-1"), "session.started", hook_of(second, record(second).start), now_ms())
    assert found == record(second)


def test_a_machine_is_a_random_id_in_the_state_folder(start: Start, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine._Identity, "value", "")
    machine.use_state_folder(tmp_path / "a")
    first = machine.machine_id()
    seen = record(start(SLEEP))
    assert (len(first), seen.machine, liveness.is_alive(seen)) == (32, first, True)
    assert (tmp_path / "a" / "machine-id").stat().st_mode & 0o777 == 0o600
    machine.use_state_folder(tmp_path / "b")
    assert machine.machine_id() != first and liveness.is_alive(seen) is None
    machine.use_state_folder(tmp_path / "a")
    assert machine.machine_id() == first


def test_processes_of_older_logs_are_judged_by_their_host(start: Start):
    seen = replace(record(start(SLEEP)), machine="", host=machine.local_host_name())
    assert liveness.is_alive(seen) is True
    assert liveness.is_alive(replace(seen, host="elsewhere")) is None


def test_a_killed_agent_is_lost_and_told_once(house: House, start: Start):
    """Decision 10."""
    process = start(SLEEP)
    seen = record(process)
    house.hook("session.started", source="startup", pid=process.pid, pid_start=seen.start)
    house.hook("prompt.submitted", prompt="work")
    assert house.waiting() == ["sessions.find"]
    assert [e.kind for e in house.run("sessions.find", session="s-1", pid=process.pid, start=seen.start)] == [
        "session.process"
    ]
    assert house.doc()["process"]["start"] == seen.start
    assert house.run("sessions.lost") == []
    process.kill()
    process.wait()
    assert [e.kind for e in house.run("sessions.lost")] == ["session.lost"]
    assert (house.doc()["reason"], house.doc()["turn"]["how"]) == ("process-gone", "lost")
    assert house.run("sessions.lost") == []
    assert house.replayed() == []


def test_looking_for_the_process_again_finds_nothing_new(house: House, start: Start):
    process = start(SLEEP)
    house.hook("session.started", source="startup", pid=process.pid)
    assert len(house.run("sessions.find", session="s-1", pid=process.pid)) == 1
    assert house.run("sessions.find", session="s-1", pid=process.pid) == []


def test_a_long_command_is_no_stuck_turn(house: House, start: Start):
    """S4-11, but true: what the agent started for the call still runs."""
    agent = start(
        [sys.executable, "-c", "import subprocess, time; subprocess.Popen(['sleep', '60']).wait(); time.sleep(60)"],
    )  # fmt: skip
    wait_until(lambda: _descendant(agent.pid, "sleep") is not None, "the command runs")
    house.clock.now = int(time.time() * 1000) - 10_000
    house.hook("session.started", source="startup", pid=agent.pid)
    house.run("sessions.find", session="s-1", pid=agent.pid)
    house.hook("prompt.submitted", prompt="build")
    house.hook("tool.started", tool="Bash", call="c1", command="make world")
    house.clock.tick(20 * 60_000)
    assert house.run("sessions.stuck") == []
    os.kill(_descendant(agent.pid, "sleep") or 0, signal.SIGKILL)
    wait_until(lambda: liveness.has_child_since(agent.pid, 0) is False, "the command ended")
    assert [e.kind for e in house.run("sessions.stuck")] == ["turn.recovered"]


def test_a_command_that_runs_was_permitted(house: House, start: Start):
    """No agent tells that the user said yes; the command's process does."""
    agent = start([sys.executable, "-c", "import subprocess, sys; sys.stdin.read(1); subprocess.run(['sleep', '60'])"],
                  stdin=subprocess.PIPE)  # fmt: skip
    house.clock.now = int(time.time() * 1000) - 2000
    house.hook("prompt.submitted", prompt="build", pid=agent.pid)
    house.run("sessions.find", session="s-1", pid=agent.pid)
    house.hook("permission.requested", tool="Bash", command="sleep 60", action="shell")
    house.clock.tick(20_000)
    assert house.run("sessions.granted") == []
    assert agent.stdin
    agent.stdin.write(b"y")
    agent.stdin.close()
    wait_until(lambda: _descendant(agent.pid, "sleep") is not None, "the command runs")
    (event,) = house.run("sessions.granted")
    assert (event.kind, house.doc()["asks"], house.doc()["state"]) == ("permission.granted", [], "working")
    assert house.run("sessions.granted") == house.run("sessions.granted")
    assert house.replayed() == []


# ---- clocks


class Clocks:
    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 50.0

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def test_neither_suspend_nor_a_changed_clock_is_inactivity():
    clocks = Clocks()
    awake = recovery.AwakeClock(lambda: clocks.wall, lambda: clocks.steady)
    last = int(clocks.wall * 1000)

    def quiet() -> int:
        awake.check()
        return awake.ms_since(last, int(clocks.wall * 1000))

    clocks.pass_(60)
    assert quiet() == 60_000
    clocks.wall += 8 * 3600  # The lid was closed over night: the steady clock stood still.
    assert quiet() == 60_000
    clocks.wall -= 24 * 3600  # Somebody set the clock back.
    assert quiet() <= 60_000
    clocks.wall += 24 * 3600
    clocks.pass_(30)
    assert quiet() <= 90_000


def test_recovery_keeps_its_own_pace():
    clocks = Clocks()
    pace = recovery.Pace(lambda: clocks.steady)
    assert [pace.is_due(60), pace.is_due(60)] == [True, False]
    clocks.pass_(61)
    assert pace.is_due(60)


def test_recovery_waits_for_an_import(monkeypatch):
    """A session whose end is in the next batch is not taken for one that was left."""
    clocks = Clocks()
    pace = recovery.Pace(lambda: clocks.steady)
    monkeypatch.setattr(recovery, "PACE", pace)
    assert pace.is_due(1)
    clocks.pass_(5)
    FEATURE.enrich_history(Event(key="k", kind="tool.started", at=1))
    assert not pace.is_due(1)
    clocks.pass_(recovery.IMPORT_PAUSE_S + 1)
    assert pace.is_due(1)


def test_two_processes_that_start_together_are_on_one_machine(tmp_path: Path) -> None:
    """Neither reads the id half written, nor lives on with one that it did not keep."""
    words = "import sys, pathlib; from holdfast.core import machine; sys.stdin.read(1)\n"
    words += "machine.use_state_folder(pathlib.Path(sys.argv[1])); print(machine.machine_id())"
    command = [sys.executable, "-c", words, str(tmp_path / "state")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [subprocess.Popen(command, text=True, **pipes) for _ in range(6)]
    told = {process.communicate("x", timeout=60)[0].strip() for process in started}
    assert told == {(tmp_path / "state" / "machine-id").read_text()} and len(told.pop()) == 32
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["machine-id"]


def test_an_empty_id_of_a_process_that_died_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine._Identity, "value", "")
    (tmp_path / "machine-id").write_text("")
    machine.use_state_folder(tmp_path)
    assert machine.machine_id() == (tmp_path / "machine-id").read_text() != ""


def test_nothing_outlives_an_agent_that_goes_on_with_another_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `/clear` its server for MCP still has the first session in its environment."""
    lives = liveness.agent_process(machine.look_up_process(os.getpid()))
    cleared = Session(id="s-1", status=COMPLETED, process=lives)
    killed = Session(id="s-2", status=COMPLETED, process=replace(lives, start=lives.start - 1))
    monkeypatch.setattr(views, "find_survivors", lambda gone, _caller: {one: [] for one in gone})
    assert list(views.survivors_of([cleared, killed, Session(id="s-3")], 0)) == ["s-2"]

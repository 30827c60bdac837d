"""Every declared authority, tried by real processes: a person, an agent, a script that an agent hid."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import build_app
from holdfast.core import machine
from holdfast.core.authority import (
    ANYONE,
    OWN_PROCESS,
    Authority,
    Refusal,
    Surroundings,
    UndeclaredAuthority,
    Who,
    authorise,
)
from holdfast.core.caller import UNSEEN, AgentProcess, Caller
from holdfast.core.feature import Call
from holdfast.daemon.control import OPERATIONS
from holdfast.features import FEATURES
from holdfast.paths import Paths
from tests.factories import NOON
from tests.sample_features.joining import FEATURE as JOINING

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="told by /proc")

DECLARED: dict[str, Authority] = {
    **{f"{feature.name}.{verb}": one for feature in FEATURES for verb, one in feature.authority.items()},
    **{name: operation.authority for name, operation in OPERATIONS.items()},
    **{f"process {name}": one for name, one in OWN_PROCESS.items()},
}
OPEN = {name for name, one in DECLARED.items() if one is ANYONE}
WAITS = "import os,sys; print(os.getpid(), flush=True); sys.stdin.read()"
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[int]:
    program = tmp_path / "codex"
    program.write_text(f'#!/bin/bash\n"{sys.executable}" -c "$1"\nexit $?\n')
    program.chmod(0o755)
    yield from _running([str(program), WAITS])


@pytest.fixture
def person() -> Iterator[int]:
    yield from _running([sys.executable, "-c", WAITS])


@pytest.fixture
def hidden() -> Iterator[int]:
    """Nothing above it is an agent's any more, and its environment names none."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    # Its output is its own: `run` would wait for the end of a pipe that the sleeper holds too.
    code = f"import subprocess as s; print(s.Popen({sleeper!r}, start_new_session=True, stdout=s.DEVNULL).pid)"
    done = subprocess.run([sys.executable, "-c", code], env=PLAIN, stdout=subprocess.PIPE, text=True, check=True)
    yield int(done.stdout)
    os.kill(int(done.stdout), signal.SIGKILL)


def _running(words: list[str]) -> Iterator[int]:
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=PLAIN, start_new_session=True
    )
    assert process.stdout and process.stdin
    yield int(process.stdout.readline())
    process.stdin.close()
    process.wait()


def ask(name: str, pid: int, **surroundings: Any) -> Caller | Refusal | None:
    """Whatever the arguments: what an act is about is read from documents that are not here."""
    authority = replace(DECLARED[name], act_of=None, session_of=None)
    given = Surroundings(**surroundings)
    reader: Any = None
    return authorise(authority, Call({}, reader, None, NOON, caller=pid, surroundings=lambda: given))


def refused(pid: int, **surroundings: Any) -> set[str]:
    return {name for name in DECLARED if isinstance(ask(name, pid, **surroundings), Refusal)}


def test_what_is_not_open_to_anyone_is_refused_to_an_agent_and_recorded(codex: int) -> None:
    assert refused(codex) == DECLARED.keys() - OPEN
    refusal = ask("memory.forget", codex)
    assert isinstance(refusal, Refusal)
    assert "forgetting a memory is a person's to do: it runs below codex" in refusal.text
    assert (refusal.event.kind, refusal.event.data.act) == ("gates.attempted", "forgetting a memory")


def test_a_person_may_do_everything(person: int) -> None:
    assert refused(person) == set()
    assert refused(person, code_without_terminal=True) == DECLARED.keys() - OPEN


def test_a_hidden_script_needs_a_code_while_an_agent_works(hidden: int) -> None:
    me = machine.look_up_process(os.getpid())
    assert me
    working = AgentProcess(me.pid, me.start, busy=True)
    assert refused(hidden, agents=(working,)) == DECLARED.keys() - OPEN
    refusal = ask("stop", hidden, agents=(working,))
    assert isinstance(refusal, Refusal) and "cannot be seen" in refusal.text


def test_a_caller_that_the_kernel_does_not_show_is_no_person() -> None:
    assert refused(UNSEEN) == DECLARED.keys() - OPEN


def test_the_setting_that_lets_agents_approve_opens_nothing_else(codex: int) -> None:
    opened = DECLARED.keys() - OPEN - refused(codex, agents_may_approve=True)
    assert opened == {
        *("gates.satisfy", "gates.approve", "gates.pause", "gates.accept"), "process config", "process trust"
    }  # fmt: skip


def test_an_agent_closes_its_own_session_only(codex: int) -> None:
    agent = machine.look_up_process(codex)
    assert agent
    own = AgentProcess(agent.pid, agent.start, session="mine")
    reader: Any = None
    for session, may in (("mine", True), ("another", False)):
        authority = replace(DECLARED["sessions.close"], session_of=lambda _call, session=session: session)
        call = Call({}, reader, None, NOON, caller=codex, surroundings=lambda: Surroundings((own,)))
        assert isinstance(authorise(authority, call), Refusal) is not may


def test_destructive_and_trust_changing_acts_are_a_persons() -> None:
    acts = (
        "erase", "stop", "ingest", "sessions.close", "memory.pin", "memory.promote", "memory.keep", "memory.forget",
        "gates.approve", "gates.accept", "gates.pause", "team.join", "team.leave", "process restore",
        "process erase-everything", "process uninstall", "process import", "process config", "process trust",
    )  # fmt: skip
    assert not OPEN.intersection(acts)
    assert {"backup", "status", "memory.add", "log.note"} <= OPEN
    assert DECLARED["process restore"].who is DECLARED["process erase-everything"].who is Who.OWNER


def test_a_command_without_a_declared_authority_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(UndeclaredAuthority, match=r"joining\.join"):
        build_app(Paths(tmp_path).prepare(), features=[replace(JOINING, authority={})])

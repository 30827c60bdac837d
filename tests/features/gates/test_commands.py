"""Acts of a person: where it cannot be told who asks, a code from the dashboard tells; what waits is said everywhere."""

import fcntl
import os
import pty
import re
import shutil
import subprocess
import termios
import time
from pathlib import Path

import pytest

from holdfast.core.person_codes import PersonCodes
from tests.kit import BIN, World, wait_until

NOON = 1_700_000_000_000


def test_a_code_counts_once_for_its_act_and_not_by_trying() -> None:
    codes = PersonCodes()
    codes.require_code("approving x", "it is detached", NOON)
    [pending] = codes.pending(NOON)
    assert not codes.redeem("approving y", pending.code, NOON)
    assert codes.redeem("approving x", f"{pending.code[:3]} {pending.code[3:]}", NOON)
    assert not codes.redeem("approving x", pending.code, NOON)
    codes.require_code("approving x", "", NOON)
    [pending] = codes.pending(NOON)
    wrong = "000000" if pending.code != "000000" else "111111"
    assert not any(codes.redeem("approving x", wrong, NOON) for _ in range(5))
    assert not codes.redeem("approving x", pending.code, NOON)
    codes.require_code("approving x", "", NOON)
    [pending] = codes.pending(NOON)
    assert not codes.redeem("approving x", pending.code, NOON + 11 * 60_000)


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    (world.root / "config").mkdir()
    yield world
    world.close()


def test_without_a_terminal_a_code_is_asked_for_where_the_settings_say_so(world: World) -> None:
    rules = "gates: {code_without_terminal: true}\nrequirements:\n  deploy: {manual: false, command_pattern: 'make deploy'}\n"
    (world.root / "config" / "settings.yaml").write_text(rules)
    world.session("s1").start()
    refused = world.cli("gate", "approve", "deploy", code=1)
    assert "cannot be seen" in refused
    assert "--code" in refused
    assert world.cli("gate", "codes").strip() == "Nothing waits for a code."  # not shown to whom it is asked of
    [shown] = _at_a_terminal(world, "gate", "codes")
    assert "approving deploy" in shown
    assert "approved: deploy" in world.cli("gate", "approve", "deploy", "--code", shown.split()[0])


def test_an_agent_cannot_open_acts_to_itself(world: World) -> None:
    """A program of a tool call writes the setting; what it opens waits for a person like every looser rule."""
    rules = world.project / ".holdfast" / "settings.yaml"
    rules.parent.mkdir()
    rules.write_text("requirements:\n  deploy: {manual: false, command_pattern: 'make deploy'}\n")
    agent = world.session("s1")
    agent.start()
    agent.before("Bash", "c1", command="./x.sh")
    (world.root / "config" / "settings.yaml").write_text("gates: {agents_may_approve: true}\n")
    agent.after("Bash", "c1", command="./x.sh")
    codex = world.root / "codex"
    codex.write_text('#!/bin/bash\n"$@"\nexit $?\n')
    codex.chmod(0o755)
    asked = subprocess.run(
        [codex, BIN / "holdfast", "gate", "pause", "1h"], env=world.env, cwd=world.project, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert "is a person's to do" in asked.stderr


def test_what_waits_is_said_by_status_doctor_and_the_next_session(world: World) -> None:
    settings = world.root / "config" / "settings.yaml"
    settings.write_text("requirements:\n  planned: {manual: false}\n")
    agent = world.session("s1")
    agent.start()
    agent.before("Bash", "c1", command="python3 x.py")
    settings.write_text("requirements: {}\n")  # while a call of the agent runs
    agent.after("Bash", "c1", command="python3 x.py")
    waits = "would loosen what is in force: planned: is gone"
    assert waits in world.cli("status")
    assert waits in world.cli("doctor", code=None)
    assert waits in str(world.session("s2").start())
    world.cli("gate", "accept", "--yes")
    assert waits not in world.cli("doctor", code=None)


def test_who_does_not_accept_keeps_what_is_in_force(world: World) -> None:
    """Without it the next look at the files would take the change for the person's own."""
    settings = world.root / "config" / "settings.yaml"
    settings.write_text("requirements:\n  deploy: {manual: false, command_pattern: 'make deploy'}\n")
    agent = world.session("s1")
    agent.start()
    settings.write_text("requirements: {}\n")
    an_hour_ago = time.time() - 3600
    assert "Not accepted" in world.cli("gate", "accept", code=1, stdin="n\n")
    os.utime(settings, (an_hour_ago, an_hour_ago))  # nobody writes it any more
    assert "deny" in str(agent.before("Bash", command="make deploy"))
    assert "deploy: is gone" in world.cli("gate", "status")
    world.cli("gate", "accept", stdin="y\n")
    assert agent.before("Bash", command="make deploy") == {}


def _at_a_terminal(world: World, *words: str) -> list[str]:
    """As in a terminal of the person's own."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [BIN / "holdfast", *words], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=world.env,
        cwd=world.project, start_new_session=True, preexec_fn=lambda: _take_terminal(theirs), text=True,
    )  # fmt: skip
    out, _ = child.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    return [line for line in re.split(r"\r?\n", out) if line.strip()]


def _take_terminal(fd: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not there")


@needs_tmux
def test_a_person_in_a_real_terminal_approves_and_an_agent_cannot(world: World) -> None:
    rules = "requirements:\n  deploy: {manual: false, command_pattern: 'make deploy'}\n"
    (world.root / "config" / "settings.yaml").write_text(rules)
    agent = world.session("s1")
    agent.start()
    assert "deny" in str(agent.before("Bash", command="make deploy"))
    claude = world.root / "claude"
    claude.write_text(
        f"#!/bin/bash\n{BIN / 'holdfast'} gate approve deploy > {world.root / 'agent.out'} 2>&1\nexit $?\n"
    )
    claude.chmod(0o755)
    subprocess.run([claude], env=world.env, cwd=world.project, check=False, start_new_session=True)
    assert "is a person's to do: it runs below claude" in (world.root / "agent.out").read_text()
    assert "refused to an agent: approving deploy" in world.cli("status")
    socket = str(world.root / "tmux")
    try:
        line = f"{BIN / 'holdfast'} gate approve deploy > {world.root / 'person.out'} 2>&1"
        tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
        subprocess.run([*tmux, "new-session", "-d", "sh"], env=world.env, cwd=world.project, check=True)
        subprocess.run([*tmux, "send-keys", line, "Enter"], env=world.env, check=True)
        told = world.root / "person.out"
        wait_until(lambda: told.exists() and "approved: deploy" in told.read_text(), "the person has approved")
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)
    assert "approved without a terminal" not in world.cli("status")
    assert agent.before("Bash", command="make deploy") == {}

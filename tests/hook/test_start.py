"""Starting the daemon: once, cleanly, and never at the agent's cost."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hook.world import ASK, START, TELL, Daemon, age, answer, until

# Writes down how it was started, then does what FAKE says. It ends by itself, should a test forget it.
FAKE = r"""
import json, os, signal, socket, struct, sys, time
signal.alarm(30)
me, state = os.getpid(), sys.argv[sys.argv.index("--state") + 1]
fds = {}
for name in os.listdir("/proc/self/fd"):
    try: fds[name] = os.readlink("/proc/self/fd/" + name)
    except OSError: pass
signals = [signal.getsignal(n) == signal.SIG_IGN for n in (signal.SIGHUP, signal.SIGTERM)]
report = dict(pid=me, argv=sys.argv[1:], fds=fds, fd=os.environ.get("HOLDFAST_START_FD"), cwd=os.getcwd(),
              leader=os.getsid(0) == me, ignored=signals)
log = os.open(state + "/starts", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(log, json.dumps(report).encode() + b"\n")
os.close(log)
what = os.environ.get("FAKE", "sleep")
if what == "sleep":
    time.sleep(30)
if what == "die":
    sys.exit(1)
if what == "fail":
    open(state + "/run/failed", "w").write("no reason")
    time.sleep(30)
time.sleep(0.2)
os.chdir(state + "/run")
server = socket.socket(socket.AF_UNIX)
server.bind("hook.sock")
server.listen(64)
os.close(int(os.environ["HOLDFAST_START_FD"]))
while True:
    connection, _ = server.accept()
    raw = b""
    while len(raw) < 12 or len(raw) < 12 + sum(struct.unpack(">II", raw[4:12])):
        chunk = connection.recv(65536)
        if not chunk: break
        raw += chunk
    if raw: connection.sendall(b"HFA1\0\0\0\5hello")
    connection.close()
"""


def starts(world) -> list[dict]:
    log = world.state / "starts"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def fake(world):
    """A daemon program where this client looks for one."""
    if world.via == "native":
        program = Path(world.command[0]).with_name("holdfast-daemon")
        program.write_text(f"#!{sys.executable} -IS\n{FAKE}")
        program.chmod(0o755)
    else:
        (world.modules / "holdfast" / "daemon.py").write_text(FAKE)
    yield
    for start in starts(world):
        with contextlib.suppress(ProcessLookupError):
            os.kill(start["pid"], signal.SIGKILL)


def started(world) -> dict:
    until(lambda: starts(world))
    [start] = starts(world)
    return start


def test_spools_first_then_starts_the_daemon_of_this_state(world, fake):
    world.run(*TELL).quiet()
    assert world.only()
    assert started(world)["argv"] == ["--state", str(world.state)]


def test_the_daemon_holds_nothing_of_the_agent(world, fake):
    leak = os.open(world.folder, os.O_RDONLY)
    began = time.monotonic()
    world.run(*TELL, pass_fds=[leak]).quiet()  # reads stdout and stderr to their end, as agents do
    assert time.monotonic() - began < 10
    start = started(world)
    assert [start["fds"][fd] for fd in "012"] == ["/dev/null"] * 3
    assert start["fd"] == "3"
    assert start["fds"].pop("3") == str(world.run_folder / "start.lock")
    assert all(path.startswith(("/dev/null", "/proc/")) or "start" in path for path in start["fds"].values())
    assert start["leader"]
    assert start["cwd"] == "/"
    assert start["ignored"] == [False, False]
    os.close(leak)


@pytest.mark.parametrize("streams", [(0,), (1, 2), (0, 1, 2)])
def test_lock_is_handed_over_when_streams_are_closed(world, fake, streams):
    world.run(*TELL, stdin=b"", preexec_fn=lambda: [os.close(fd) for fd in streams]).quiet()
    start = started(world)
    assert [start["fds"][fd] for fd in "012"] == ["/dev/null"] * 3
    assert start["fds"]["3"] == str(world.run_folder / "start.lock")


def test_lock_stays_held_by_the_daemon_and_is_free_when_it_dies(world, fake):
    world.run(*TELL).quiet()
    start = started(world)
    with open(world.run_folder / "start.lock") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(start["pid"], signal.SIGKILL)
        until(lambda: free(lock))


def free(lock) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@pytest.mark.parametrize("what", ["sleep", "serve"])
def test_20_at_once_start_one(world, fake, what):
    processes = [world.open(*TELL, env={"FAKE": what}) for _ in range(20)]
    for process in processes:
        process.stdin.close()
    assert all(process.wait(20) == 0 for process in processes)
    started(world)
    time.sleep(0.5)
    assert len(starts(world)) == 1


def test_a_failed_start_is_not_repeated_at_once(world, fake):
    world.prepare()
    age(world.run_folder / "failed", 20)
    world.run(*TELL).quiet()
    world.run(*START).quiet()
    assert len(world.spooled()) == 2
    time.sleep(0.3)
    assert not starts(world)
    age(world.run_folder / "failed", 33)
    world.run(*TELL).quiet()
    assert started(world)


def test_not_started_while_the_lock_is_held(world, fake):
    world.prepare()
    with open(world.run_folder / "start.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        world.run(*TELL).quiet()
        time.sleep(0.3)
    assert not starts(world)


@pytest.mark.parametrize("reply", [b"garbage!", None], ids=["garbage", "closed"])
def test_not_started_when_one_is_there(world, fake, reply):
    with Daemon(world, reply):
        world.run(*TELL).quiet()
    time.sleep(0.3)
    assert world.only()
    assert not starts(world)


def test_session_start_waits_for_a_cold_daemon(world, fake):
    done = world.run(*START, env={"FAKE": "serve"})
    assert (done.code, done.out, done.err) == (0, b"hello", b"")
    assert not world.log.exists()
    assert world.run(*ASK).out == b"hello"
    assert len(starts(world)) == 1


def test_ask_does_not_wait_for_a_cold_daemon(world, fake):
    assert world.run(*ASK, env={"FAKE": "serve"}).quiet().seconds < 5
    assert world.only()
    assert started(world)


def test_ask_waits_for_a_daemon_that_is_being_started(world, fake):
    """A session's first call comes while its daemon starts: it is asked for, so it is waited for."""
    world.prepare()
    with open(world.run_folder / "start.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = world.open(*ASK)
        process.stdin.close()
        time.sleep(0.3)
        assert process.poll() is None
        with Daemon(world, answer(b"hello")):
            assert process.stdout.read() == b"hello"
            assert process.wait(20) == 0
    assert not world.log.exists()
    assert not starts(world)


@pytest.mark.parametrize("what", ["die", "fail"])
def test_session_start_does_not_wait_for_a_daemon_that_will_not_come(world, fake, what):
    assert world.run(*START, env={"FAKE": what}).quiet().seconds < 4
    assert world.only()


def test_session_start_waits_with_others_for_their_daemon(world, fake):
    processes = [world.open(*START, env={"FAKE": "serve"}) for _ in range(5)]
    for process in processes:
        process.stdin.close()
    assert [process.stdout.read() for process in processes] == [b"hello"] * 5
    assert [process.wait(20) for process in processes] == [0] * 5
    assert len(starts(world)) == 1


def test_session_start_gives_up_at_its_deadline(world, fake):
    assert 5 <= world.run(*START, env={"FAKE": "sleep"}).quiet().seconds < 12
    assert world.only()


@pytest.mark.parametrize("words", [TELL, START], ids=["tell", "start"])
def test_missing_daemon_program(world, words):
    assert world.run(*words).quiet().seconds < 4
    assert world.only()


def test_native_client_finds_its_daemon_through_a_link(world, fake):
    if world.via != "native":
        pytest.skip("only the native client looks beside itself")
    link = world.folder / "link"
    link.symlink_to(world.command[0])
    subprocess.run([link, *TELL], env=world.environment, input=b"{}", check=True)
    assert started(world)


def test_a_start_lock_that_is_a_symlink_is_refused(world, fake):
    world.prepare()
    (world.run_folder / "start.lock").symlink_to(world.folder / "target")
    world.run(*TELL).quiet()
    time.sleep(0.3)
    assert not (world.folder / "target").exists()
    assert not starts(world)
    assert world.only()

"""What comes back: a whole answer is printed, anything else is not, and nothing holds the agent up."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hook.world import ASK, START, TELL, Daemon, age, answer, connect, until

BAD = {
    "garbage": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "another magic": b"HFA2\0\0\0\5hello",
    "too large": b"HFA1" + struct.pack(">I", (16 << 20) + 1) + b"x" * 100_000,
    "cut in the head": b"HFA1\0\0",
    "cut in the text": b"HFA1\0\0\0\6hello",
    "cut late": answer(b"x" * 1_000_000)[:-1],
    "nothing": b"",
}


@pytest.mark.parametrize("text", [b"", b"x", b'{"decision":"block"}', os.urandom(1 << 20), b"m" * (16 << 20)], ids=len)
def test_an_answer_is_printed_whole(world, text):
    with Daemon(world, answer(text)):
        done = world.run(*START)
    assert (done.code, done.err) == (0, b"")
    assert done.out == text
    assert not world.log.exists()


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
def test_a_bad_answer_is_not_printed_but_spooled(world, reply):
    with Daemon(world, reply) as daemon:
        assert world.run(*ASK, stdin=b"body").quiet().seconds < 10
    assert world.only().fields == daemon.frames[0].fields
    assert world.only().body == b"body"
    assert not (world.run_folder / "slow").exists()


def test_daemon_that_closes_at_once(world):
    with Daemon(world, None):
        world.run(*ASK, stdin=b"b" * 1_000_000).quiet()
    assert world.only().body == b"b" * 1_000_000


def test_daemon_that_dies_in_the_middle_of_its_answer(world):
    world.prepare()
    program = (
        "import os, socket; s = socket.socket(socket.AF_UNIX); s.bind('hook.sock'); s.listen(); print(flush=True);"
        "c = s.accept()[0]; c.recv(99); c.sendall(b'HFA1\\0\\0\\0\\12hello'); os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=world.run_folder, stdout=subprocess.PIPE) as daemon:
        daemon.stdout.readline()
        world.run(*ASK).quiet()
    assert world.only().body == b"{}"


def test_no_daemon(world):
    world.run(*ASK, stdin=b"first").quiet()
    world.run(*TELL, stdin=b"second").quiet()
    assert [frame.body for frame in world.spooled()] == [b"first", b"second"]
    assert not (world.run_folder / "slow").exists()


def test_socket_file_without_a_daemon(world):
    with Daemon(world):
        pass
    assert (world.run_folder / "hook.sock").exists()
    assert world.run(*ASK).quiet().seconds < 1.5
    assert world.only()


@pytest.mark.parametrize(("words", "least", "most"), [(TELL, 0.25, 2), (ASK, 2, 6)], ids=["tell", "ask"])
def test_a_silent_daemon_costs_one_deadline(world, words, least, most):
    with Daemon(world, silent=True):
        done = world.run(*words).quiet()
        assert least <= done.seconds < most
        assert world.only()
        assert (world.run_folder / "slow").stat().st_mode & 0o777 == 0o600
        assert world.run(*TELL).quiet().seconds < 1.5  # Only what nobody waits for is shortened.
        assert 2 <= world.run(*ASK).quiet().seconds < 6
    assert len(world.spooled()) == 3


def test_a_daemon_that_trickles_does_not_stretch_the_deadline(world):
    server = Daemon(world).socket
    with world.open(*TELL) as process:
        process.stdin.close()
        connection, _ = server.accept()
        began, text = time.monotonic(), iter(answer(b"x" * 1000))
        while process.poll() is None and time.monotonic() - began < 5:
            try:
                connection.send(bytes([next(text)]))
            except OSError:
                break
            time.sleep(0.02)
        assert time.monotonic() - began < 2
        assert process.stdout.read() == process.stderr.read() == b""
    assert world.only()


@pytest.mark.parametrize("size", [2, 4_000_000])
def test_a_stopped_daemon(world, size):
    world.prepare()
    program = (
        "import socket, time; s = socket.socket(1); s.bind('hook.sock'); s.listen(); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=world.run_folder, stdout=subprocess.PIPE) as daemon:
        daemon.stdout.readline()
        daemon.send_signal(signal.SIGSTOP)
        assert world.run(*TELL, stdin=b"x" * size).quiet().seconds < 2.5
        daemon.kill()
    assert len(world.only().body) == size
    assert (world.run_folder / "slow").exists()


def test_a_full_backlog_is_waited_for(world):
    daemon = Daemon(world, answer(b"at last"), backlog=0)
    with connect(world) as other, world.open(*ASK) as process:
        process.stdin.close()
        time.sleep(0.2)
        other.close()
        with daemon:
            assert process.stdout.read() == b"at last"
    assert not world.spooled()


def test_a_backlog_that_stays_full_is_a_timeout(world):
    daemon = Daemon(world, backlog=0)
    with connect(world):
        assert 0.25 <= world.run(*TELL).quiet().seconds < 2
    daemon.socket.close()
    assert world.only()
    assert (world.run_folder / "slow").exists()


def test_after_a_timeout_an_answer_is_waited_for_as_long_as_before(world):
    with Daemon(world, silent=True):
        age(world.run_folder / "slow", 1)
        assert world.run(*ASK).quiet().seconds >= 2


def test_after_a_timeout_hooks_that_tell_wait_only_briefly_and_one_looks_again(world):
    slow = world.run_folder / "slow"
    with Daemon(world, silent=True):
        age(slow, 2)
        before = slow.stat().st_mtime
        assert world.run(*TELL).quiet().seconds < 1.5
        assert slow.stat().st_mtime == before
        age(slow, 7)
        assert world.run(*TELL).quiet().seconds >= 0.25
        assert time.time() - slow.stat().st_mtime < 3


def test_a_daemon_in_time_is_heard_while_slow(world):
    with Daemon(world, answer(b"quick")):
        (world.run_folder / "slow").touch()
        assert world.run(*ASK).out in (b"quick", b"")  # 50 ms may pass on a busy machine; then it is spooled


def test_stdin_that_never_closes(world):
    with Daemon(world, answer(b"no")) as daemon, world.open(*ASK) as process:
        process.stdin.write(b"a part")
        process.stdin.flush()
        began = time.monotonic()
        assert process.stdout.read() == b""
        assert 1.5 < time.monotonic() - began < 8  # One deadline for all of stdin.
    assert process.returncode == 0
    assert not daemon.frames
    assert world.only().body == b"a part"


def test_stdout_that_nobody_reads(world):
    reader, writer = os.pipe()
    os.close(reader)
    with Daemon(world, answer(b"x" * 200_000)), world.open(*ASK, stdout=writer) as process:
        os.close(writer)
        assert process.communicate(b"{}", timeout=20)[1] == b""
    assert process.returncode == 0
    assert not world.log.exists()


def test_stdout_that_does_not_block(world):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with (
        Daemon(world, answer(b"x" * 300_000)),
        world.open(*ASK, stdout=writer) as process,
        os.fdopen(reader, "rb") as out,
    ):
        os.close(writer)
        process.stdin.close()
        assert len(out.read()) == 300_000
    assert process.returncode == 0


def test_all_streams_closed(world):
    with Daemon(world, answer(b"unheard")) as daemon:
        world.run(*ASK, stdin=b"", preexec_fn=lambda: os.closerange(0, 3)).quiet()
        until(lambda: daemon.frames)
    assert not world.log.exists()


def ignores(pid: int, number: int) -> bool:
    mask = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[1]
    return bool(int(mask, 16) >> number - 1 & 1)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_closing_terminal_does_not_lose_the_event(world, number):
    with Daemon(world, answer(b"kept")) as daemon, world.open(*ASK) as process:
        process.stdin.write(b"be")
        process.stdin.flush()
        until(lambda: ignores(process.pid, number))
        process.send_signal(number)
        process.stdin.write(b"fore")
        process.stdin.close()
        assert process.stdout.read() == b"kept"
    assert process.returncode == 0
    assert daemon.frames[0].body == b"before"


def test_stop_and_continue_while_waiting(world):
    with Daemon(world, silent=True), world.open(*TELL) as process:
        process.stdin.close()
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        assert process.wait(10) == 0
    assert world.only()


def test_run_folder_of_another_user_is_not_trusted(world):
    if os.geteuid() != 0:
        pytest.skip("needs root to give a folder away")
    with Daemon(world, answer(b"from a stranger")) as daemon:
        os.chown(world.run_folder, 65534, 65534)
        world.run(*ASK).quiet()
    assert not daemon.frames
    assert world.only()

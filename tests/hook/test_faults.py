"""System calls that fail, and death at each of them: strace does it to the real client."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter

import pytest

from tests.hook.world import TELL, Daemon, answer, never_start, parse_records, salvage, until


def can_trace() -> bool:
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode == 0


pytestmark = [pytest.mark.fault, pytest.mark.skipif(not can_trace(), reason="strace is not there or may not trace")]


def traced(world, *options: str, **more):
    """Run under strace; its own output goes to a file."""
    prefix = ("strace", "-o", str(world.folder / "trace"), *options, "--")
    return world.run(*TELL, prefix=prefix, **more)


def calls(world) -> list[str]:
    lines = (world.folder / "trace").read_text().splitlines()
    return [found[1] for line in lines if (found := re.match(r"(\w+)\(", line))]


def kept(world) -> list[bytes]:
    """The bodies of all whole records, wherever they are."""
    paths = [*world.log.parent.glob("*.log"), *world.emergency.glob("*.log")]
    return [frame.body for path in paths for frame in salvage(path.read_bytes())]


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_failing_disk_leads_to_the_next_place(world, call, error):
    never_start(world.state)
    world.run(*TELL, stdin=b"first").quiet()
    before = world.log.read_bytes()
    traced(world, "-P", str(world.log), "-e", f"inject={call}:error={error}", stdin=b"second").quiet()
    assert world.log.read_bytes() == before
    [own] = world.own_logs()
    assert [frame.body for frame in parse_records(own.read_bytes())] == [b"second"]


def test_no_disk_at_all_is_still_exit_0(world):
    never_start(world.state)
    traced(world, "-e", "inject=fdatasync:error=EIO").quiet()
    assert kept(world) == []
    assert not world.own_logs()


@pytest.mark.parametrize("call", ["getrandom", "getcwd", "socket", "connect", "flock", "poll", "fsync"])
@pytest.mark.parametrize("error", ["EPERM", "ENOMEM"])
def test_a_failing_call_loses_nothing(world, call, error):
    never_start(world.state)
    if world.via == "python" and call == "getrandom":
        pytest.skip("the interpreter itself needs it to start")
    traced(world, "-e", f"inject={call}:error={error}").quiet()
    assert kept(world) == [b"{}"]


@pytest.mark.parametrize("call", ["read", "write", "poll", "connect"])
def test_interrupted_calls_are_made_again(world, call):
    if world.via == "python":
        pytest.skip("the interpreter sees to it (PEP 475)")
    with Daemon(world, answer(b"heard")) as daemon:
        done = traced(world, "-e", f"inject={call}:error=EINTR:when=1..9+2")
    assert (done.code, done.out, done.err) == (0, b"heard", b"")
    assert [frame.body for frame in daemon.frames] == [b"{}"]
    assert not world.log.exists()


def spool_path(world) -> list[tuple[str, int]]:
    """Each call from the first look at the daemon on: its name and how many of that name came before it."""
    traced(world, stdin=b"trial").quiet()
    seen, path = Counter(), []
    for call in calls(world):
        seen[call] += 1
        path.append((call, seen[call]))
    first = next(at for at, (call, _) in enumerate(path) if call == "socket")
    return [step for step in path[first:] if not step[0].startswith("exit")]


def test_death_at_any_call_leaves_no_bad_record(world):
    never_start(world.state)
    world.run(*TELL, stdin=b"first").quiet()
    path = spool_path(world)
    assert len(path) > 8
    deaths = 0
    for number, (call, when) in enumerate(path):
        done = traced(world, "-e", f"inject={call}:signal=KILL:when={when}", stdin=b"killed %d" % number)
        deaths += done.code != 0
        salvaged = [frame.body for frame in salvage(world.log.read_bytes())]
        assert salvaged[:2] == [b"first", b"trial"]
    assert deaths > len(path) / 2
    world.run(*TELL, stdin=b"last").quiet()
    bodies = kept(world)
    assert bodies.count(b"last") == 1
    assert len(bodies) == len(set(bodies))
    assert parse_records(world.log.read_bytes())[-1].body == b"last"


def test_a_torn_record_is_passed_over(world):
    never_start(world.state)
    world.run(*TELL, stdin=b"whole").quiet()
    record = world.log.read_bytes()
    for size in range(1, len(record), 7):
        world.log.write_bytes(record + record[:size])
        world.run(*TELL, stdin=b"after").quiet()
        assert [frame.body for frame in salvage(world.log.read_bytes())] == [b"whole", b"after"]


def test_daemon_killed_between_connect_and_answer(world):
    """Closed at any moment: the event is with the daemon or in the spool, never nowhere."""
    with Daemon(world, None) as daemon:
        for number in range(20):
            daemon.reply = None if number % 2 else answer()
            world.run(*TELL, stdin=b"%d" % number).quiet()
        until(lambda: len(daemon.frames) == 10)
    have = {frame.body for frame in daemon.frames} | set(kept(world))
    assert have == {b"%d" % number for number in range(20)}

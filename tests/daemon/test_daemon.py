"""The daemon as a process: serving, racing, dying, coming back."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing

import apsw
import psutil
import pytest

from holdfast.core.ids import delivery_key
from holdfast.daemon.ingest.frames import as_frame, as_record
from holdfast.paths import plain_files
from tests.analysis.redact.examples import make_example
from tests.kit import World, alive, spooled, wait_until

PROMPT = {"session_id": "s1", "prompt": "hello", "cwd": "/", "transcript_path": "/t"}


def test_a_first_hook_starts_the_daemon_and_is_on_record(world: World) -> None:
    assert world.session("s1").start() == {}
    assert [e.kind for e in world.hooks_seen()] == ["session.started"]
    assert world.pid > 0


def test_a_hook_without_a_daemon_is_spooled_and_found_when_it_is_back(world: World) -> None:
    """P1, decision 4: exit 0 at once; the event is there afterwards."""
    world.reply("UserPromptSubmit", PROMPT, "tell")
    wait_until(lambda: len(world.hooks_seen()) == 1, "the spooled prompt is in the log")
    wait_until(lambda: not spooled(world.paths.spool), "the file is gone")


def test_one_daemon_of_32_that_race(world: World) -> None:
    """P6."""
    command = [sys.executable, "-m", "holdfast.daemon", "--state", str(world.paths.state)]
    racing = [subprocess.Popen(command, env=world.env) for _ in range(32)]
    wait_until(lambda: sum(p.poll() is None for p in racing) == 1, "all but one gave way", 120)
    assert world.session().start() == {}
    running = [p for p in racing if p.poll() is None]
    assert [p.pid for p in running] == [world.pid]
    assert all(p.returncode == 0 for p in racing if p not in running)
    world.kill()
    running[0].wait()


def test_everything_acknowledged_survives_kill_9(world: World) -> None:
    """P2, P3: hooks go on while the daemon is killed again and again; nothing is lost, nothing doubled."""
    agent = world.session("s1")
    agent.start()
    for round_ in range(5):
        for n in range(4):
            agent.before("Bash", f"call-{round_}-{n}", command="true")
        world.kill()
        agent.before("Bash", f"call-{round_}-down", command="true")
    world.drained()
    seen = [e.data["call"] for e in world.hooks_seen(kinds=("tool.started",))]
    wanted = [f"call-{r}-{n}" for r in range(5) for n in (0, 1, 2, 3, "down")]
    assert sorted(seen) == sorted(wanted)


def test_each_delivery_three_times_by_socket_and_spool_is_one_event(world: World) -> None:
    """P3."""
    world.start()
    header = {"key": delivery_key(), "mode": "tell", "agent": "claude-code", "event": "Stop", "at": "5"}
    frame = as_frame(header, json.dumps({"hook_event_name": "Stop", "session_id": "s"}).encode())
    for _ in range(3):
        _send(world, frame)
    (world.paths.spool / "spool.log").write_bytes(as_record(frame) * 3)
    world.drained()
    assert [e.kind for e in world.hooks_seen()] == ["turn.ended"]


def test_damaged_spool_gives_all_it_can_and_is_set_aside(world: World) -> None:
    """P7."""
    frames = [
        as_frame({"key": delivery_key(), "agent": "claude-code", "event": "Stop"}, b'{"hook_event_name":"Stop"}')
        for _ in range(3)
    ]
    world.paths.prepare()
    torn = as_record(frames[1])[:-3]
    (world.paths.spool / "spool.log").write_bytes(as_record(frames[0]) + torn + b"rubbish" + as_record(frames[2]))
    world.drained()
    assert len(world.hooks_seen()) == 2
    assert list(world.paths.quarantine.iterdir())
    assert [e.data["torn"] for e in world.events(kinds=("spool.drained",))] == [1]


@pytest.mark.parametrize("what", ["states", "states_by_time", "jobs", "meta", "events"])
def test_a_start_that_meets_damage_anywhere_mends_it(world: World, what: str) -> None:
    world.start()
    world.session().start()
    world.kill()
    with closing(apsw.Connection(str(world.paths.database))) as database:
        database.pragma("wal_checkpoint(truncate)")
        [(root,)] = database.execute("select rootpage from sqlite_master where name = ?", (what,))
        size = database.pragma("page_size")
    with world.paths.database.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xde\xad" * (size // 2))
    assert world.session("another").start() is not None
    wait_until(lambda: world.events(kinds=("store.restored",)), "a restored store")
    assert {e.session for e in world.hooks_seen()} >= {"another"}


@pytest.mark.parametrize(
    "rubbish", [b"", b"GET / HTTP/1.1\r\n\r\n", b"HFQ1\xff\xff\xff\xff\xff\xff\xff\xff", b"HFQ1\0\0\0\0\0\0\0\0"]
)
def test_rubbish_on_the_socket_is_dropped_and_hooks_go_on(world: World, rubbish: bytes) -> None:
    world.start()
    with _connected(world) as sock:
        sock.sendall(rubbish)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b""
    assert world.session().start() == {}


def test_a_slow_sender_does_not_hold_up_the_others(world: World) -> None:
    world.start()
    with _connected(world) as slow:
        slow.sendall(b"HFQ1\0\0")
        began = time.monotonic()
        world.session().start()
        assert time.monotonic() - began < 5


def test_a_stop_is_in_good_order_and_said(world: World) -> None:
    world.start()
    world.session().start()
    world.kill(signal.SIGTERM)
    assert world.events()[-1].kind == "daemon.stopped"
    assert not world.paths.hook_socket.exists()


def test_a_newer_client_replaces_the_daemon_once_not_in_a_storm(world: World) -> None:
    """Pain 6."""
    first = world.start()
    _send(world, as_frame({"key": delivery_key(), "agent": "claude-code", "event": "Stop", "client": "99.0.0"}, b"{}"))
    wait_until(lambda: world.pid != first, "the old daemon gives way")
    second = world.start()
    for _ in range(3):
        _send(
            world, as_frame({"key": delivery_key(), "agent": "claude-code", "event": "Stop", "client": "99.0.0"}, b"{}")
        )
    time.sleep(0.3)
    assert world.pid == second
    assert len(world.hooks_seen()) == 4


def test_a_daemon_that_cannot_start_says_why_and_hooks_do_not_storm(world: World) -> None:
    """A newer schema is refused; hooks spool meanwhile and lose nothing."""
    world.start()
    world.kill()
    import apsw

    db = apsw.Connection(str(world.paths.database))
    db.pragma("user_version", 999)
    db.close()
    assert world.session().start() == {}
    wait_until(world.paths.failed.exists, "the reason is left for people")
    assert "newer Holdfast" in world.paths.failed.read_text()
    assert spooled(world.paths.spool)
    assert "newer Holdfast" in world.cli("doctor", code=1)


def test_files_and_folders_are_only_the_owners(world: World) -> None:
    """P8."""
    world.session().start()
    for path in [world.paths.state, *world.paths.state.rglob("*")]:
        assert path.lstat().st_mode & 0o077 == 0, path


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_gets_nothing(world: World) -> None:
    world.start()
    os.chmod(world.paths.state, 0o755)
    os.chmod(world.paths.run, 0o755)
    os.chmod(world.paths.hook_socket, 0o666)
    for parent in world.paths.state.parents:
        if parent.owner() == "root" and str(parent).startswith("/tmp/"):
            os.chmod(parent, 0o755)
    frame = as_frame({"key": delivery_key(), "agent": "claude-code", "event": "Stop"}, b"{}")
    script = "import socket,sys,os\nos.setuid(65534)\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
    script += "s.sendall(bytes.fromhex(sys.argv[2]))\nsys.exit(len(s.recv(10)))\n"
    done = subprocess.run([sys.executable, "-c", script, world.paths.hook_socket, frame.hex()], capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    assert world.hooks_seen() == []


def test_large_payloads_are_cut_down_and_still_json(world: World) -> None:
    """D10, pain 23: 50 MB in, at most 256 KB kept, with the length and hash of the whole."""
    payload = {
        **PROMPT,
        "tool_name": "Bash",
        "tool_input": {"command": "x"},
        "tool_response": {"stdout": "y" * (50 << 20)},
    }
    done = world.hook("PostToolUse", json.dumps({"hook_event_name": "PostToolUse", **payload}).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    world.drained()
    (event,) = world.hooks_seen(bodies=True)
    assert event.kind == "tool.finished"
    assert event.body_size > 50 << 20
    assert len(event.body) <= 256 * 1024
    assert json.loads(event.body)["session_id"] == "s1"
    assert len(event.body_hash) == 64


def test_no_process_is_left_behind(world: World) -> None:
    pid = world.start()
    family = psutil.Process(pid).children(recursive=True)
    world.kill()
    assert not alive(pid)
    assert not any(alive(p.pid) for p in family)


def test_the_socket_works_under_a_very_long_path(tmp_path) -> None:
    deep = World(tmp_path / ("d" * 100) / ("e" * 100))
    try:
        deep.session().start()
        assert len(deep.hooks_seen()) == 1
        assert "pid" in deep.cli("status")
    finally:
        deep.close()


def _connected(world: World) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(world.paths.hook_socket))
    sock.settimeout(10)
    return sock


def _send(world: World, frame: bytes) -> bytes:
    with _connected(world) as sock:
        sock.sendall(frame)
        return sock.recv(1000)


def test_what_a_command_is_told_is_cleaned_before_it_is_put_on_one_line(world: World) -> None:
    """On one line nothing tells that it is a table, or that a line goes on."""
    world.start()
    values = [make_example("<h64>", "a table"), make_example("<w32>", "an option")]
    table = f"  name  |  value\n--------+--------\n softlayer_api_key | {values[0]}\n(1 row)\n"
    option = f"acme login \\\n  --tencentcloud-secret-key \\\n  {values[1]} \\\n  --yes"
    for text in (table, option):
        world.ask(op="command", name="memory.add", args={"text": text, "project": str(world.project)})
    world.ask(op="settle")
    world.kill(signal.SIGTERM)
    kept = b"".join(path.read_bytes() for path in plain_files(world.paths.state))
    assert b"tencentcloud-secret-key" in kept
    assert not any(value.encode() in kept for value in values)

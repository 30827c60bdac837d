"""What the client sends: the frame, byte for byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hook.world import ASK, HOOK_PY, ROOT, TELL, Daemon, never_start, parse_records

VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "src" / "holdfast" / "__init__.py").read_text())[1]
NAMES = ["key", "mode", "agent", "event", "at", "pid", "start", "cwd", "state", "client", "via", "confirms", "told"]
ENVIRONMENT = """
    CLAUDECODE CLAUDE_PROJECT_DIR CLAUDE_PID CLAUDE_CODE_SESSION_ID CLAUDE_CODE_ENTRYPOINT CLAUDE_PROJECT
    GEMINI_SESSION_ID GEMINI_PROJECT_DIR CODEX_HOME COPILOT_HOME CURSOR_VERSION CURSOR_PROJECT_DIR QWEN_PROJECT_DIR
    TERM_PROGRAM TMUX_PANE HOLDFAST_PROJECT HOLDFAST_PAUSE CLAUDE_SKIP_REQUIREMENTS
""".split()


def sent(world, *words, **more):
    with Daemon(world, b"HFA1\0\0\0\0") as daemon:
        world.run(*words, **more).quiet()
    assert not world.spooled()
    [frame] = daemon.frames
    return frame


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_header_has_the_fields_in_order(world):
    before = time.time_ns() // 1_000_000
    frame = sent(world, *ASK, stdin=b'{"tool":1}')
    assert frame.names == NAMES
    assert [frame[name] for name in ("mode", "agent", "event")] == list(ASK)
    assert before <= int(frame["at"]) <= time.time_ns() // 1_000_000
    assert frame["cwd"] == str(world.folder)
    assert frame["state"] == str(world.state)
    assert frame["via"] == world.via
    assert frame["client"] == VERSION
    assert frame.body == b'{"tool":1}'


def test_version_of_the_python_client_is_the_package_version():
    assert f'VERSION = "{VERSION}"' in HOOK_PY.read_text()


def test_names_its_parent_and_when_that_began(world):
    frame = sent(world)
    assert int(frame["pid"]) == os.getpid()
    assert frame["start"] == start_time(os.getpid())


def test_parent_with_brackets_in_its_name(world):
    program = (
        "import ctypes, subprocess, sys; ctypes.CDLL(None).prctl(15, b'a) R 1 (b) x'); subprocess.run(sys.argv[1:])"
    )
    with Daemon(world, b"HFA1\0\0\0\0") as daemon:
        parent = world.open(*ASK, prefix=(sys.executable, "-c", program))
        expected = start_time(parent.pid)
        parent.communicate(b"{}", timeout=20)
    [frame] = daemon.frames
    assert (int(frame["pid"]), frame["start"]) == (parent.pid, expected)


def test_all_environment_values_in_order(world):
    frame = sent(world, env={name: f"<{name}>" for name in reversed(ENVIRONMENT)} | {"SECRET": "not this"})
    assert frame.names == NAMES + [f"env.{name}" for name in ENVIRONMENT]
    assert all(frame[f"env.{name}"] == f"<{name}>" for name in ENVIRONMENT)


def test_environment_values_empty_long_and_not_text(world):
    frame = sent(world, env={"CLAUDECODE": "", "CODEX_HOME": "x" * 5000, "TMUX_PANE": "a=b\n\udcff"})
    assert frame["env.CLAUDECODE"] == ""
    assert frame["env.CODEX_HOME"] == "x" * 4096
    assert frame["env.TMUX_PANE"] == "a=b\n\udcff"


def test_all_environment_values_at_their_longest(world):
    frame = sent(world, stdin=b"y" * 100_000, env=dict.fromkeys(ENVIRONMENT, "x" * 5000))
    assert {len(frame[f"env.{name}"]) for name in ENVIRONMENT} == {4096}
    assert frame.body == b"y" * 100_000


def test_words_that_are_not_ascii(world):
    frame = sent(world, "tell", "agent-é", "Evènt\udcfe")
    assert (frame["agent"], frame["event"]) == ("agent-é", "Evènt\udcfe")


def test_keys_are_unique_and_sort_by_time(world):
    with Daemon(world, b"HFA1\0\0\0\0") as daemon:
        for _ in range(12):
            world.run(*TELL).quiet()
            time.sleep(0.002)
    keys = [frame["key"] for frame in daemon.frames]
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)
    assert all(int(key[:12], 16) == int(frame["at"]) for key, frame in zip(keys, daemon.frames, strict=True))
    assert len({key[12:] for key in keys}) == 12
    assert keys == sorted(keys)


@pytest.mark.parametrize("size", [0, 1, 3_000, 65_536, 220_000])
def test_stdin_arrives_whole(world, size):
    body = os.urandom(size)
    assert sent(world, *ASK, stdin=body).body == body


def test_stdin_of_50_megabytes(world):
    """The native client keeps both ends of what is long and says how long it was; the Python client sends all of it."""
    body = json.dumps({"session_id": "s-1", "stdout": "first " + "x" * (50 << 20) + " last", "cwd": "/a"}).encode()
    frame = sent(world, "start", "a", "e", stdin=body)
    if world.via == "python":
        assert frame.body == body
        return
    told = json.loads(frame.body)
    assert (told["session_id"], told["cwd"], int(frame["whole"])) == ("s-1", "/a", len(body))
    assert told["stdout"].startswith("first x")
    assert told["stdout"].endswith("x last")
    assert "characters left out" in told["stdout"]
    assert len(frame.body) < 500_000


def test_stdin_in_small_pieces(world):
    with Daemon(world, b"HFA1\0\0\0\0") as daemon:
        process = world.open(*ASK)
        for piece in (b"one ", b"two ", b"three"):
            process.stdin.write(piece)
            process.stdin.flush()
            time.sleep(0.05)
        process.communicate(timeout=20)
    assert daemon.frames[0].body == b"one two three"


def test_stdin_closed(world):
    assert sent(world, preexec_fn=lambda: os.close(0), stdin=b"").body == b""


def test_stdin_that_cannot_be_read(world):
    unreadable = os.open("/dev/null", os.O_WRONLY)
    with Daemon(world, b"HFA1\0\0\0\0") as daemon, world.open(*ASK, stdin=unreadable) as process:
        assert process.communicate(timeout=20) == (b"", b"")
    assert daemon.frames[0].body == b""
    os.close(unreadable)


def test_state_directory_from_each_place(world):
    given, ours, xdg = (world.folder / name for name in ("given", "ours", "xdg"))
    env = {"HOLDFAST_STATE": str(ours), "XDG_STATE_HOME": str(xdg)}
    for words, more, expected in (
        (("--state", str(given), *TELL), env, given),
        (TELL, env, ours),
        (TELL, env | {"HOLDFAST_STATE": ""}, xdg / "holdfast"),
        (TELL, {"XDG_STATE_HOME": ""}, world.state),
        (("--state", "near", *TELL), {}, world.folder / "near"),
    ):
        world.run(*words, env=more).quiet()
        world.state = expected
        assert world.only()["state"] == str(expected)


def test_working_directory_that_is_gone(world):
    folder = world.folder / "gone"
    folder.mkdir()
    assert sent(world, cwd=folder, preexec_fn=folder.rmdir)["cwd"] == ""


def test_a_state_path_longer_than_a_socket_address(world):
    world.state = world.folder / ("d" * 120) / ("e" * 120)
    assert sent(world, "--state", str(world.state), *ASK)["state"] == str(world.state)


@pytest.mark.parametrize(
    "words",
    [(), ("ask",), ("ask", "a"), ("ask", "a", "e", "more"), ("no", "a", "e"), ("--state", "x"), ("ask", "", "e")],
)
def test_wrong_words_do_nothing(world, words):
    with world.open(*words) as process:
        out, err = process.communicate(b"x" * 300_000, timeout=20)
    assert (process.returncode, out, err) == (0, b"", b"")
    assert not any(world.folder.glob("home/**/spool.log"))


def test_no_home_does_nothing(world):
    world.run(*ASK, env={"HOME": None}).quiet()
    assert not any(world.folder.glob("**/spool.log"))


def test_the_real_home_is_never_touched(world):
    assert world.environment["HOME"].startswith(str(world.folder))
    listing = subprocess.run(["/bin/sh", "-c", "echo $HOME"], env=world.environment, capture_output=True, text=True)
    assert listing.stdout.strip() == str(world.folder / "home")
    world.run(*TELL).quiet()
    assert world.log.is_relative_to(world.folder)
    assert world.only()["state"].startswith(str(world.folder))


def test_python_client_from_its_cached_bytecode(tmp_path):
    code = f"import sys;sys.path.append({str(HOOK_PY.parent)!r});import hook;hook.run()"
    state = tmp_path / "state"
    never_start(state)
    command = [sys.executable, "-I", "-S", "-c", code, "--state", str(state), *TELL]
    done = subprocess.run(command, input=b"{}", capture_output=True, env={})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert parse_records((state / "spool" / "spool.log").read_bytes())[0].body == b"{}"


def test_python_client_imports_nothing_slow(tmp_path):
    never_start(tmp_path / "s")
    command = [sys.executable, "-X", "importtime", "-I", "-S", str(HOOK_PY), "--state", str(tmp_path / "s"), *TELL]
    done = subprocess.run(command, input=b"{}", capture_output=True, env={})
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "time" in modules
    assert not modules & {"json", "socket", "re", "enum", "typing", "pathlib", "os", "selectors", "subprocess", "site"}

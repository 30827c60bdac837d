"""No answer: the event is on disk, whole, whatever stands in the way."""

from __future__ import annotations

import binascii
import contextlib
import fcntl
import os
import resource
import shutil
import stat
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.hook.world import ASK, TELL, parse_records, salvage, until

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextlib.contextmanager
def mounted(folder, *options):
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "none", str(folder)], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def emergency_frame(world):
    """The one event in the emergency place, in a file named by its key, in a private folder."""
    assert stat.S_IMODE(world.emergency.stat().st_mode) == 0o700
    [path] = world.emergency.iterdir()
    [frame] = parse_records(path.read_bytes())
    assert path.name == frame["key"] + ".log"
    return frame


def own_frame(world):
    [path] = world.own_logs()
    [frame] = parse_records(path.read_bytes())
    assert path.name == frame["key"] + ".log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return frame


def file_limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_record_format(world):
    world.run(*TELL, stdin=b"\0\xff HFS1 body").quiet()
    raw = world.log.read_bytes()
    assert raw[:4] == b"HFS1"
    assert struct.unpack(">II", raw[4:12]) == (binascii.crc32(raw[12:]), len(raw) - 12)
    assert world.only().body == b"\0\xff HFS1 body"


def test_first_hook_ever_makes_private_folders(world):
    world.run(*ASK, preexec_fn=lambda: os.umask(0)).quiet()
    for folder in (world.state, world.run_folder, world.log.parent, *world.state.parents[:2]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(world.log.stat().st_mode) == 0o600


def test_many_megabytes_are_spooled(world):
    body = os.urandom(1 << 20) * 6
    world.run(*ASK, stdin=body).quiet()
    assert world.only().body == (body if world.via == "python" else body[: 4 << 20])


def test_16_at_once(world):
    world.prepare()
    processes = [world.open(*TELL) for _ in range(16)]
    for number, process in enumerate(processes):
        process.stdin.write(b"%d" % number * 5000)
        process.stdin.close()
    assert all(process.wait(20) == 0 for process in processes)
    frames = world.spooled() + [frame for path in world.own_logs() for frame in parse_records(path.read_bytes())]
    assert sorted(frame.body for frame in frames) == sorted(b"%d" % number * 5000 for number in range(16))


def test_log_taken_away_while_waiting_for_its_lock(world):
    world.prepare()
    with open(world.log, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = world.open(*TELL)
        process.stdin.close()
        until(lambda: has_open(process, world.log))
        world.log.rename(world.log.with_name("taken"))
    assert process.wait(20) == 0
    assert world.log.with_name("taken").read_bytes() == b""
    assert world.only()


def has_open(process, path) -> bool:
    with contextlib.suppress(OSError):
        return any(fd.readlink() == path for fd in Path(f"/proc/{process.pid}/fd").iterdir())
    return False


def test_lock_held_for_good(world):
    world.prepare()
    with open(world.log, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert world.run(*TELL).quiet().seconds < 4
    assert own_frame(world).body == b"{}"
    assert world.log.read_bytes() == b""


def test_log_that_is_always_taken_away(world):
    world.prepare()
    stop = threading.Event()

    def take():
        while not stop.is_set():
            with contextlib.suppress(OSError):
                world.log.rename(world.log.with_name(f"taken-{time.monotonic_ns()}"))

    thread = threading.Thread(target=take)
    thread.start()
    world.run(*TELL).quiet()
    stop.set()
    thread.join()
    files = [path for path in world.log.parent.iterdir() if path.stat().st_size]
    [frame] = [frame for path in files for frame in parse_records(path.read_bytes())]
    assert frame.body == b"{}"


@pytest.mark.parametrize("kind", ["symlink", "broken symlink", "folder", "pipe"])
def test_log_that_is_no_plain_file(world, kind):
    world.prepare()
    target = world.folder / "target"
    if kind == "symlink":
        target.touch()
    {
        "symlink": lambda: world.log.symlink_to(target),
        "broken symlink": lambda: world.log.symlink_to(target),
        "folder": world.log.mkdir,
        "pipe": lambda: os.mkfifo(world.log),
    }[kind]()
    world.run(*ASK).quiet()
    assert own_frame(world).body == b"{}"
    assert not target.exists() or target.read_bytes() == b""


def test_write_cut_short_is_taken_back(world):
    world.prepare()
    world.run(*TELL, stdin=b"x" * 3000).quiet()
    before = world.log.read_bytes()
    limit = len(before) + 100
    world.run(*TELL, preexec_fn=lambda: file_limit(limit)).quiet()
    assert world.log.read_bytes() == before
    assert own_frame(world).body == b"{}"


def test_no_room_for_the_record_anywhere(world):
    world.prepare()
    world.run(*TELL, preexec_fn=lambda: file_limit(100)).quiet()
    assert world.log.read_bytes() == b""
    assert not world.own_logs()
    assert not any(world.emergency.iterdir())


def test_appends_after_a_torn_record(world):
    world.run(*TELL, stdin=b"first").quiet()
    torn = world.log.read_bytes() + b"HFS1\0\0\0\0\0\0\1\0HFQ1 torn"
    world.log.write_bytes(torn)
    world.run(*TELL, stdin=b"second").quiet()
    assert world.log.read_bytes().startswith(torn)
    assert [frame.body for frame in salvage(world.log.read_bytes())] == [b"first", b"second"]


def test_spool_that_is_no_folder(world):
    world.prepare()
    shutil.rmtree(world.log.parent)
    world.log.parent.touch()
    world.run(*ASK).quiet()
    assert emergency_frame(world).body == b"{}"


def test_state_that_cannot_be_made(world):
    (world.folder / "file").touch()
    world.run("--state", str(world.folder / "file" / "state"), *ASK).quiet()
    assert emergency_frame(world)["state"] == str(world.folder / "file" / "state")


@pytest.mark.parametrize("kind", ["symlink", "open to all", "file"])
def test_emergency_place_must_be_private_and_real(world, kind, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    if kind == "symlink":
        world.emergency.symlink_to(elsewhere)
    elif kind == "file":
        world.emergency.touch()
    else:
        world.emergency.mkdir()
        world.emergency.chmod(0o755)
    (world.folder / "file").touch()
    words = ("--state", str(world.folder / "file" / "s"), *ASK)
    world.run(*words, preexec_fn=lambda: file_limit(0)).quiet()  # so that nothing goes into the real /dev/shm instead
    assert not any(elsewhere.iterdir())
    assert kind == "file" or not any(world.emergency.iterdir())


@AS_ROOT
def test_shared_memory_when_there_is_no_runtime_folder(world):
    """In a mount namespace of its own, so that the real /dev/shm stays as it is."""
    (world.folder / "file").touch()
    script = 'mount -t tmpfs none /dev/shm && "$@"; cp -a /dev/shm/. "$COPY"'
    copy = world.folder / "copy"
    copy.mkdir()
    command = ("unshare", "-m", "sh", "-c", script, "sh")
    if subprocess.run([*command, "true"], env={**os.environ, "COPY": str(copy)}, check=False).returncode:
        pytest.skip("cannot make a mount namespace")
    env = {"XDG_RUNTIME_DIR": None, "COPY": str(copy)}
    world.run("--state", str(world.folder / "file" / "s"), *ASK, prefix=command, env=env).quiet()
    [path] = (copy / f"holdfast-spool-{os.geteuid()}").iterdir()
    assert parse_records(path.read_bytes())[0]["key"] + ".log" == path.name


@AS_ROOT
def test_full_disk(world):
    world.prepare()
    with mounted(world.log.parent, "-o", "size=8k"):
        world.run(*ASK, stdin=b"x" * 50_000).quiet()
        assert [(path.name, path.stat().st_size) for path in world.log.parent.iterdir()] == [("spool.log", 0)]
    assert emergency_frame(world).body == b"x" * 50_000


@AS_ROOT
def test_read_only_disk(world):
    world.prepare()
    with mounted(world.log.parent, "-o", "ro"):
        world.run(*ASK).quiet()
    assert emergency_frame(world).body == b"{}"


@AS_ROOT
def test_spool_of_another_user(world):
    world.prepare()
    os.chown(world.log.parent, 65534, 65534)
    world.run(*ASK).quiet()
    assert not any(world.log.parent.iterdir())
    assert emergency_frame(world).body == b"{}"


@pytest.mark.parametrize("words", [ASK, TELL], ids=["ask", "tell"])
def test_a_stdin_that_drips_is_cut_and_what_came_is_kept(world, words):
    """Each byte comes soon after the one before: only a deadline for all of it ends the waiting."""
    with world.open(*words) as process:
        process.stdin.write(b'{"first": "part')
        process.stdin.flush()

        def drip() -> None:
            with contextlib.suppress(OSError, ValueError):
                while process.poll() is None:
                    process.stdin.write(b".")
                    process.stdin.flush()
                    time.sleep(0.05)

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert process.wait(30) == 0
        dripping.join()
        with contextlib.suppress(OSError):
            process.stdin.close()
    [frame] = parse_records(world.log.read_bytes())
    assert frame.body.startswith(b'{"first": "part')


@pytest.mark.parametrize("below", ["run", "spool"])
def test_a_folder_behind_a_link_is_not_entered(world, below, tmp_path):
    world.prepare()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (world.state / below).rmdir()
    (world.state / below).symlink_to(elsewhere)
    world.run(*TELL).quiet()
    assert list(elsewhere.iterdir()) == []
    kept = world.log if below == "run" else next(world.emergency.iterdir())
    assert len(parse_records(kept.read_bytes())) == 1

"""Worlds that are not as they should be: old and new schemas, jumping clocks, used-up numbers, missing programs."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from holdfast.setup.install import hooks_text
from holdfast.stores import backup, migrations
from tests.campaign.acks import fire, frame, judge, send, serving
from tests.campaign.steps import an_old_schema
from tests.kit import NATIVE_HOOK, PYTHON_HOOK, World, alive, spooled, wait_until

pytestmark = pytest.mark.fault


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_old_schema_is_migrated_after_a_backup(world: World) -> None:
    an_old_schema(world)
    assert fire(world, "after", "start") == 0
    judge(world, {"stored-0", "stored-1", "stored-2", "after"})
    assert any("before-migration" in made.name for made in backup.list_backups(world.paths.backups))


def test_a_newer_schema_is_left_alone_and_hooks_go_on(world: World) -> None:
    serving(world)
    assert fire(world, "before", "ask") == 0
    pid = world.kill()
    wait_until(lambda: not alive(pid), "it is gone")
    db = apsw.Connection(str(world.paths.database))
    db.pragma("user_version", 999)
    db.close()
    content = world.paths.database.read_bytes()
    for n in range(3):
        assert fire(world, f"meanwhile-{n}", "start") == 0
    assert world.paths.database.read_bytes() == content
    assert spooled(world.paths.spool)
    db = apsw.Connection(str(world.paths.database))
    db.pragma("user_version", migrations.newest_version())  # Holdfast is upgraded.
    db.close()
    judge(world, {"before", *(f"meanwhile-{n}" for n in range(3))})


# ── clocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

CLOCK = """
import os, time
def shifted(real, unit):
    def now():
        try:
            return real() + int(open(os.environ["CLOCK_SHIFT"]).read() or 0) * unit
        except (OSError, KeyError, ValueError):
            return real()
    return now
time.time, time.time_ns = shifted(time.time, 1), shifted(time.time_ns, 10**9)
"""


@pytest.fixture
def shift(tmp_path: Path, world: World) -> Path:
    """A file of seconds by which every Python of this world is wrong about the time."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CLOCK)
    file = tmp_path / "shift"
    file.write_text("0")
    world.env |= {"PYTHONPATH": str(tmp_path / "site"), "CLOCK_SHIFT": str(file)}
    return file


def test_a_clock_that_jumps_changes_no_order_and_loses_nothing(world: World, shift: Path) -> None:
    """Ordering is by seq, never by clock; backups go on after the clock was set back."""
    serving(world)
    sent = []
    for n, seconds in enumerate((0, 10 * 365 * 86400, -20 * 365 * 86400, 0, 3600, -3600)):
        shift.write_text(str(seconds))
        at = str(int((time.time() + seconds) * 1000))
        for m in range(3):
            assert send(world, frame(f"c{n}-{m}", at=at)) is not None
            sent.append(f"c{n}-{m}")
        assert fire(world, f"hook-{n}", "ask") == 0
        sent.append(f"hook-{n}")
        if n % 2:
            backup.write_backup(world.paths.database, world.paths.backups)
            world.kill()
            serving(world)
    judge(world, set(sent))
    assert [e.data["call"] for e in world.events(kinds=("tool.started",))] == sent


def test_a_backup_made_after_the_clock_was_set_back_is_not_the_first_to_go(tmp_path: Path, world: World) -> None:
    serving(world)
    world.paths.backups.mkdir(exist_ok=True)
    for n in range(backup.KEEP):
        shutil.copy(world.paths.database, world.paths.backups / f"2099010{n + 1}T000000Z-daily.db")
    made = backup.write_backup(world.paths.database, world.paths.backups)
    assert made.exists()


# ── numbers of processes ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_used_up_pid_is_nobody_of_ours(world: World) -> None:
    """The lock decides, not the number in the file: an innocent process with the daemon's old pid is left alone."""
    serving(world)
    world.kill()
    with subprocess.Popen(["sleep", "60"]) as innocent:
        world.paths.lease.write_text(f"{innocent.pid}\n")
        assert world.pid == 0
        world.cli("daemon", "stop", code=None)
        world.cli("daemon", "restart", code=None)
        assert innocent.poll() is None
        assert world.pid not in (0, innocent.pid)
        assert fire(world, "after", "ask") == 0
        judge(world, {"after"})
        innocent.kill()


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or not NATIVE_HOOK.exists(),
    reason="needs root for a pid namespace",
)
def test_a_parent_is_named_by_pid_and_start_so_that_reuse_shows(world: World) -> None:
    """Twice the same pid, in two lives: the events tell them apart."""
    script = f"""
set -e
for n in 1 2; do
  echo 300 > /proc/sys/kernel/ns_last_pid
  sh -c 'echo "{{}}" | "$0" tell claude-code Stop; true' {shlex.quote(str(NATIVE_HOOK))}
  sleep 0.05
done
"""
    serving(world)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "bash", "-c", script], env=world.env, capture_output=True
    )
    if done.returncode:
        pytest.skip(f"no pid namespace here: {done.stderr!r}")
    wait_until(lambda: len(world.hooks_seen()) == 2, "both are there")
    first, second = world.hooks_seen()
    assert first.data["pid"] == second.data["pid"] == 301
    assert first.data["pid_start"] < second.data["pid_start"]


# ── programs that are gone ───────────────────────────────────────────────────────────────────────────────────────────


def installed(world: World, python: bool) -> list[str]:
    """The command line as `holdfast install` writes it, led to a copy of the programs that may be broken."""
    world.cli("install", "--agent", "claude-code", "--project")
    settings = json.loads((world.project / ".claude" / "settings.json").read_text())
    entry = settings["hooks"]["PreToolUse"][0]["hooks"][0]
    place = world.root / "programs"
    (place / "holdfast").mkdir(parents=True)
    shutil.copy(entry["command"], place / "holdfast-hook")
    shutil.copy(PYTHON_HOOK, place / "holdfast" / "hook.py")
    os.symlink(sys.executable, place / "python")
    before = [str(place / "python"), *hooks_text.python_command()[1:-1], str(place / "holdfast" / "hook.py")]
    world.close()
    return [*(before if python else [str(place / "holdfast-hook")]), *entry["args"]]


def by_shell(world: World, words: list[str]) -> subprocess.CompletedProcess[bytes]:
    line = " ".join(shlex.quote(word) for word in words)
    return subprocess.run(["sh", "-c", line], input=b"{}", env=world.env, capture_output=True, timeout=30, check=False)


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_the_installed_command_line_works_in_sh(world: World, python: bool) -> None:
    done = by_shell(world, installed(world, python))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert spooled(world.paths.spool) or world.hooks_seen()


@pytest.mark.parametrize("gone", ["holdfast-hook", "python", "holdfast/hook.py", "holdfast"])
def test_a_missing_part_is_never_a_refusal(world: World, gone: str) -> None:
    """Exit 2 is what agents read as “deny”. A missing package ends with 0; a missing program is the shell's own 127,
    which no agent takes for an answer."""
    words = installed(world, python=gone != "holdfast-hook")
    path = world.root / "programs" / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = by_shell(world, words)
    assert done.returncode == (127 if gone in ("holdfast-hook", "python") else 0), done
    assert done.stdout == b""


def test_a_hook_without_a_daemon_program_spools(world: World) -> None:
    words = installed(world, python=False)  # holdfast-daemon is not beside this copy.
    for _ in range(3):
        assert by_shell(world, words).returncode == 0
    assert world.pid == 0
    assert spooled(world.paths.spool)


# ── what must not outlive the daemon ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "stop"])
def test_children_die_with_the_daemon(world: World, sig: int) -> None:
    """P6, with everything they started."""
    world.env |= {"HOLDFAST_FEATURES": "tests.sample_features.lingering", "PYTHONPATH": str(Path(__file__).parents[2])}
    serving(world)
    pids = world.root / "pids"
    assert world.hook("Stop", {"session_id": str(pids)}).returncode == 0
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the job's program and its child run")
    family = [int(pid) for pid in pids.read_text().split()]
    assert all(alive(pid) for pid in family)
    world.kill(sig)
    wait_until(lambda: not any(alive(pid) for pid in family), "they are gone")


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text", [b"\xff\xfe\x00", b"a: [", b"daemon: 5\nstore: {url: 7}", b"x: &a [*a]", b"- 1\n" * 99999]
)
def test_broken_settings_never_stop_a_hook(world: World, text: bytes) -> None:
    for path in (Path(world.env["HOLDFAST_CONFIG"]) / "settings.yaml", world.project / ".holdfast" / "settings.yaml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    assert set(world.session().start()) <= {"systemMessage"}, "told to the person at most"
    assert world.hooks_seen()[0].kind == "session.started"

"""P8: only the owner reads or writes; not other users, not through symlinks or open folders."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.errors import UnsafePath
from holdfast.daemon.control import OPERATIONS
from holdfast.daemon.ingest.frames import as_record
from holdfast.paths import Paths, private_folder
from tests.campaign.acks import fire, frame, serving, settled
from tests.kit import World, spooled, wait_until

NOBODY = 65534
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to become another user"
)


@pytest.fixture
def open_road(tmp_path: Path):
    """Every folder above can be passed, so that only ours stands in the way."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)


def as_nobody(*words: str) -> subprocess.CompletedProcess[bytes]:
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]
    return subprocess.run(command, capture_output=True, timeout=30, env={"PATH": os.environ["PATH"]})


@as_root
def test_another_user_can_list_read_write_and_connect_to_nothing(world: World, open_road: None) -> None:
    serving(world)
    assert fire(world, "mine", "ask") == 0
    inside = [p for p in world.paths.state.rglob("*") if p.is_file()]
    assert len(inside) > 3
    assert as_nobody("ls", str(world.paths.state)).returncode != 0
    for path in inside:
        assert as_nobody("cat", str(path)).returncode != 0, path
        assert as_nobody("sh", "-c", f"echo x >> '{path}'").returncode != 0, path
    python = f"import socket;socket.socket(socket.AF_UNIX).connect('{world.paths.hook_socket}')"
    assert as_nobody(sys.executable, "-c", python).returncode != 0


@as_root
def test_even_with_the_folders_thrown_open_the_control_socket_serves_the_owner_only(
    world: World, open_road: None
) -> None:
    world.start()
    for path, mode in ((world.paths.state, 0o755), (world.paths.run, 0o755), (world.paths.control_socket, 0o666)):
        path.chmod(mode)
    script = (
        "import socket,sys,os\nos.setuid(65534)\nd=b''\n"
        "for op in sys.argv[2:]:\n s=socket.socket(socket.AF_UNIX)\n s.settimeout(5)\n"
        ' try:\n  s.connect(sys.argv[1]);s.sendall(b\'{"op":"%s"}\\n\' % op.encode());d+=s.recv(10)\n'
        " except OSError: pass\nsys.exit(len(d))\n"
    )
    words = [sys.executable, "-c", script, str(world.paths.control_socket), *OPERATIONS]
    done = subprocess.run(words, capture_output=True)
    assert done.returncode == 0, done
    assert fire(world, "still-there", "ask") == 0
    assert settled(world)["still-there"] == 1


@as_root
def test_events_that_another_user_puts_into_the_spool_are_not_taken(world: World, open_road: None) -> None:
    serving(world)
    planted = world.paths.spool / "planted.log"
    planted.write_bytes(as_record(frame("planted")))
    os.chown(planted, NOBODY, NOBODY)
    elsewhere = Path(world.env["XDG_RUNTIME_DIR"]) / "holdfast-spool"
    elsewhere.mkdir(parents=True)
    (elsewhere / "planted.log").write_bytes(as_record(frame("planted-too", state=str(world.paths.state))))
    os.chown(elsewhere / "planted.log", NOBODY, NOBODY)
    assert fire(world, "mine", "ask") == 0
    world.cli("verify", code=None)
    assert [e.data["call"] for e in world.hooks_seen(kinds=("tool.started",))] == ["mine"]
    assert planted.exists()


@as_root
def test_a_state_directory_of_another_user_is_refused(world: World) -> None:
    world.paths.state.mkdir(parents=True)
    os.chown(world.paths.state, NOBODY, NOBODY)
    assert "belongs to user" in world.cli("daemon", "start", code=None)
    assert fire(world, "anyway") == 0
    assert not (world.paths.spool / "spool.log").exists() or world.paths.spool.stat().st_uid == os.geteuid()


@pytest.mark.parametrize("name", ["state", "run", "spool", "backups", "logs"])
def test_a_symlink_in_place_of_a_folder_is_refused(tmp_path: Path, world: World, name: str) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o777)
    folder = world.paths.state if name == "state" else world.paths.state / name
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.symlink_to(target)
    with pytest.raises(UnsafePath):
        Paths(world.paths.state).prepare()
    assert "not a plain folder" in world.cli("daemon", "start", code=None)
    assert fire(world, "anyway") == 0
    assert not (target / "holdfast.db").exists()


@pytest.mark.parametrize(
    "name",
    [
        "holdfast.db",
        "holdfast.head",
        "run/daemon.lock",
        "run/start.lock",
        "logs/daemon.log",
        "spool/spool.log",
        "run/slow",
    ],
)
def test_a_symlink_in_place_of_a_file_is_never_written_through(tmp_path: Path, world: World, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    world.paths.prepare()
    (world.paths.state / name).symlink_to(victim)
    for mode in ("start", "tell"):
        assert fire(world, f"anyway-{mode}", mode) == 0
    world.cli("daemon", "start", code=None)
    world.close()
    assert victim.read_text() == "precious"


TEMPTING = {
    "precious.db": b"not ours", "20200101T000000Z-daily.db": b"zebrafinch of somebody", "a.json": b'{"path": "/x"}', "b.new": b"new",
    "c.log": b"the zebrafinch sings in somebody's file", ".d.json.1.partial": b"half", "spool.log": b"HFS1", "e.erase": b"e",
} | {f"2019010{n}T000000Z-x.db": b"old" for n in range(1, 9)}  # fmt: skip
"""What each of our folders would rewrite, take over, or clear away."""
LINKED = ("backups", "quarantine", "footprint", "kept", "derived", "indexes", "team", "web")


def test_a_folder_that_becomes_a_link_leads_nowhere(world: World, tmp_path: Path) -> None:
    """Planted under a running daemon, and again before one starts: nobody's files are changed, removed or added to."""
    work_through(world, "before")
    for round_ in ("while it runs", "before it starts"):
        if round_ == "before it starts":
            world.kill()
        for name in LINKED:
            plant(world.paths.state / name, tmp_path / round_ / name)
        work_through(world, round_)
        for name in LINKED:
            there = {p.name: p.read_bytes() for p in (tmp_path / round_ / name).iterdir()}
            assert there == TEMPTING, (round_, name)


def plant(folder: Path, victim: Path) -> None:
    victim.mkdir(parents=True, mode=0o755)
    for name, content in TEMPTING.items():
        (victim / name).write_bytes(content)
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    folder.symlink_to(victim)


def work_through(world: World, session: str) -> None:
    """What writes, rewrites and clears away. Hooks are answered whatever it comes to."""
    agent = world.session(session)
    agent.start()
    agent.prompt("We decided that the zebrafinch sings in somebody's file")
    agent.stop("Done.")
    for words in (
        ("backup",),
        ("erase", "--text", "the zebrafinch sings in somebody's file", "--yes"),
        ("status",),
        ("doctor",),
    ):
        assert "Traceback" not in world.cli(*words, code=None)


def test_the_socket_is_not_followed_to_somebody_else(tmp_path: Path, world: World) -> None:
    """A link at the socket's place is replaced when the daemon starts, and its target is left alone."""
    world.paths.prepare()
    other = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(other))
        listening.listen()
        world.paths.hook_socket.symlink_to(other)
        serving(world)
        wait_until(lambda: not world.paths.hook_socket.is_symlink(), "the link is replaced")
        assert stat.S_ISSOCK(other.stat().st_mode)


def test_folders_open_to_the_world_are_closed(world: World) -> None:
    world.paths.prepare()
    for folder in (world.paths.state, world.paths.run, world.paths.spool):
        folder.chmod(0o777)
    old = os.umask(0)
    try:
        serving(world)
        assert fire(world, "one", "ask") == 0
        world.cli("backup")
    finally:
        os.umask(old)
    loose = [p for p in (world.paths.state, *world.paths.state.rglob("*")) if p.lstat().st_mode & 0o077]
    assert loose == []


def test_a_private_folder_is_a_folder_and_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((UnsafePath, FileExistsError)):
        private_folder(tmp_path / "file")


def test_a_hook_that_had_to_spool_leaves_nothing_open(world: World) -> None:
    world.paths.prepare()
    world.paths.failed.touch()
    old = os.umask(0)
    try:
        assert fire(world, "spooled") == 0
    finally:
        os.umask(old)
    assert [p.stat().st_mode & 0o777 for p in spooled(world.paths.spool)] == [0o600]

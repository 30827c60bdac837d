"""A desktop of our own: a session bus that starts nothing, a screen in memory, and a notification daemon on both."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.core.job import run_briefly
from holdfast.features.attention.channels import Message, send
from holdfast.features.attention.settings import AttentionSettings
from tests.kit import wait_until

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"""
DUNST = """[global]
    width = 560
    height = 240
    offset = 20x20
    origin = top-right
    font = DejaVu Sans 11
    markup = full
    frame_width = 1
    frame_color = "#7a8290"
    padding = 14
    horizontal_padding = 16
    word_wrap = yes
[urgency_normal]
    background = "#20242b"
    foreground = "#eceff4"
    timeout = 0
"""


@contextmanager
def _running(words: list[str], **options: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def session_bus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    address = f"unix:path={folder}/bus"
    (folder / "bus.conf").write_text(BUS.format(address=address))
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    with _running(["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork"]):
        wait_until((folder / "bus").exists, "the bus is there")
        yield address


@contextmanager
def screen(monkeypatch: pytest.MonkeyPatch, size: str = "640x200x24") -> Iterator[str]:
    """Xvfb chooses a free number itself."""
    read, write = os.pipe()
    with _running(["Xvfb", "-displayfd", str(write), "-screen", "0", size, "-nolisten", "tcp"], pass_fds=[write]):
        os.close(write)
        with os.fdopen(read) as told:
            display = f":{told.readline().strip()}"
        monkeypatch.setenv("DISPLAY", display)
        yield display


@contextmanager
def dunst(folder: Path) -> Iterator[None]:
    config = folder / "dunstrc"
    config.write_text(DUNST)
    with _running(["dunst", "-config", str(config)], env={**os.environ, "HOME": str(folder)}):
        wait_until(lambda: "dunst" in _call("GetServerInformation"), "the notification daemon is there")
        yield


def send_to_desktop(message: Message, program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With only one of the programs that can."""
    only, found = folder / "only", shutil.which(program)
    if not found:
        pytest.skip(f"{program} is not installed")
    only.mkdir()
    (only / program).symlink_to(found)
    with monkeypatch.context() as narrowed:
        narrowed.setenv("PATH", str(only))
        send(
            "desktop", message, AttentionSettings(), [],
            lambda words, **how: run_briefly(words, env=how["env"], timeout=10),
        )  # fmt: skip


def shown_notifications() -> int:
    return int(subprocess.run(["dunstctl", "count", "displayed"], capture_output=True, text=True, check=True).stdout)


def _call(method: str) -> str:
    name, path = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
    words = ["gdbus", "call", "--session", "-d", name, "-o", path, "-m", f"{name}.{method}"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout

"""A real notification daemon, on a screen in memory, shows what the desktop channel sends."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.features.attention.screens import dunst, screen, send_to_desktop, session_bus, shown_notifications
from tests.features.attention.test_channels import MESSAGE
from tests.kit import wait_until

PROGRAMS = ("dbus-daemon", "Xvfb", "dunst", "dunstctl", "import", "gdbus")
MISSING = [one for one in PROGRAMS if not shutil.which(one)]
pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")]


@pytest.mark.parametrize("program", ["notify-send", "gdbus"])
def test_a_notification_daemon_shows_it_and_text_is_only_text(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_bus(tmp_path, monkeypatch), screen(monkeypatch) as display, dunst(tmp_path):
        before = _picture(tmp_path / "before.png", display)
        send_to_desktop(MESSAGE, program, tmp_path, monkeypatch)
        wait_until(lambda: shown_notifications() == 1, "it is shown")
        wait_until(lambda: _picture(tmp_path / "shown.png", display) != before, "it is on the screen")
        subprocess.run(["dunstctl", "close-all"], check=True)
        wait_until(lambda: bool(_closed()), "it was shown and closed")
        (told,) = _closed()
    assert (told["appname"]["data"], told["summary"]["data"]) == ("Holdfast", MESSAGE.title)
    assert "rm -rf 'b\u00fc&lt;b&gt;ild'" in told["body"]["data"]


def _picture(file: Path, display: str) -> bytes:
    subprocess.run(
        ["import", "-display", display, "-window", "root", "-depth", "8", "rgb:-"], check=True, stdout=file.open("wb")
    )
    return file.read_bytes()


def _closed() -> list[dict[str, Any]]:
    told = subprocess.run(["dunstctl", "history"], capture_output=True, text=True, check=True).stdout
    found: list[dict[str, Any]] = json.loads(told)["data"][0]
    return found

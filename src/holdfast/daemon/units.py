"""Writes service files for systemd (user) and launchd on request."""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from holdfast.core.errors import CommandRefused
from holdfast.paths import Paths

LABEL = "dev.holdfast.daemon"


def service_file(kind: str, paths: Paths) -> tuple[str, Path, str]:
    """Return (text, path, the command that activates it)."""
    # -P keeps the current folder out of sys.path: a file there cannot replace a module.
    command = [sys.executable, "-P", "-m", "holdfast.daemon", "--state", str(paths.state), "--foreground"]
    if kind == "systemd":
        unit_file = Path.home() / ".config/systemd/user/holdfast.service"
        return _systemd_unit(command), unit_file, "systemctl --user enable --now holdfast"
    if kind == "launchd":
        unit_file = Path.home() / f"Library/LaunchAgents/{LABEL}.plist"
        return _launchd_plist(command), unit_file, f"launchctl load {unit_file}"
    raise CommandRefused(f"there is no kind of service {kind!r}", fix="Use systemd or launchd.")


def _systemd_unit(command: list[str]) -> str:
    # systemd interprets backslashes, quotes and percent signs in ExecStart.
    words = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"' for word in command)
    return f"""[Unit]
Description=Holdfast keeps the state of AI coding sessions

[Service]
ExecStart={words}
Restart=on-failure
RestartSec=10

[Install]
WantedBy=default.target
"""


def _launchd_plist(command: list[str]) -> str:
    words = "\n".join(f"    <string>{escape(word)}</string>" for word in command)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}
  </array>
  <key>RunAtLoad</key>
  <true/>
</dict>
</plist>
"""

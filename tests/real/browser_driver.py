"""Playwright's MCP server with Debian's chromium, spoken to directly, and its calls told as an agent's hooks."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tests.features.uat.kit import Lab

from .programs import ProgramUnavailable, program

PREFIX = "mcp__playwright__browser_"


def find_chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise ProgramUnavailable("there is no chromium on PATH; on Debian: apt-get install chromium")
    return found


class PlaywrightServer:
    """The server as a child process; one request at a time."""

    def __init__(self, folder: Path, *words: str) -> None:
        # The browser opens a socket in its temporary folder, and the name of a socket may not be long.
        self.short = tempfile.mkdtemp(prefix="hf-")
        argv = [str(program("playwright-mcp")), "--headless", "--isolated", "--no-sandbox", *words]
        argv += ["--executable-path", find_chromium()]
        self.process = subprocess.Popen(
            argv, cwd=folder, env={**os.environ, "TMPDIR": self.short}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._ids = itertools.count(1)
        about = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self.request("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return dict(message.get("result") or message)
        raise AssertionError("the browser's server is gone")

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def kill_browser(self) -> None:
        """As it dies in life: at once, and the server is still there."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if "chrom" in child.name():
                child.kill()

    def close(self) -> None:
        self.kill_browser()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.short, ignore_errors=True)


class Tester:
    """An agent's hooks around real calls: what Holdfast hears is what the driver said."""

    def __init__(self, lab: Lab, server: PlaywrightServer, session: str) -> None:
        self.lab, self.server, self.session = lab, server, session
        self._calls = itertools.count(1)

    def prompt(self, text: str) -> None:
        self.lab.hook("UserPromptSubmit", at=_now(), session=self.session, prompt=text)

    def browser(self, name: str, **given: Any) -> str:
        tool, call, began = PREFIX + name, f"{self.session}-{next(self._calls)}", _now()
        told = {"tool_name": tool, "tool_input": given, "tool_use_id": call}
        self.lab.hook("PreToolUse", at=began, session=self.session, **told)
        answer = self.server.request("tools/call", {"name": f"browser_{name}", "arguments": given})
        parts = [part for part in answer.get("content", []) if part.get("type") == "text"]
        text = "\n".join(part["text"] for part in parts)
        if answer.get("isError"):
            self.lab.hook("PostToolUseFailure", at=_now(), session=self.session, error=text, mode="tell", **told)
        else:
            took = {"duration_ms": _now() - began}
            self.lab.hook("PostToolUse", at=_now(), session=self.session, tool_response=parts, **told, **took)
        return text

    def login(self, url: str, password: str) -> None:
        self.browser("navigate", url=f"{url}/login")
        self.fill(user="ada", password=password)
        self.browser("click", target="button", element="Sign in")

    def fill(self, **values: str) -> None:
        fields = [
            {"name": n, "type": "textbox", "target": f"input[name={n}]", "element": n, "value": v}
            for n, v in values.items()
        ]
        self.browser("fill_form", fields=fields)

    def end_turn(self) -> None:
        self.lab.hook("Stop", at=_now(), session=self.session)
        self.lab.work()

    def end_session(self) -> None:
        self.lab.hook("SessionEnd", at=_now(), session=self.session, reason="other")
        self.lab.work()

    def run(self) -> dict[str, Any]:
        self.lab.work()
        return dict(self.lab.view("show", session=self.session, calls=True))


def _now() -> int:
    return int(time.time() * 1000)

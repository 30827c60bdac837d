"""Real browser drivers with Debian's chromium: MCP servers and programs, and their calls told as an agent's hooks."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.features.uat.kit import Lab

from .programs import ProgramUnavailable, program


def find_chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise ProgramUnavailable("there is no chromium on PATH; on Debian: apt-get install chromium")
    return found


class McpServer:
    """A browser's MCP server as a child process; one request at a time."""

    def __init__(self, folder: Path, *argv: str, env: dict[str, str] | None = None) -> None:
        # The browser opens a socket in its temporary folder, and the name of a socket may not be long.
        self.short = tempfile.mkdtemp(prefix="hf-")
        self.process = subprocess.Popen(
            argv, cwd=folder, env={**os.environ, "TMPDIR": self.short, **(env or {})}, text=True,
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


def playwright_server(folder: Path, *words: str) -> McpServer:
    fixed = ("--headless", "--isolated", "--no-sandbox", "--executable-path", find_chromium())
    return McpServer(folder, str(program("playwright-mcp")), *fixed, *words)


def devtools_server(folder: Path) -> McpServer:
    fixed = ("--headless", "--isolated", "--chromeArg=--no-sandbox", "--executablePath", find_chromium())
    quiet = ("--no-usage-statistics", "--no-performance-crux")
    return McpServer(folder, str(program("chrome-devtools-mcp")), *fixed, *quiet, env={"CI": "1"})


def puppeteer_server(folder: Path) -> McpServer:
    options = {"headless": True, "executablePath": find_chromium(), "args": ["--no-sandbox"]}
    env = {"PUPPETEER_LAUNCH_OPTIONS": json.dumps(options), "ALLOW_DANGEROUS": "true"}
    return McpServer(folder, str(program("puppeteer-mcp")), env=env)


def playwright_cli_env(folder: Path) -> dict[str, str]:
    """With Debian's chromium, headless; its files in that folder."""
    options = {"executablePath": find_chromium(), "headless": True, "args": ["--no-sandbox"]}
    config = folder / "cli.json"
    config.write_text(json.dumps({"browser": {"browserName": "chromium", "isolated": True, "launchOptions": options}}))
    env = {"PLAYWRIGHT_MCP_CONFIG": str(config), "TMPDIR": str(folder), "HOME": str(folder)}
    return {**env, "PATH": f"{program('playwright-cli').parent}:{os.environ['PATH']}"}


def agent_browser_env(folder: Path) -> dict[str, str]:
    env = {"AGENT_BROWSER_EXECUTABLE_PATH": find_chromium(), "AGENT_BROWSER_ARGS": "--no-sandbox"}
    path = f"{program('agent-browser').parent}:{os.environ['PATH']}"
    return {**env, "TMPDIR": str(folder), "HOME": str(folder), "PATH": path}


def processes_of(home: Path) -> list[psutil.Process]:
    """What was started with that folder as its home: programs leave servers and browsers behind."""
    found = []
    for process in psutil.process_iter():
        try:
            found += [process] if process.environ().get("HOME") == str(home) else []
        except psutil.Error:
            continue
    return found


class Hooks:
    """An agent's hooks around the calls of one session."""

    def __init__(self, lab: Lab, session: str) -> None:
        self.lab, self.session = lab, session
        self._calls = itertools.count(1)
        self.told: list[dict[str, Any]] = []
        """Every tool call as its hooks told it, for `driver_sessions.json`."""

    def prompt(self, text: str) -> None:
        self.lab.hook("UserPromptSubmit", at=_now(), session=self.session, prompt=text)

    def around(self, tool: str, given: dict[str, Any], act: Callable[[], tuple[Any, str]]) -> str:
        """`act` answers with what the tool returned, and why it failed if it did."""
        began = _now()
        told: dict[str, Any] = {
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": f"{self.session}-{next(self._calls)}",
        }
        self.lab.hook("PreToolUse", at=began, session=self.session, **told)
        response, error = act()
        self.told.append({"tool": tool, "input": given, "response": response, "error": error})
        if error:
            self.lab.hook("PostToolUseFailure", at=_now(), session=self.session, error=error, mode="tell", **told)
        else:
            told |= {"tool_response": response, "duration_ms": _now() - began}
            self.lab.hook("PostToolUse", at=_now(), session=self.session, **told)
        return error or str(response)

    def end_turn(self) -> None:
        self.lab.hook("Stop", at=_now(), session=self.session)
        self.lab.work()

    def end_session(self) -> None:
        self.lab.hook("SessionEnd", at=_now(), session=self.session, reason="other")
        self.lab.work()

    def run(self) -> dict[str, Any]:
        self.lab.work()
        return dict(self.lab.view("show", session=self.session, calls=True))


class Tester(Hooks):
    """Real calls of an MCP server: what Holdfast hears is what the driver said."""

    __test__ = False

    def __init__(self, lab: Lab, server: McpServer, session: str, name: str = "playwright") -> None:
        super().__init__(lab, session)
        self.server, self.name = server, name

    def call(self, tool: str, **given: Any) -> str:
        def act() -> tuple[Any, str]:
            answer = self.server.request("tools/call", {"name": tool, "arguments": given})
            parts = answer.get("content", [])
            text = "\n".join(part["text"] for part in parts if part.get("type") == "text")
            if "error" in answer:
                text = f"MCP error {answer['error']['code']}: {answer['error']['message']}"
            return parts, text if answer.get("isError") or "error" in answer else ""

        return self.around(f"mcp__{self.name}__{tool}", given, act)

    def browser(self, name: str, **given: Any) -> str:
        return self.call(f"browser_{name}", **given)

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


class ShellTester(Hooks):
    """Real commands of a driver that is a program, as an agent's shell runs them."""

    def __init__(self, lab: Lab, session: str, env: dict[str, str]) -> None:
        super().__init__(lab, session)
        self.env = {**os.environ, **env}

    def shell(self, command: str) -> str:
        def act() -> tuple[Any, str]:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.lab.project, env=self.env, capture_output=True, text=True, timeout=60
            )
            out, err = done.stdout.strip(), done.stderr.strip()
            told = "\n".join(filter(None, (f"Exit code {done.returncode}", out, err)))
            return {"stdout": out, "stderr": err, "interrupted": False}, told if done.returncode else ""

        return self.around("Bash", {"command": command, "description": "drive the browser"}, act)


def _now() -> int:
    return int(time.time() * 1000)

"""A real browser (Debian's chromium, driven by Playwright) on the dashboard of the demo's day."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.kit import BIN, NATIVE_HOOK

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = ["--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
if hasattr(os, "geteuid") and os.geteuid() == 0:
    FLAGS.append("--no-sandbox")  # chromium refuses to run as root with one


@dataclass
class Demo:
    """`holdfast demo`, as a person starts it, and the folder it plays in."""

    process: subprocess.Popen[str]
    told: dict[str, Any]

    @property
    def env(self) -> dict[str, str]:
        return self.told["env"]

    @property
    def root(self) -> Path:
        return Path(self.told["root"])

    @property
    def address(self) -> str:
        parts = urlsplit(self.told["link"])
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def link(self) -> str:
        """A new one: each works once."""
        token = (self.root / "state" / "run" / "http.token").read_text().strip()
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=20)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/api/v1/link", b"{}", headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer["link"]

    def project(self, name: str) -> str:
        return str(self.root / name)

    def cli(self, *words: str, project: str = "harbor-shop") -> str:
        done = subprocess.run(
            [BIN / "holdfast", *words], env={**self.env, "NO_COLOR": "1"}, cwd=self.root / project,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str, project: str = "harbor-shop") -> Any:
        return json.loads(self.cli(*words, "--json", project=project).splitlines()[-1])["data"]

    def hook(self, event: str, session: str, project: str = "harbor-shop", mode: str = "ask", **fields: Any) -> bytes:
        """One hook of Claude Code, by the installed command."""
        cwd = self.project(project)
        common = {"session_id": session, "transcript_path": f"{self.root}/{session}.jsonl", "cwd": cwd}
        body = json.dumps({**common, "hook_event_name": event, **fields}).encode()
        env = {**self.env, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": cwd}
        done = subprocess.run(
            [NATIVE_HOOK, mode, "claude-code", event], input=body, env=env, cwd=cwd, capture_output=True, check=True,
            timeout=30,
        )  # fmt: skip
        return done.stdout

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


def start_demo() -> Demo:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", "from holdfast.cli import main; main()", "demo", "--no-open", "--json", "--still"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout and process.stderr
    line = process.stdout.readline()
    assert line, f"the demo did not start: {process.stderr.read()}"
    return Demo(process, json.loads(line)["data"])


def missing() -> str:
    """What a machine lacks for these tests; empty when it lacks nothing."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install 'holdfast[dev]'"
    if not CHROMIUM:
        return "chromium is not installed: sudo apt-get install chromium"
    return "" if NATIVE_HOOK.exists() else "the hook client is not built"

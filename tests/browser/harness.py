"""A real browser (Debian's chromium, driven by Playwright) on the dashboard of the demo's day."""

import contextlib
import fcntl
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.kit import BIN, NATIVE_HOOK, wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = ["--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
if hasattr(os, "geteuid") and os.geteuid() == 0:
    FLAGS.append("--no-sandbox")  # chromium refuses to run as root with one


@dataclass(frozen=True, eq=False)
class Demo:
    """`holdfast demo`, as a person starts it, and the folder it plays in."""

    pid: int
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

    def cli(self, *words: str, project: str = "harbor-shop", session: str = "") -> str:
        env = {
            **self.env,
            "NO_COLOR": "1",
            **({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session} if session else {}),
        }
        done = subprocess.run(
            [BIN / "holdfast", *words], env=env, cwd=self.root / project,
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
        """It removes its folder last."""
        os.kill(self.pid, signal.SIGTERM)
        wait_until(lambda: not self.root.exists(), "the demo is over", patience=60)


def start_demo() -> Demo:
    said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - the process writes into it for as long as it lives
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", "from holdfast.doors.cli import main; main()", "demo", "--no-open", "--json", "--still"],
        stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    line = process.stdout.readline()
    said.seek(0)
    assert line, f"the demo did not start: {said.read()}"
    return Demo(process.pid, json.loads(line)["data"])


@contextlib.contextmanager
def shared_demo(folder: Path) -> Iterator[Demo]:
    """One for all workers of a test run: whoever comes first starts it, whoever leaves last ends it."""
    kept = folder / "demo.json"
    with _locked(folder):
        known = json.loads(kept.read_text()) if kept.exists() else None
        demo = Demo(known["pid"], known["told"]) if known else start_demo()
        kept.write_text(json.dumps({"pid": demo.pid, "told": demo.told, "users": known["users"] + 1 if known else 1}))
    try:
        yield demo
    finally:
        with _locked(folder):
            known = json.loads(kept.read_text())
            known["users"] -= 1
            kept.write_text(json.dumps(known))
            if not known["users"]:
                kept.unlink()
                demo.end()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with open(folder / "demo.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def missing() -> str:
    """What a machine lacks for these tests; empty when it lacks nothing."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install 'holdfast-agents[dev]'"
    if not CHROMIUM:
        return "chromium is not installed: sudo apt-get install chromium"
    return "" if NATIVE_HOOK.exists() else "the hook client is not built"

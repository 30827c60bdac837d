"""Gets the real agent programs from npm, once, at versions known to work.

As a program (`make test` runs it beside the installation) it gets those that the tests use, so that no test waits for a download.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
INSTALL_SECONDS = 150


class ProgramUnavailable(Exception):
    """This machine has no such program and cannot get it; the message says why, and tests skip with it."""


@dataclass(frozen=True)
class Program:
    """An npm package, the version we test with, and the command it brings."""

    name: str
    package: str
    version: str
    binary: str
    # Packages that npm leaves out (a mirror without the program's own binary, a newer node) but the program needs.
    needs: tuple[str, ...] = ()
    only_in_campaigns: bool = False

    @property
    def folder(self) -> Path:
        """Where it lives once it is installed."""
        return CACHE / "agents" / f"{self.name}-{self.version}"

    @property
    def executable(self) -> Path:
        """The command itself."""
        return self.folder / self.command

    @property
    def command(self) -> Path:
        """The same within its folder; a bare name is one that npm links."""
        return Path("node_modules", self.binary if "/" in self.binary else f".bin/{self.binary}")


PROGRAMS = {
    program.name: program
    for program in (
        Program("claude-code", "@anthropic-ai/claude-code", "2.1.325", "claude"),
        Program("codex", "@openai/codex", "0.166.0", "codex"),
        Program("gemini-cli", "@google/gemini-cli", "0.61.0", "gemini"),
        Program("copilot", "@github/copilot", "1.0.102", "copilot"),
        Program("qwen-code", "@qwen-code/qwen-code", "0.24.4", "qwen"),
        Program("opencode-ai", "opencode-ai", "1.18.33", "opencode"),
        Program("droid", "@factory/cli-linux-x64", "0.225.2", "@factory/cli-linux-x64/bin/droid"),
        Program("kimi-code", "@moonshot-ai/kimi-code", "2.1.0", "kimi", needs=("node@22",)),
        Program("ccusage", "@ccusage/ccusage-linux-x64", "20.0.24", "@ccusage/ccusage-linux-x64/bin/ccusage"),
        Program("playwright-test", "@playwright/test", "1.65.0", "playwright", only_in_campaigns=True),
        Program("playwright-mcp", "@playwright/mcp", "0.0.83", "playwright-mcp"),
        Program("playwright-cli", "@playwright/cli", "0.1.22", "playwright-cli", only_in_campaigns=True),
        Program("chrome-devtools-mcp", "chrome-devtools-mcp", "1.11.0", "chrome-devtools-mcp"),
        Program(
            "puppeteer-mcp",
            "@modelcontextprotocol/server-puppeteer",
            "2025.5.12",
            "mcp-server-puppeteer",
            only_in_campaigns=True,
        ),
        Program("agent-browser", "agent-browser", "0.27.0", "agent-browser", only_in_campaigns=True),
        Program("mcp-conformance", "@modelcontextprotocol/conformance", "0.1.16", "conformance", needs=("node@22",)),
        Program("jest", "jest", "30.5.2", "jest"),
        Program("vitest", "vitest", "4.1.12", "vitest"),
        Program("mocha", "mocha", "12.0.3", "mocha"),
        Program("eslint", "eslint", "10.14.0", "eslint", only_in_campaigns=True),
        Program("sprintf-js", "sprintf-js", "1.0.3", "sprintf-js/package.json"),
        Program("husky", "husky", "9.1.7", "husky"),
        Program("lefthook", "lefthook", "2.2.2", "lefthook"),
        Program("axe-core", "axe-core", "4.14.0", "axe-core/axe.min.js"),
        Program("lighthouse", "lighthouse", "12.8.2", "lighthouse"),
    )
}

# One failed download is enough: without it every test would wait for the network again.
_failed: dict[str, str] = {}


def program(name: str) -> Path:
    """The path of a program's command, installing it first if need be."""
    wanted = PROGRAMS[name]
    if wanted.executable.exists():
        return wanted.executable
    if name in _failed:
        raise ProgramUnavailable(_failed[name])
    try:
        _install_once(wanted)
    except ProgramUnavailable as reason:
        _failed[name] = str(reason)
        raise
    return wanted.executable


def _install_once(wanted: Program) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise ProgramUnavailable(f"{wanted.package} {wanted.version}: there is no node and npm on PATH to get it with")
    with _alone(wanted):
        if not wanted.executable.exists():
            _install(wanted, npm)


@contextmanager
def _alone(wanted: Program) -> Iterator[None]:
    """Two test processes must not install the same program at the same time."""
    wanted.folder.parent.mkdir(parents=True, exist_ok=True)
    with wanted.folder.with_name(wanted.folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(wanted: Program, npm: str) -> None:
    """Into a folder beside the final one, so that an interrupted install is never taken for a whole one."""
    half = wanted.folder.with_name(wanted.folder.name + ".part")
    for old in (half, wanted.folder):
        shutil.rmtree(old, ignore_errors=True)
    half.mkdir(parents=True)
    try:
        _npm_install(wanted, npm, half)
        half.rename(wanted.folder)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _npm_install(wanted: Program, npm: str, folder: Path) -> None:
    (folder / "package.json").write_text(json.dumps({"private": True}))
    # In the folder, not with --prefix: that option also moves npm's global settings, such as its certificates.
    command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", f"{wanted.package}@{wanted.version}"]
    command += wanted.needs
    try:
        done = subprocess.run(
            command, cwd=folder, env=_npm_env(), capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProgramUnavailable(f"{wanted.package} {wanted.version}: npm took over {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        complaint = "; ".join(line for line in done.stderr.splitlines() if "error" in line)[:400]
        raise ProgramUnavailable(f"{wanted.package} {wanted.version}: npm could not get it: {complaint}")
    if not (folder / wanted.command).exists():
        raise ProgramUnavailable(f"{wanted.package} {wanted.version}: npm installed it, but not its command")


def _npm_env() -> dict[str, str]:
    """This machine's own npm settings, with a cache that needs no HOME and a short patience."""
    ours = {
        "npm_config_cache": str(CACHE / "npm"),
        "npm_config_update_notifier": "false",
        "npm_config_fetch_retries": "1",
        "npm_config_fetch_retry_mintimeout": "1000",
        "npm_config_fetch_retry_maxtimeout": "5000",
        "npm_config_engine_strict": "false",
        # Lefthook, being installed, would put hooks into the repository that this folder lies in.
        "GIT_CEILING_DIRECTORIES": str(CACHE),
        "PUPPETEER_SKIP_DOWNLOAD": "1",  # the browser is the machine's own
    }
    return {**os.environ, **ours}


def python_sources(name: str, version: str, *needs: str) -> Path:
    """A folder with the unpacked source package (`src`) of a Python project and, in `site`, what it needs to run."""
    folder = CACHE / "python" / f"{name}-{version}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _get_python_sources(folder, f"{name}=={version}", needs)
        _repair_scripts(folder / "site" / "bin")
    return folder


def _repair_scripts(folder: Path) -> None:
    """They name the Python that installed them, which is gone with its checkout."""
    for script in folder.iterdir() if folder.is_dir() else ():
        first, _, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and not Path(os.fsdecode(first[2:].strip())).exists():
            script.write_bytes(b"#!" + os.fsencode(sys.executable) + b"\n" + rest)


def python_packages(name: str, version: str) -> Path:
    """A folder with a Python package and what it needs, for a PYTHONPATH."""
    folder = CACHE / "python" / f"{name}-{version}-packages"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(half, ignore_errors=True)
            _pip("install", "--target", str(half), f"{name}=={version}")
            half.rename(folder)
    return folder


def _get_python_sources(folder: Path, wanted: str, needs: tuple[str, ...]) -> None:
    half, name = folder.with_name(f"{folder.name}.part"), wanted.partition("==")[0]
    shutil.rmtree(half, ignore_errors=True)
    _pip("download", "--no-deps", "--no-binary", name, "-d", str(half / "sdist"), wanted)
    _pip("install", "--target", str(half / "site"), *needs)
    (archive,) = (half / "sdist").glob("*.tar.gz")
    # By its program: Python's own refuses paths that lead out only since 3.11.4, and Debian 12 has 3.11.2.
    subprocess.run(["tar", "-xf", archive, "-C", half], check=True)
    (half / archive.name.removesuffix(".tar.gz")).rename(half / "src")
    half.rename(folder)


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", words[0], "-q", "--disable-pip-version-check", *words[1:]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise ProgramUnavailable(f"{words[-1]}: pip took over {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        raise ProgramUnavailable(f"{words[-1]}: pip could not get it: {done.stderr.strip()[-300:]}")


def main() -> None:
    for wanted in PROGRAMS.values():
        if wanted.only_in_campaigns:
            continue
        try:
            program(wanted.name)
        except ProgramUnavailable as reason:
            # Without npm or a network the next one would only wait as long: the tests skip it and say why.
            print(f"not available: {reason}")
            return


if __name__ == "__main__":
    main()

"""Fixtures for tests that run real agent programs offline."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from tests.kit import World

from .agent import Agent
from .claude import ClaudeCode
from .codex import Codex
from .copilot import Copilot
from .gemini import Gemini
from .model_server import ModelServer
from .opencode import OpenCode
from .programs import ProgramUnavailable, program
from .qwen import Qwen
from .recorder import Recorder
from .tui import TmuxMissing

SomeAgent = TypeVar("SomeAgent", bound=Agent)
MISSING = (ProgramUnavailable, TmuxMissing)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """A program that cannot be had skips the test and says why."""
    try:
        return (yield)
    except MISSING as reason:
        pytest.skip(str(reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """So does a missing tmux, which shows only when a test opens a terminal."""
    try:
        return (yield)
    except MISSING as reason:
        pytest.skip(str(reason))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A scripted model on loopback."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def scratch_repo(tmp_path: Path) -> Path:
    """A git repository with one commit."""
    repo = tmp_path / "project"
    repo.mkdir()
    (repo / "README.md").write_text("scratch\n")
    who = ("-c", "user.name=Scratch", "-c", "user.email=scratch@localhost")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return repo


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """A hook that writes down what it gets."""
    return Recorder(tmp_path / "recorded")


@dataclass(frozen=True)
class Place:
    """Where an agent runs and whom it talks to."""

    project: Path
    home: Path
    model: ModelServer

    def running(self, kind: type[SomeAgent], name: str) -> Iterator[SomeAgent]:
        """The agent for the time of a test."""
        agent = kind(program(name), self.project, self.home, self.model)
        try:
            yield agent
        finally:
            agent.close()


@pytest.fixture
def place(scratch_repo: Path, tmp_path: Path, model: ModelServer) -> Place:
    """The scratch repository, an empty home, the scripted model."""
    return Place(scratch_repo, tmp_path / "home", model)


@pytest.fixture
def claude(place: Place) -> Iterator[ClaudeCode]:
    """Claude Code in the scratch repository."""
    yield from place.running(ClaudeCode, "claude-code")


@pytest.fixture
def codex(place: Place) -> Iterator[Codex]:
    """Codex in the scratch repository."""
    yield from place.running(Codex, "codex")


@pytest.fixture
def gemini(place: Place) -> Iterator[Gemini]:
    """Gemini CLI in the scratch repository."""
    yield from place.running(Gemini, "gemini-cli")


@pytest.fixture
def copilot(place: Place) -> Iterator[Copilot]:
    """Copilot CLI in the scratch repository."""
    yield from place.running(Copilot, "copilot")


@pytest.fixture
def qwen(place: Place) -> Iterator[Qwen]:
    """Qwen Code in the scratch repository."""
    yield from place.running(Qwen, "qwen-code")


@pytest.fixture
def opencode(place: Place) -> Iterator[OpenCode]:
    """opencode in the scratch repository."""
    yield from place.running(OpenCode, "opencode-ai")


@pytest.fixture
def held(claude: ClaudeCode, tmp_path: Path) -> Iterator[World]:
    """A Holdfast whose hooks are in Claude Code's own settings, by `holdfast install`; its commands are on the PATH."""
    world = World(tmp_path / "holdfast")
    world.home, world.project = claude.home, claude.project
    world.env |= {"HOME": str(claude.home)}
    names = ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")
    claude.env |= {name: world.env[name] for name in names}
    world.cli("install", "--agent", "claude-code")
    yield world
    world.close()

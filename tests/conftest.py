"""What every test may use. HOME is a temporary folder in all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.kit import World

# The same examples every time: a change is judged by what it changed. HOLDFAST_EXPLORE=1 looks for new ones.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.register_profile("exploring", deadline=None)
hypothesis.settings.load_profile("exploring" if os.environ.get("HOLDFAST_EXPLORE") else "steady")


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("HOLDFAST_STATE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOLDFAST_CONFIG", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A Holdfast of its own; its daemon is gone afterwards."""
    made = World(tmp_path)
    yield made
    made.close()

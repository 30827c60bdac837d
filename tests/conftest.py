"""What every test may use. HOME is a temporary folder in all of them."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.kit import World

# The same examples every time: a change is judged by what it changed. HOLDFAST_EXPLORE=1 looks for new ones.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.register_profile("exploring", deadline=None)
hypothesis.settings.load_profile("exploring" if os.environ.get("HOLDFAST_EXPLORE") else "steady")


LONG = ("tests/real/", "tests/browser/", "tests/faults/", "tests/team/", "tests/stories/", "tests/docs/")
"""Folders whose tests start programs, and wait for them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each worker begins with its share of the long tests: at the end nobody waits for the last of them. (xdist gives
    every worker one run of the list, in its order.)"""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # In a browser's module one page stands for all its tests, so that they stay together.
    groups = itertools.groupby(
        (item for item in items if item.nodeid.startswith(LONG)),
        key=lambda item: item.nodeid.partition("::")[0] if "browser" in item.nodeid else item.nodeid,
    )
    long_tests = [list(group) for _, group in groups]
    short_tests = [item for item in items if not item.nodeid.startswith(LONG)]
    shares = [list(itertools.chain(*long_tests[n::workers])) for n in range(workers)]
    ordered: list[pytest.Item] = []
    for n, share in enumerate(shares):
        # As `xdist` cuts it: what is left, divided by the workers that are left.
        room = max(0, (len(items) - len(ordered)) // (workers - n) - len(share))
        ordered += [*share, *short_tests[:room]]
        del short_tests[:room]
    items[:] = [*ordered, *short_tests]


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One for all tests of a worker: Playwright cannot be begun a second time beside it."""
    from playwright.sync_api import sync_playwright

    from tests.browser.harness import CHROMIUM, FLAGS

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()

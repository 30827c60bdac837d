"""Fixtures and tiers of all tests. HOME is a temporary folder in every test."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from holdfast.agents import AGENTS
from holdfast.core.agent import use_agents
from tests.kit import World

# The same examples every time, so that a failure comes from the change. HOLDFAST_EXPLORE=1 looks for new ones.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.register_profile("exploring", deadline=None)
hypothesis.settings.load_profile("exploring" if os.environ.get("HOLDFAST_EXPLORE") else "steady")


FULL = (
    "tests/attacks/",
    "tests/browser/",
    "tests/daemon/test_body_encryption.py",
    "tests/daemon/test_erase.py",
    "tests/daemon/test_health.py",
    "tests/daemon/test_restores.py",
    "tests/docs/test_commands.py",
    "tests/docs/test_readme.py",
    "tests/doors/web/",
    "tests/faults/test_campaign.py",
    "tests/features/attention/test_answers.py",
    "tests/features/workspace/test_undo.py",
    "tests/real/",
    "tests/stories/",
    "tests/team/test_failover.py",
    "tests/team/test_story.py",
)
"""Tests that start many programs. `make test` leaves them out, except those marked `quick`; `make verify` runs them all."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FULL) and not item.get_closest_marker("quick"):
            item.add_marker("full")
    _spread_long_tests(items)


def _spread_long_tests(items: list[pytest.Item]) -> None:
    """Give every worker its share of the long tests first, so that none is left waiting for the last of them.

    xdist hands each worker one contiguous run of the list."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # Browser tests of one module share a page and stay together.
    groups = itertools.groupby(
        (item for item in items if item.nodeid.startswith(FULL)),
        key=lambda item: item.nodeid.partition("::")[0] if "browser" in item.nodeid else item.nodeid,
    )
    long_tests = [list(group) for _, group in groups]
    short_tests = [item for item in items if not item.nodeid.startswith(FULL)]
    shares = [list(itertools.chain(*long_tests[n::workers])) for n in range(workers)]
    ordered: list[pytest.Item] = []
    for n, share in enumerate(shares):
        room = max(0, (len(items) - len(ordered)) // (workers - n) - len(share))
        ordered += [*share, *short_tests[:room]]
        del short_tests[:room]
    items[:] = [*ordered, *short_tests]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the tests that passed only on a rerun."""
    rerun = {report.nodeid for report in terminalreporter.stats.get("rerun", ())}
    passed = {report.nodeid for report in terminalreporter.stats.get("passed", ())}
    if flaky := sorted(rerun & passed):
        terminalreporter.section("passed only on a rerun")
        for name in flaky:
            terminalreporter.write_line(name)


@pytest.fixture(autouse=True)
def known_agents() -> None:
    """Features find agents by name, whatever agents the test before used."""
    use_agents(AGENTS)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders for homes. pytest's own numbering lists all earlier ones for each."""
    parent = tmp_path_factory.mktemp("homes")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def nobodys_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("HOLDFAST_STATE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOLDFAST_CONFIG", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A Holdfast installation of its own; its daemon is stopped afterwards."""
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One per worker: Playwright cannot be started twice in one process."""
    from playwright.sync_api import sync_playwright

    from tests.browser.harness import CHROMIUM, FLAGS

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()

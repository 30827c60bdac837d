"""The demo is played once, a browser is started once; each test gets a page that is logged in."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.harness import Demo, missing, shared_demo

WIDE = {"width": 1280, "height": 800}
LIMIT_MS = 15_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing()
    for item in items:
        if why and "/browser/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    base = tmp_path_factory.getbasetemp()
    with shared_demo(base if alone else base.parent) as played:
        yield played


@pytest.fixture(scope="session")
def key(browser: Any, demo: Demo) -> Any:
    """The cookie, as the one-time link gives it."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(demo.link)
    page.wait_for_selector("main")
    kept = context.storage_state()
    context.close()
    return kept


@pytest.fixture
def open_page(browser: Any, demo: Demo, key: Any) -> Iterator[Callable[..., Any]]:
    """`open_page("/gates", color_scheme="dark", …)`. A test in which the page complains fails."""
    contexts, complaints = [], []

    def opened(path: str = "/", **how: Any) -> Any:
        context = browser.new_context(storage_state=key, base_url=demo.address, **{"viewport": WIDE, **how})
        context.set_default_timeout(LIMIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", lambda got: complaints.append(f"{got.status} {got.url}") if got.status >= 500 else None)
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, complaints


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page("/")

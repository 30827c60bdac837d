"""Run with: SHOP=http://127.0.0.1:8765 pytest   then: holdfast uat import results.xml"""

import os

import pytest


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    """Another chromium than Playwright's own, where CHROMIUM names one."""
    own = {"executable_path": os.environ["CHROMIUM"], "args": ["--no-sandbox"]} if "CHROMIUM" in os.environ else {}
    return {**browser_type_launch_args, **own}


@pytest.fixture(scope="session")
def base_url() -> str:
    return os.environ.get("SHOP", "http://127.0.0.1:8765")

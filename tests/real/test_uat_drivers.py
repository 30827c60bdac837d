"""The sample application through each real driver: what it answers is understood, and what is typed is not kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.ports import EventQuery
from tests.features.uat.kit import Lab

from .browser_driver import (
    Hooks,
    McpServer,
    ShellTester,
    Tester,
    agent_browser_env,
    devtools_server,
    find_chromium,
    playwright_cli_env,
    processes_of,
    puppeteer_server,
)
from .programs import python_packages
from .test_uat_shop import EXAMPLE, make_lab, shop  # noqa: F401 - a fixture

pytestmark = pytest.mark.real
# What these drivers said is replayed by tests/features/uat/test_drivers.py; a run of each takes a minute.
every_driver = pytest.mark.long
RIGHT, WRONG = "lovelace", "babbage"
SEEN = "({title: document.title, text: document.body.innerText})"
PROMPT = "Please test the login scenario"


@pytest.fixture(scope="module")
def lab(shop: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:  # noqa: F811
    made = make_lab(shop, tmp_path_factory.mktemp("drivers"))
    yield made
    made.close()


def played(hooks: Hooks, story: Callable[[], object]) -> dict[str, Any]:
    hooks.prompt(PROMPT)
    story()
    hooks.end_turn()
    hooks.end_session()
    return hooks.run()


def assert_passed(run: dict[str, Any]) -> None:
    assert [step["verdict"] for step in run["plan"]] == ["passed"] * 4, run["plan"]
    assert (run["outcome"], run["screenshots"]) == ("passed", 1)


def assert_failed(run: dict[str, Any], lab: Lab) -> None:
    assert [step["verdict"] for step in run["plan"]] == ["passed", "passed", "passed", "failed"], run["plan"]
    assert run["outcome"] == "failed"
    assert "Wrong password" in run["plan"][3]["attempts"][-1]["received"]
    reader = lab.app.store.reader()
    kept = [reader.event(event.seq) or event for event in reader.events(EventQuery(limit=5_000))]
    log = "".join(f"{event.data}{event.body!r}" for event in kept)
    assert "fill" in log
    assert RIGHT not in log
    assert WRONG not in log


def devtools_login(tester: Tester, url: str, password: str) -> None:
    open_page = re.search(r"(\d+): .*\[selected\]", tester.call("list_pages"))
    if open_page:
        tester.call("navigate_page", type="url", url=f"{url}/login", pageId=int(open_page[1]))
    else:
        open_page = re.search(r"(\d+): .*\[selected\]", tester.call("new_page", url=f"{url}/login"))
    assert open_page
    page = {"pageId": int(open_page[1])}
    shown = tester.call("take_snapshot", **page)
    uids = {name: uid for uid, name in re.findall(r'uid=(\S+) (?:textbox|button) "(.+?)"', shown)}
    values = [{"uid": uids["User"], "value": "ada"}, {"uid": uids["Password"], "value": password}]
    tester.call("fill_form", elements=values, **page)
    tester.call("click", uid=uids["Sign in"], **page)
    tester.call("take_snapshot", **page)
    tester.call("list_console_messages", **page)
    tester.call("list_network_requests", **page)
    tester.call("take_screenshot", **page)


def test_chrome_devtools_mcp(lab: Lab, shop: Any) -> None:  # noqa: F811
    with serving(devtools_server(lab.project)) as server:
        bad = Tester(lab, server, "devtools-bad", "chrome-devtools")
        run = played(bad, lambda: devtools_login(bad, shop.url, WRONG))
        gone = Tester(lab, server, "devtools-gone", "chrome-devtools")
        crashed = played(gone, lambda: devtools_crash(gone, shop.url))
    assert_failed(run, lab)
    told = [problem["message"] for problem in run["problems"]]
    assert any("login failed" in one for one in told), "the page's console"
    assert any(one.startswith("POST ") and "401" in one for one in told), "the failed request"
    assert [step["flaky"] for step in crashed["plan"]] == [False, True, False, False], crashed["plan"]
    assert crashed["outcome"] == "passed"


def devtools_crash(tester: Tester, url: str) -> None:
    tester.call("list_pages")
    tester.call("navigate_page", type="url", url=f"{url}/login", pageId=1)
    tester.server.kill_browser()
    tester.call("fill", uid="1_19", value="ada", pageId=1)
    devtools_login(tester, url, RIGHT)


def puppeteer_login(tester: Tester, url: str, password: str) -> None:
    tester.call("puppeteer_navigate", url=f"{url}/login")
    tester.call("puppeteer_fill", selector="input[name=user]", value="ada")
    tester.call("puppeteer_fill", selector="input[name=password]", value=password)
    tester.call("puppeteer_click", selector="button")
    # It does not wait for the page that the click leads to; an agent asks again.
    while "destroyed" in tester.call("puppeteer_evaluate", script=SEEN):
        pass
    tester.call("puppeteer_screenshot", name="done")


@every_driver
def test_puppeteer(lab: Lab, shop: Any) -> None:  # noqa: F811
    with serving(puppeteer_server(lab.project)) as server:
        good = Tester(lab, server, "puppeteer-good", "puppeteer")
        assert_passed(played(good, lambda: puppeteer_login(good, shop.url, RIGHT)))
        bad = Tester(lab, server, "puppeteer-bad", "puppeteer")
        assert_failed(played(bad, lambda: puppeteer_login(bad, shop.url, WRONG)), lab)


def cli_login(tester: ShellTester, url: str, password: str) -> None:
    tester.shell(f"playwright-cli open {url}/login")
    fill = f"playwright-cli fill 'input[name=user]' ada && playwright-cli fill 'input[name=password]' '{password}'"
    tester.shell(f"{fill} && playwright-cli click button")
    tester.shell("playwright-cli snapshot\nplaywright-cli screenshot --filename=done.png")
    tester.shell("playwright-cli close")


@every_driver
def test_playwright_cli(lab: Lab, shop: Any, short_folder: Path) -> None:  # noqa: F811
    env = playwright_cli_env(short_folder)
    bad = ShellTester(lab, "cli-bad", env)
    assert_failed(played(bad, lambda: cli_login(bad, shop.url, WRONG)), lab)


def agent_browser_login(tester: ShellTester, url: str, password: str) -> None:
    tester.shell(f"agent-browser open {url}/login && agent-browser snapshot -i")
    tester.shell(f"agent-browser fill 'input[name=user]' ada && agent-browser find label Password fill {password}")
    tester.shell("agent-browser find role button click --name 'Sign in' && agent-browser get title")
    tester.shell("agent-browser snapshot")
    tester.shell("agent-browser screenshot done.png")


@every_driver
def test_agent_browser(lab: Lab, shop: Any, short_folder: Path) -> None:  # noqa: F811
    env = agent_browser_env(short_folder)
    good = ShellTester(lab, "agent-browser-good", env)
    assert_passed(played(good, lambda: agent_browser_login(good, shop.url, RIGHT)))
    bad = ShellTester(lab, "agent-browser-bad", env)
    run = played(bad, lambda: agent_browser_login(bad, shop.url, WRONG))
    broken = ShellTester(lab, "agent-browser-broken", env)
    broke = played(broken, lambda: broken_line(broken, shop.url))
    assert_failed(run, lab)
    assert [step["verdict"] for step in broke["plan"]] == ["passed", "passed", "failed", "not_reached"]
    assert "Unknown ref: e99" in broke["plan"][2]["error"]


def broken_line(tester: ShellTester, url: str) -> None:
    """The third command fails, the fourth is never made."""
    fill = "agent-browser fill 'input[name=user]' ada"
    tester.shell(f"agent-browser open {url}/login && {fill} && agent-browser click @e99 && agent-browser snapshot")
    tester.shell("agent-browser close")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Programs open sockets in it, and the name of a socket may not be long. What still runs in it is ended."""
    with tempfile.TemporaryDirectory(prefix="hf-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
        for process in processes_of(Path(folder)):
            process.kill()


@contextmanager
def serving(server: McpServer) -> Iterator[McpServer]:
    try:
        yield server
    finally:
        server.close()


@every_driver
def test_pytest_playwright(lab: Lab, shop: Any, tmp_path: Path) -> None:  # noqa: F811
    """Its own run of the example, and what comes in of it: the report with the pictures, and the trace alone."""
    packages = python_packages("pytest-playwright", "0.10.0")
    suite = Path(shutil.copytree(EXAMPLE / "pytest", lab.project / "pytest"))
    env = {**os.environ, "PYTHONPATH": str(packages), "SHOP": shop.url, "CHROMIUM": find_chromium()}
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=suite, env=env, capture_output=True, text=True, timeout=150, check=False)
    assert "1 failed, 3 passed, 1 skipped" in done.stdout, done.stdout[-2_000:]
    (run,) = lab.command("import", path=str(suite / "results.xml"))["runs"]
    lab.work()
    assert run["verdicts"] == {"passed": 3, "failed": 1, "skipped": 1}
    assert len(lab.view("show", run=run["id"])["shots"]) == 1
    (trace,) = suite.rglob("trace.zip")
    (traced,) = lab.command("import", path=str(trace))["runs"]
    lab.work()
    shown = lab.view("show", run=traced["id"])
    assert traced["verdicts"] == {"passed": 4, "failed": 1}
    assert shown["plan"][4]["attempts"][0]["received"] == "Welcome Ada"
    assert len(shown["shots"]) == 5
    assert RIGHT not in str(shown)

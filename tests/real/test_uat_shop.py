"""The sample application tested through Playwright's MCP server and real chromium: every way a run can go."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.uat.kit import Lab

from .browser_driver import McpServer, Tester, find_chromium, playwright_server
from .programs import ProgramUnavailable, program

pytestmark = pytest.mark.real
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "uat-shop"
Story = Callable[[Tester, str], None]


def load_shop() -> Any:
    spec = importlib.util.spec_from_file_location("uat_shop", EXAMPLE / "shop.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shop() -> Iterator[Any]:
    with load_shop().running() as running:
        yield running


def make_lab(shop: Any, folder: Path) -> Lab:
    """A Holdfast that knows the example's scenarios, at this shop."""
    made = Lab(folder)
    scenarios = made.project / "uat" / "scenarios"
    shutil.copytree(EXAMPLE / "uat" / "scenarios", scenarios)
    for file in scenarios.glob("*.yaml"):
        file.write_text(file.read_text().replace("http://127.0.0.1:8765", shop.url))
    made.hook("SessionStart", source="startup", mode="start")
    made.work()
    return made


@pytest.fixture(scope="module")
def lab(shop: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = make_lab(shop, tmp_path_factory.mktemp("shop"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(lab: Lab) -> Iterator[McpServer]:
    try:
        made = playwright_server(lab.project, "--timeout-navigation", "2000")
    except ProgramUnavailable as reason:
        pytest.skip(str(reason))
    yield made
    made.close()


@pytest.fixture
def play(lab: Lab, server: McpServer, shop: Any) -> Callable[[str, str, Story], dict[str, Any]]:
    def played(session: str, prompt: str, story: Story) -> dict[str, Any]:
        tester = Tester(lab, server, session)
        tester.prompt(prompt)
        story(tester, shop.url)
        tester.end_turn()
        tester.end_session()
        return tester.run()

    return played


Play = Callable[[str, str, Story], dict[str, Any]]


def verdicts(run: dict[str, Any]) -> list[str]:
    return [step["verdict"] for step in run["plan"]]


def attempts(run: dict[str, Any]) -> list[list[tuple[str, str]]]:
    return [[(a["status"], a["reason"]) for a in step["attempts"]] for step in run["plan"]]


def test_a_login_that_passes(play: Play, lab: Lab) -> None:
    def story(tester: Tester, url: str) -> None:
        tester.login(url, "lovelace")
        tester.browser("snapshot")
        tester.browser("take_screenshot")

    run = play("passes", "Please test the login scenario", story)
    assert (run["outcome"], verdicts(run)) == ("passed", ["passed"] * 4)
    assert run["screenshots"] == 1
    assert "lovelace" not in str(run)


def test_a_login_that_fails_shows_expected_and_received(play: Play) -> None:
    def story(tester: Tester, url: str) -> None:
        tester.browser("navigate", url=f"{url}/login")
        tester.browser("take_screenshot")
        tester.fill(user="ada", password="babbage")
        tester.browser("click", target="button", element="Sign in")
        tester.browser("snapshot")
        tester.browser("take_screenshot")

    run = play("fails", "Please test the login scenario", story)
    assert (run["outcome"], verdicts(run)) == ("failed", ["passed", "passed", "passed", "failed"])
    assert any("login failed" in p["message"] for p in run["problems"]), "the page's console error"
    assert "Wrong password" in run["plan"][3]["attempts"][-1]["received"]


def test_after_a_crash_the_steps_are_done_again(play: Play, server: McpServer) -> None:
    def story(tester: Tester, url: str) -> None:
        tester.browser("navigate", url=f"{url}/login")
        tester.fill(user="ada", password="lovelace")
        server.kill_browser()
        tester.browser("click", target="button", element="Sign in")
        tester.login(url, "lovelace")
        tester.browser("snapshot")
        tester.browser("take_screenshot")

    run = play("crashes", "Please test the login scenario", story)
    assert verdicts(run) == ["passed"] * 4
    assert run["outcome"] == "passed"
    # Which of the two the driver says depends on whether it has noticed the end of its browser before the next call.
    (first, again), (failed, passed) = attempts(run)[0], attempts(run)[2]
    assert (first, failed) == (("completed", ""), ("failed", ""))
    assert {again, passed} <= {("completed", "crash"), ("completed", "back")}
    assert [step["flaky"] for step in run["plan"]] == [False, False, True, False]


def test_a_flaky_widget_passes_the_second_time(play: Play) -> None:
    def story(tester: Tester, url: str) -> None:
        for _ in range(2):
            tester.browser("navigate", url=f"{url}/stock")
            tester.browser("snapshot")
            tester.browser("take_screenshot")

    run = play("flaky", "Please test the stock widget scenario", story)
    assert (run["outcome"], run["flaky"]) == ("passed", 1)
    assert attempts(run)[1] == [("failed", ""), ("completed", "back")]
    assert any("503" in p["message"] for p in run["problems"])


def test_a_page_that_takes_too_long(play: Play) -> None:
    def story(tester: Tester, url: str) -> None:
        tester.browser("navigate", url=f"{url}/slow?seconds=4")
        tester.browser("take_screenshot")

    run = play("slow", "Please test the slow page scenario", story)
    assert (run["outcome"], verdicts(run)) == ("failed", ["failed", "not_reached"])
    assert "Timeout 2000ms exceeded" in run["plan"][0]["attempts"][0]["error"]


def test_a_retry_after_a_failed_call(play: Play, lab: Lab) -> None:
    (lab.project / "receipt.txt").write_text("paid")

    def story(tester: Tester, url: str) -> None:
        tester.browser("navigate", url=f"{url}/upload")
        tester.browser("click", target="input[type=file]", element="Picture")
        tester.browser("file_upload", paths=[str(lab.project / "missing.txt")])
        tester.browser("file_upload", paths=[str(lab.project / "receipt.txt")])
        tester.browser("click", target="button", element="Upload")

    run = play("upload", "Please test the upload scenario", story)
    assert (run["outcome"], verdicts(run)) == ("passed", ["passed"] * 4)


def test_a_form_and_a_table(play: Play) -> None:
    def story(tester: Tester, url: str) -> None:
        tester.browser("navigate", url=f"{url}/checkout")
        tester.fill(name="Grace", city="London")
        tester.browser("select_option", target="select", element="Shipping", values=["express"])
        tester.browser("click", target="button", element="Order")
        tester.browser("navigate", url=f"{url}/orders")

    run = play("form", "Please test the checkout scenario", story)
    assert (run["outcome"], verdicts(run)) == ("passed", ["passed"] * 5)
    assert "Grace" in str(run["tool_calls"][1]["parameters"]), "the step says that its values are public"


AXE = """async (page) => {
  await page.addScriptTag({path: '%s'});
  %s
  return await page.evaluate(async () => {
    const found = await axe.run();
    return {violations: found.violations.map(one => ({id: one.id, impact: one.impact, nodes: one.nodes.length}))};
  });
}"""
BREAK_LABEL = "await page.evaluate(() => document.querySelector('input[name=city]').parentElement.replaceWith("
BREAK_LABEL += "document.querySelector('input[name=city]')));"


def test_what_axe_finds_is_judged(play: Play) -> None:
    """The page as it is, and with a field that lost its label."""
    axe = program("axe-core")

    def story(broken: str) -> Story:
        def played(tester: Tester, url: str) -> None:
            tester.browser("navigate", url=f"{url}/checkout")
            tester.browser("run_code_unsafe", code=AXE % (axe, broken))

        return played

    good = play("axe", "Please test the accessible checkout scenario", story(""))
    assert (good["outcome"], verdicts(good)) == ("passed", ["passed", "passed"])
    bad = play("axe-bad", "Please test the accessible checkout scenario", story(BREAK_LABEL))
    (judged,) = bad["judged"]
    assert (bad["outcome"], judged["result"]) == ("failed", "failed")
    assert judged["actual"] == "1 violations: label (critical)"


def test_a_session_that_ends_in_the_middle(play: Play, lab: Lab) -> None:
    def story(tester: Tester, url: str) -> None:
        tester.browser("navigate", url=f"{url}/login")
        told = {"tool_name": "mcp__playwright__browser_click", "tool_input": {"target": "button"}, "tool_use_id": "cut"}
        tester.fill(user="ada", password="lovelace")
        lab.hook("PreToolUse", at=lab.now, session="cut", **told)

    run = play("cut", "Please test the login scenario", story)
    assert (run["outcome"], verdicts(run)) == ("interrupted", ["passed", "passed", "interrupted", "not_reached"])
    assert run["tool_calls"][-1]["success"] is False


def run_playwright(shop: Any, folder: Path) -> dict[str, Any]:
    """The twenty tests of the example, by Playwright's own runner; its report."""
    runner = program("playwright-test")
    shutil.copytree(EXAMPLE / "playwright", folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(runner.parents[1])
    env = {**os.environ, "SHOP": shop.url, "CHROMIUM": find_chromium(), "CI": "1"}
    subprocess.run([runner, "test"], cwd=folder, env=env, capture_output=True, timeout=240, check=False)
    return dict(json.loads((folder / "results.json").read_text()))


@pytest.mark.long  # A report of such a run is imported by tests/features/uat/test_runner_reports.py.
def test_a_suite_of_playwright_comes_in_with_its_own_numbers(shop: Any, lab: Lab) -> None:
    try:
        own = run_playwright(shop, lab.project / "suite")["stats"]
    except ProgramUnavailable as reason:
        pytest.skip(str(reason))
    assert (own["expected"], own["unexpected"], own["flaky"], own["skipped"]) == (17, 2, 1, 0)
    (run,) = lab.command("import", path=str(lab.project / "suite" / "results.json"), scenario="shop suite")["runs"]
    lab.work()
    assert run["verdicts"] == {"passed": own["expected"] + own["flaky"], "failed": own["unexpected"]}
    assert (run["flaky"], run["outcome"]) == (own["flaky"], "failed")
    shown = lab.view("show", run=run["id"])
    assert [len(step["attempts"]) for step in shown["plan"]].count(2) == 3
    assert len(shown["shots"]) == 5, "a picture of each attempt that failed"
    piano = next(step for step in shown["plan"] if "piano" in step["description"])
    assert piano["attempts"][-1]["expected"] == '"Piano"'
    assert "trace.zip" in lab.view("report", run=run["id"])
    (other,) = lab.command("import", path=str(lab.project / "suite" / "results.xml"))["runs"]
    assert other["verdicts"]["failed"] == 2

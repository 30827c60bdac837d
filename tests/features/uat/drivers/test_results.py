"""A step's verdict comes from its assertions and calls, and restarts are attempts of a step."""

from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from holdfast.core.event import Event, own_event
from holdfast.core.kinds.agent_events import ToolFinished
from holdfast.features.checks.judge import judge_result
from holdfast.features.checks.observe import ShellResult
from holdfast.features.uat.drivers import NOT_A_DRIVER
from holdfast.features.uat.drivers.results import result_of
from holdfast.features.uat.report import render_report
from tests.features.uat.kit import CLICK, FILL, LOGIN, NAVIGATE, SESSION, SHOT, SNAPSHOT, URL, Lab
from tests.features.uat.policy.test_derive import PAGE, begin

WRONG = "### Page\n- Page URL: https://x/login\n### Snapshot\nWrong password"
CLOSED = "Target page, context or browser has been closed"


def verdicts(lab: Lab) -> list[str]:
    return [step["verdict"] for step in lab.view("show")["plan"]]


def finish(lab: Lab, page: str = PAGE) -> None:
    for tool, said in ((FILL, "ok"), (CLICK, "ok"), (SNAPSHOT, page), (SHOT, "none")):
        lab.tool(tool, said)


def test_a_step_whose_assertion_failed_has_failed(lab: Lab) -> None:
    begin(lab)
    finish(lab, WRONG)
    assert verdicts(lab) == ["passed", "passed", "passed", "failed", "passed"]
    assert lab.run["outcome"] == "failed"
    attempt = lab.view("show")["plan"][3]["attempts"][-1]
    assert attempt["expected"] == "contains 'Welcome'"
    assert "Wrong password" in attempt["received"]


def test_an_assertion_may_come_true_while_the_step_goes_on(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL)
    lab.tool(CLICK)
    lab.tool(SNAPSHOT, WRONG)
    assert lab.run["steps"][3]["status"] == "in_progress"
    lab.tool(SNAPSHOT, PAGE)
    assert (lab.run["steps"][3]["status"], lab.run["steps"][3]["tries"]) == ("completed", 1)


def test_after_a_crash_the_second_login_is_a_second_attempt_of_each_step(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL)
    lab.failed(CLICK, CLOSED, selector="#go")
    assert verdicts(lab)[2] == "failed"
    lab.tool(NAVIGATE, {"success": True, "url": URL}, url=URL)
    assert lab.run["current"] == 1
    finish(lab)
    plan = lab.view("show")["plan"]
    assert [len(step["attempts"]) for step in plan] == [2, 2, 2, 1, 1]
    assert [step["attempts"][-1]["reason"] for step in plan[:3]] == ["crash"] * 3
    assert [step["flaky"] for step in plan] == [False, False, True, False, False]
    assert (lab.run["outcome"], lab.run["flaky"]) == ("passed", True)
    calls = lab.document["execution"]["toolCalls"]
    assert [c["stepNumber"] for c in calls] == [1, 2, 3, 1, 2, 3, 4, 5]
    assert lab.replayed() == []


def test_opening_an_earlier_page_again_is_going_back(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL)
    lab.tool(CLICK)
    lab.tool(SNAPSHOT, WRONG)
    lab.tool(NAVIGATE, {"success": True, "url": URL}, url=URL)
    assert lab.run["current"] == 1
    assert lab.run["steps"][3]["status"] == "failed"
    finish(lab)
    plan = lab.view("show")["plan"]
    assert [step["attempts"][-1]["reason"] for step in plan[:4]] == ["back"] * 4
    assert (plan[3]["verdict"], plan[3]["flaky"], lab.run["outcome"]) == ("passed", True, "passed")


def test_a_retry_after_a_failed_call_is_an_attempt(lab: Lab) -> None:
    begin(lab)
    lab.failed(FILL, "no such field", selector="#x")
    lab.tool(FILL, selector="#y")
    step = lab.view("show")["plan"][1]
    assert [(a["status"], a["reason"]) for a in step["attempts"]] == [("failed", ""), ("completed", "retry")]
    assert step["flaky"]


def test_the_interrupted_call_is_there(lab: Lab) -> None:
    begin(lab)
    lab.before(FILL, "cut", selector="#x")
    lab.command("end")
    call = lab.document["execution"]["toolCalls"][-1]
    assert (call["toolName"], call["success"], call["stepNumber"]) == (FILL, False, 2)
    assert verdicts(lab) == ["passed", "interrupted", "not_reached", "not_reached", "not_reached"]
    assert (lab.run["outcome"], lab.run["open"], lab.run["interrupted"]) == ("interrupted", {}, 1)
    assert lab.replayed() == []


def test_a_turn_that_was_cut_off_interrupts_its_calls(lab: Lab) -> None:
    begin(lab)
    lab.before(FILL, "cut", selector="#x")
    lab.app.engine.handle(
        [Event(key="cut", kind="turn.interrupted", at=lab.now + 5, session=SESSION, project=str(lab.project))]
    )
    assert (lab.run["status"], lab.run["open"]) == ("active", {})
    assert verdicts(lab)[1] == "interrupted"


def test_a_run_marked_by_hand_says_its_outcome(lab: Lab) -> None:
    """A gate that asks for the scenario hears it from the event."""
    lab.scenario()
    lab.command("start", scenario="login-flow")
    for number in range(1, 6):
        lab.command("step", step=number, status="completed")
    (ended,) = [e for e in lab.app.store.reader().replay() if e.kind == "uat.ended"]
    assert (ended.get("scenario"), ended.get("outcome")) == ("login-flow", "passed")
    assert lab.run["assertions"][0]["by_hand"]
    for form in ("html", "markdown"):
        assert "Marked by hand: step 1, 2, 3, 4, 5" in render_report(lab.record, form).decode()


def test_an_assertion_judged_by_hand_fails_its_step(lab: Lab) -> None:
    begin(lab)
    lab.command("assert", description="The field is red", result="failed", expected="red", actual="grey")
    assert verdicts(lab)[0] == "failed"
    lab.command("assert", description="the user is welcomed", result="passed")
    assert lab.run["assertions"][0]["result"] == "passed"


@pytest.mark.parametrize("name", ["html", "markdown", "junit"])
def test_a_report_puts_the_failure_first_and_its_figures_are_true(lab: Lab, name: str) -> None:
    begin(lab)
    finish(lab, WRONG)
    text = render_report(lab.record, name).decode()
    assert "Wrong password" in text
    (page,) = [call.data for call in lab.record.calls if call.data.tool == SNAPSHOT]
    assert f"tool-call-{page.n:03d}" in text, "the call that the assertion failed on, not the picture taken after it"
    if name == "junit":
        suite = Xml.fromstring(text).find("testsuite")
        assert suite is not None
        assert suite.get("failures") == "2", "the step and its assertion"
        return
    assert "5: 4 passed, 1 failed" in text
    assert "1: 0 passed, 1 failed" in text
    assert text.index("What failed (1)") < text.index("Navigate to login page")
    assert "contains" in text[text.index("What failed") :]


def test_values_typed_into_fields_are_not_kept(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL, "Filled #p with hunter2-x", selector="#p", value="hunter2-x")
    lab.tool(CLICK)
    lab.tool(SNAPSHOT, PAGE + '\n- textbox "Password" [ref=e5]: hunter2-x')
    kept = repr([e.data for e in lab.app.store.reader().replay() if e.kind.startswith("uat.")])
    assert "hunter2-x" not in kept
    assert "hunter2-x" not in render_report(lab.record, "html").decode()


def test_a_step_may_say_that_its_values_are_public(lab: Lab) -> None:
    lab.scenario(LOGIN.replace("{action: fill,", "{action: fill, public: true,"))
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL, selector="#email", value="ada@example.org")
    assert lab.document["execution"]["toolCalls"][1]["parameters"]["value"] == "ada@example.org"


TYPED = "correct-horse-99"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__playwright__browser_fill_form", {"fields": [{"name": "Code", "ref": "e1", "value": TYPED}]}),
        ("mcp__playwright__browser_type", {"element": "Code", "text": TYPED}),
        ("mcp__chrome-devtools__fill", {"uid": "1_2", "value": TYPED}),
        ("mcp__claude-in-chrome__computer", {"action": "type", "text": TYPED}),
        ("Bash", {"command": f"cd shop && agent-browser fill @e2 '{TYPED}' && git status"}),
    ],
)
def test_a_typed_password_is_nowhere_in_the_database(lab: Lab, tool: str, given: dict[str, Any]) -> None:
    """Also of a call that belongs to no run, and where the driver repeats it."""
    said = f"await page.locator('x').fill('{TYPED}');\n- textbox \"Password\": {TYPED}\nfilled {TYPED}"
    lab.tool(tool, said, **given)
    lab.scenario()
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, url=URL)
    lab.tool(tool, said, **given)
    lab.app.store.close()
    for file in (lab.project.parent / "state").rglob("*"):
        assert not file.is_file() or TYPED.encode() not in file.read_bytes(), file


def test_assertions_are_judged_on_the_page_that_the_driver_wrote_to_a_file(lab: Lab) -> None:
    lab.scenario(LOGIN.replace("step: 4, contains: Welcome", "step: 3, contains: Welcome"))
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL)
    (lab.project / "page.yml").write_text('- heading "Welcome Ada"\n- textbox "Code": 4711-secret')
    lab.tool(CLICK, "### Snapshot\n- [Snapshot](page.yml)")
    assert [a["result"] for a in lab.run["assertions"]] == ["passed"]
    assert "Welcome Ada" in lab.record.calls[-1].data.page
    assert "4711-secret" not in str(lab.record.calls[-1].data)


EXTRA = """\
name: shop
base_url: https://shop.example
{more}
steps:
  - {{action: navigate, description: Open{step}}}
  - {{action: verify, description: Look}}
"""


def judged(lab: Lab, more: str = "", step: str = "", *, page: str = "ok", took: int = 100) -> dict[str, Any]:
    lab.scenario(EXTRA.format(more=more, step=step), "shop")
    lab.command("start", scenario="shop")
    lab.tool(NAVIGATE, took=took, url="https://shop.example/")
    lab.tool("mcp__playwright__browser_evaluate", page, function="() => axe.run()")
    lab.hook("SessionEnd", reason="other")
    assert lab.replayed() == []
    return dict(lab.view("show"))


def test_a_step_over_its_budget_has_failed(lab: Lab) -> None:
    run = judged(lab, step=", budget_ms: 50")
    assert run["outcome"] == "failed"
    assert run["plan"][0]["attempts"][0]["received"] == "100 ms"


def test_a_run_over_its_budget_has_failed(lab: Lab) -> None:
    run = judged(lab, "budget_ms: 1000", took=2_000)
    assert (run["outcome"], run["judged"][0]["actual"]) == ("failed", "2100 ms")


@pytest.mark.parametrize(("page", "outcome"), [("- Console: 2 errors, 0 warnings", "failed"), ("fine", "passed")])
def test_a_console_that_must_stay_clean(lab: Lab, page: str, outcome: str) -> None:
    run = judged(lab, "console: clean", page=page)
    assert run["outcome"] == outcome
    assert outcome == "passed" or run["judged"][0]["actual"] == "2 console errors"


AXE = '### Result\n{"violations": [{"id": "color-contrast", "impact": "serious"}, {"id": "region", "impact": "moderate"}]}'


@pytest.mark.parametrize(
    ("page", "most", "outcome"), [(AXE, 0, "failed"), (AXE, 1, "passed"), ("axe is not here", 0, "failed")]
)
def test_axe_is_judged_where_it_ran_and_missed_where_it_did_not(lab: Lab, page: str, most: int, outcome: str) -> None:
    run = judged(lab, f"accessibility: {{max_violations: {most}}}", page=page)
    assert run["outcome"] == outcome
    assert page != AXE or most or "color-contrast (serious)" in run["judged"][0]["actual"]


def test_a_precondition_that_does_not_hold_leaves_the_run_incomplete(lab: Lab) -> None:
    lab.scenario(EXTRA.format(more="preconditions: [{description: It runs, path: /health}]", step=""), "shop")
    lab.command("start", scenario="shop")
    lab.work()
    lab.tool(NAVIGATE, url="https://shop.example/")
    lab.tool(SNAPSHOT, "fine")
    shown = lab.view("show")
    assert shown["outcome"] == "incomplete"
    (remark,) = shown["remarks"]
    assert "A precondition did not hold: It runs (https://shop.example/health:" in remark
    assert "A precondition did not hold: It runs" in render_report(lab.record, "html").decode()


def test_after_a_failed_call_the_agent_is_asked_for_a_picture(lab: Lab) -> None:
    begin(lab)
    lab.failed(FILL, "no such element")
    assert "Take a screenshot now" in str(lab.before(FILL, "f2").decision)
    lab.after(FILL, "f2")
    assert "Take a screenshot" not in str(lab.before(CLICK, "c1").decision)


def test_two_runs_of_one_scenario_at_once_stay_apart(lab: Lab) -> None:
    lab.scenario()
    for session in ("one", "two"):
        lab.hook("UserPromptSubmit", session=session, prompt="Please test the login flow scenario")
        lab.tool(NAVIGATE, session=session, url=URL)
    lab.tool(FILL, session="one")
    runs = {run["session"]: run for run in lab.view("list")["runs"]}
    assert (runs["one"]["calls"], runs["two"]["calls"]) == (2, 1)


def test_a_run_may_last_two_days_as_long_as_something_happens(lab: Lab) -> None:
    begin(lab)
    for _ in range(4):
        lab.now += 12 * 3_600_000
        lab.tool(FILL)
        lab.tend()
    assert lab.run["status"] == "active"
    lab.now += 25 * 3_600_000
    lab.tend()
    assert (lab.run["reason"], lab.run["outcome"]) == ("expired", "incomplete")


@pytest.mark.parametrize(
    ("command", "output", "ok"),
    [
        ("pytest -q", "2 passed in 0.1s", True),
        ("pytest -q || true", "1 failed, 1 passed in 0.1s", False),
        ("pytest -q > /dev/null; true", "", False),
        ("pytest --version", "pytest 8.3.3", True),
        ("ls", "a", True),
    ],
)
def test_a_shell_step_is_done_when_its_checks_passed(command: str, output: str, ok: bool) -> None:
    judgement = judge_result(ShellResult(command, 0, output), "/nowhere")
    ended = ToolFinished(action="shell", command=command, ok=True, exit_code=0, output=output, judgement=judgement)
    result = result_of(own_event(ended, 0), b"", NOT_A_DRIVER)
    assert (result.ok, bool(result.error)) == (ok, not ok)

"""Tool calls become steps, times, errors and figures (S3-2, S3-5 to S3-9)."""

import json

import pytest

from holdfast.features.uat.settings import run_id
from tests.features.uat.kit import CLICK, FILL, LOGIN, NAVIGATE, SESSION, SHOT, SNAPSHOT, URL, Lab

PAGE = "### Page\n- Page URL: https://x/dashboard\n- Page Title: Dashboard\n### Snapshot\nWelcome Ada"


def begin(lab: Lab) -> None:
    lab.scenario()
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, {"success": True, "url": URL}, url=URL)


def statuses(lab: Lab) -> list[str]:
    return [step["status"] for step in lab.run["steps"]]


def test_a_run_begins_with_the_first_call_of_its_scenario(lab: Lab) -> None:
    """S3-2, O3-b."""
    lab.scenario()
    told = lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    assert "login-flow" in told.decision.contexts[0].text
    assert lab.session["active"] == ""
    told = lab.before(NAVIGATE, "n", url=URL)
    assert told.decision.notices[0].endswith("began (95 of 100).")
    assert told.decision.verdict == "none"
    run = lab.run
    assert (run["confidence"], run["auto"], run["message"]) == (95, True, "Please test the login flow scenario")
    assert run["id"].startswith("uat-20250705-143022-")
    assert run["steps"][0]["status"] == "in_progress"
    assert len(run["open"]) == 1


def test_the_call_that_began_it_is_its_first(lab: Lab) -> None:
    begin(lab)
    call = lab.document["execution"]["toolCalls"][0]
    assert (call["id"], call["toolName"], call["stepNumber"]) == ("tool-call-001", NAVIGATE, 1)
    assert call["result"] == {"success": True, "url": URL}
    assert statuses(lab)[0] == "completed"


def test_a_second_browser_call_does_not_begin_a_second_run(lab: Lab) -> None:
    begin(lab)
    lab.tool(NAVIGATE, url=URL)
    assert len(lab.session["runs"]) == 1
    assert lab.run["calls"] == 2


def test_ordinary_sessions_leave_no_document(lab: Lab) -> None:
    lab.scenario()
    lab.hook("UserPromptSubmit", prompt="fix the typo in the header")
    lab.tool(NAVIGATE, url=URL)
    lab.hook("Stop", last_assistant_message="done")
    assert lab.doc("uat-session", SESSION) is None


def test_a_form_of_many_fields_is_one_step(lab: Lab) -> None:
    begin(lab)
    for field in ("#email", "#password", "#code"):
        lab.tool(FILL, selector=field)
    assert statuses(lab)[:3] == ["completed", "completed", "pending"]
    assert lab.run["steps"][1]["done"] == 3
    assert {c["stepNumber"] for c in lab.document["execution"]["toolCalls"][1:]} == {2}


def test_steps_in_their_order_end_the_run_with_the_last(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL, selector="#email")
    lab.tool(CLICK, selector="#go")
    lab.tool(SNAPSHOT, PAGE)
    assert lab.run["status"] == "active"
    lab.tool(SHOT, "no picture")
    run = lab.run
    assert (run["status"], run["reason"], run["outcome"]) == ("completed", "last-step", "passed")
    assert lab.session["active"] == ""
    document = lab.document
    assert document["scenario"]["completedSteps"] == document["scenario"]["totalSteps"] == 5
    assert document["session"]["endTime"] == document["scenario"]["steps"][4]["endTime"]
    assert document["scenario"]["actualDuration"] == run["end"] - run["start"]


def test_a_failed_call_fails_its_step_and_a_second_try_mends_it(lab: Lab) -> None:
    begin(lab)
    lab.failed(FILL, "Timeout 30000ms exceeded", selector="#gone")
    assert statuses(lab)[1] == "failed"
    lab.tool(FILL, selector="#email")
    assert statuses(lab)[1] == "completed"
    document = lab.document
    assert [e["message"] for e in document["execution"]["errors"]] == ["Timeout 30000ms exceeded"]
    assert document["performance"]["errorCount"] == 1
    assert document["performance"]["successRate"] == round(2 / 3, 4)


@pytest.mark.parametrize(
    "answer", ["### Error\nError: Ref e999 not found", {"success": False, "error": "no such element"}]
)
def test_a_tool_that_says_it_failed_has_failed(lab: Lab, answer: object) -> None:
    """Some servers report their failures as an ordinary answer."""
    begin(lab)
    lab.tool(FILL, answer, selector="#x")
    assert statuses(lab)[1] == "failed"
    assert lab.run["last_errors"][0]["message"] in ("Error: Ref e999 not found", "no such element")


def test_a_step_that_was_passed_over_is_skipped(lab: Lab) -> None:
    text = LOGIN.replace("{action: verify,", "{action: verify, tool: '*snapshot',")
    lab.scenario(text)
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, url=URL)
    lab.tool(SNAPSHOT, PAGE)
    assert statuses(lab) == ["completed", "skipped", "skipped", "completed", "pending"]


def test_a_step_may_need_several_calls(lab: Lab) -> None:
    lab.scenario(LOGIN.replace("{action: fill,", "{action: fill, calls: 2,"))
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL, selector="#email")
    assert statuses(lab)[1] == "in_progress"
    lab.tool(FILL, selector="#password")
    assert statuses(lab)[1] == "completed"


def test_calls_that_are_no_step_are_recorded_only_in_the_browser(lab: Lab) -> None:
    begin(lab)
    lab.tool("Read", file_path="/etc/hosts")
    lab.tool("Bash", command="ls")
    lab.tool("mcp__playwright__browser_console_messages", "### Result\n[ERROR] boom @ http://x/:0")
    assert [c["toolName"] for c in lab.document["execution"]["toolCalls"]] == [
        NAVIGATE,
        "mcp__playwright__browser_console_messages",
    ]
    assert statuses(lab)[1] == "pending"


def test_shell_steps(lab: Lab) -> None:
    """Issue 6, 4: plain shell steps."""
    lab.scenario(
        "name: deploy flow\nsteps:\n"
        "  - {action: shell, description: build, arguments: {command: 'make build*'}}\n"
        "  - {action: shell, description: smoke, arguments: {command: './smoke.sh'}}\n"
        "assertions: [{step: 2, description: smoke is fine, exit_code: 0, contains: all good}]\n",
        "deploy",
    )
    lab.hook("UserPromptSubmit", prompt="run the deploy flow scenario")
    for command, said in (("make build -j2", "built"), ("ls", "x"), ("./smoke.sh", "all good")):
        call = f"c-{command}"
        lab.before("Bash", call, command=command)
        lab.hook(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": command},
            tool_use_id=call,
            tool_response={"stdout": said, "stderr": "", "interrupted": False},
        )
    run = lab.run
    assert (run["outcome"], run["calls"]) == ("passed", 2)
    assert lab.document["execution"]["toolCalls"][1]["result"] == {"text": "all good"}


def test_console_and_network_problems_are_warnings(lab: Lab) -> None:
    begin(lab)
    lab.tool("mcp__playwright__browser_network_requests", "### Result\n2. [GET] http://x/missing => [404] Not Found\n")
    lab.tool("mcp__playwright__browser_console_messages", "[ERROR] boom @ http://x:0\n[LOG] hello\n[WARNING] careful")
    warnings = lab.document["execution"]["warnings"]
    assert [(w["type"], w["message"]) for w in warnings] == [
        ("network", "GET http://x/missing → 404 Not Found"),
        ("console", "boom @ http://x:0"),
        ("console", "careful"),
    ]
    assert lab.document["performance"]["errorCount"] == 0


def test_what_was_typed_is_not_repeated(lab: Lab) -> None:
    """P10: Playwright shows its code, with the password in it."""
    begin(lab)
    said = (
        "### Ran Playwright code\n```js\nawait page.locator('#p').fill('s3cret\\'x');\nawait x.fill(\"s3cret\");\n```"
    )
    lab.tool(FILL, said, selector="#p")
    made = lab.document["execution"]["toolCalls"][1]["result"]["text"]
    assert "s3cret" not in made
    assert "page.locator('#p').fill(…);" in made


def test_assertions_are_judged_on_what_the_tools_say(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL, selector="#email")
    lab.tool(CLICK, selector="#go")
    lab.tool(SNAPSHOT, "### Page\n- Page URL: https://x/login\n### Snapshot\nWrong password")
    assert lab.run["assertions"][0]["result"] == "pending"
    lab.tool(SNAPSHOT, PAGE)
    assert lab.run["assertions"][0]["result"] == "passed"


def test_what_was_never_seen_to_hold_has_failed(lab: Lab) -> None:
    begin(lab)
    lab.tool(FILL, selector="#email")
    lab.tool(CLICK, selector="#go")
    lab.tool(SNAPSHOT, "### Page\n- Page URL: https://x/login\n### Snapshot\nWrong password")
    lab.tool(SHOT, "none")
    assert lab.run["outcome"] == "failed"
    told = lab.document["validation"]["assertions"][0]
    assert told["result"] == "failed"
    assert "Wrong password" in told["actual"]


def test_what_must_never_be_seen_breaks_an_assertion_for_good(lab: Lab) -> None:
    """`not_contains`, `max_ms` and `no_errors` hold for every result of the step, not for one of them."""
    text = LOGIN.replace("step: 4, contains: Welcome", "step: 2, not_contains: Traceback, contains: ok")
    lab.scenario(text)
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL, "ok", selector="#a")
    assert lab.run["assertions"][0]["result"] == "passed"
    lab.tool(FILL, "Traceback (most recent call last)", selector="#b")
    lab.tool(FILL, "ok", selector="#c")
    assert lab.run["assertions"][0]["result"] == "failed"
    assert "Traceback" in lab.run["assertions"][0]["actual"]


def test_telling_holdfast_something_is_no_step(lab: Lab) -> None:
    lab.scenario("name: shell flow\nsteps: [{action: shell}]\n", "shell")
    lab.command("start", scenario="shell flow")
    lab.tool("Bash", command="holdfast uat start 'shell flow'")
    assert lab.run["calls"] == 0
    lab.tool("Bash", command="make")
    assert lab.run["outcome"] == "passed"


def test_a_page_check_tells_what_the_page_was_like(lab: Lab) -> None:
    """S3-7."""
    begin(lab)
    (check,) = lab.document["validation"]["healthChecks"]
    assert check["type"] == "page_load"
    assert check["result"] == "success"
    assert check["data"] == {"isLoggedIn": None, "currentRoute": "/auth/login", "hasErrors": False}


def test_a_framework_put_into_the_page_is_noticed(lab: Lab) -> None:
    """S3-7 frameworkInjected."""
    begin(lab)
    assert lab.document["validation"]["frameworkInjected"] is False
    lab.tool("mcp__playwright__playwright_evaluate", script="window.uatFramework = {}")
    assert lab.document["validation"]["frameworkInjected"] is True


def test_a_picture_after_the_last_step_still_belongs_to_the_run(lab: Lab) -> None:
    begin(lab)
    for tool, said in ((FILL, "ok"), (CLICK, "ok"), (SNAPSHOT, PAGE), (SHOT, "none")):
        lab.tool(tool, said)
    assert lab.session["tail"] == lab.run["id"]
    lab.tool("mcp__playwright__browser_console_messages", "[ERROR] late")
    assert (lab.run["calls"], lab.run["status"]) == (6, "completed")
    lab.hook("Stop", last_assistant_message="done")
    lab.tool(SNAPSHOT, PAGE)
    assert lab.run["calls"] == 6


def test_parallel_calls_end_in_any_order(lab: Lab) -> None:
    begin(lab)
    for call in ("a", "b", "c"):
        lab.before(FILL, call, selector=f"#{call}")
    for call in ("c", "a", "b"):
        lab.after(FILL, call, selector=f"#{call}")
    calls = lab.document["execution"]["toolCalls"][1:]
    assert [c["id"] for c in calls] == ["tool-call-004", "tool-call-002", "tool-call-003"]
    assert [c["parameters"]["selector"] for c in calls] == ["#c", "#a", "#b"]
    assert lab.run["open"] == {}


def test_a_call_whose_beginning_was_missed_is_recorded_too(lab: Lab) -> None:
    begin(lab)
    lab.after(FILL, "unseen", at=lab.now + 500, ms=400, selector="#email")
    call = lab.document["execution"]["toolCalls"][1]
    assert (call["stepNumber"], call["executionTime"]) == (2, 400)
    step = lab.document["scenario"]["steps"][1]
    assert (step["status"], step["duration"]) == ("completed", 400)


def test_a_prompt_may_order_two_scenarios(lab: Lab) -> None:
    lab.scenario("name: login flow\nsteps: [{action: navigate, arguments: {url: '*/login'}}]\n", "a")
    lab.scenario("name: checkout flow\nsteps: [{action: navigate, arguments: {url: '*/checkout'}}]\n", "b")
    lab.hook("UserPromptSubmit", prompt="test the login flow, then run the checkout flow")
    for page in ("login", "checkout", "login"):
        lab.tool(NAVIGATE, url=f"http://x/{page}")
    runs = [lab.doc("uat", run) for run in lab.session["runs"]]
    assert [(r["scenario"], r["outcome"]) for r in runs if r] == [("login flow", "passed"), ("checkout flow", "passed")]


def test_without_a_scenario_it_is_only_suggested_once(lab: Lab) -> None:
    lab.scenario("name: other\nsteps: [{action: click}]\n", "other")
    lab.hook("UserPromptSubmit", prompt="run the UAT for the payment flow in the browser")
    first = lab.before(NAVIGATE, url=URL)
    assert "holdfast uat init" in first.decision.contexts[0].text
    assert lab.before(NAVIGATE, url=URL).decision.contexts == ()
    assert lab.session["active"] == ""


def test_switched_off_nothing_begins_by_itself(lab: Lab) -> None:
    (lab.project / ".holdfast").mkdir()
    (lab.project / ".holdfast" / "settings.yaml").write_text("uat:\n  enabled: false\n")
    lab.scenario()
    assert lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario").decision.contexts == ()
    lab.tool(NAVIGATE, url=URL)
    assert lab.doc("uat-session", SESSION)["active"] == ""


def test_a_resumed_session_is_told_where_its_run_stands(lab: Lab) -> None:
    begin(lab)
    told = lab.hook("SessionStart", source="resume", mode="start").decision.contexts[0].text
    assert "1 of 5 steps done" in told
    assert lab.run["id"] in told


def test_the_document_stays_small_and_the_list_whole(lab: Lab) -> None:
    """Decision 7: 120 calls leave a document no larger than 30 do."""
    begin(lab)
    sizes = []
    for n in range(120):
        lab.tool(FILL, {"n": n, "text": "x" * 500}, selector=f"#f{n}")
        if n in (30, 119):
            sizes.append(len(json.dumps(lab.run)))
    assert sizes[1] < sizes[0] * 1.1
    assert len(lab.document["execution"]["toolCalls"]) == 121
    assert lab.replayed() == []


def test_ids_are_of_the_seeds_form() -> None:
    """S3-4."""
    import re

    assert re.fullmatch(r"uat-20250705-143022-[a-z0-9]{8}", run_id(1_751_725_822_123, "key"))
    assert run_id(1, "a") != run_id(1, "b")
    assert run_id(-5, "x").startswith("uat-19700101-000000-")

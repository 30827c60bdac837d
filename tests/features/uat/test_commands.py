"""What hooks and people tell a run: steps, assertions, checks, signals, patches (S3-16, S3-17, S3-21, S3-22, S3-25)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.state.merge import DERIVED, merge_objects, split_patch
from tests.features.uat.kit import LOGIN, SESSION, Lab
from tests.features.uat.policy.test_derive import begin

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@pytest.fixture
def started(lab: Lab) -> Lab:
    lab.scenario()
    lab.command("start", scenario="login-flow", message="Please test", confidence=70)
    return lab


def refused(lab: Lab, name: str, **args: object) -> str:
    with pytest.raises(CommandRefused) as error:
        lab.command(name, **args)
    return error.value.message


def test_a_run_begins_with_zero_performance(started: Lab) -> None:
    """S3-15."""
    document = started.document
    assert document["performance"] == {
        "totalExecutionTime": 0, "averageStepDuration": 0, "fastestStep": None, "slowestStep": None,
        "toolCallCount": 0, "errorCount": 0, "successRate": 0,
    }  # fmt: skip
    assert document["context"]["detectionConfidence"] == 70
    assert document["execution"] == {"toolCalls": [], "errors": [], "warnings": []}


def test_unknown_scenarios_are_refused(lab: Lab) -> None:
    lab.scenario()
    assert "Known: login-flow." in refused(lab, "start", scenario="logout-flow")
    (lab.project / "uat" / "scenarios" / "broken.yaml").write_text("name: broken\nsteps: 3\n")
    assert "broken.yaml:2" in refused(lab, "start", scenario="broken")
    assert lab.doc("uat-session", SESSION) is None


def test_progress_moves_current_and_completed_and_ends_the_run(started: Lab) -> None:
    """S3-17, D8, D9: `completedSteps` moves."""
    for number in range(1, 6):
        started.command("step", step=number, status="in_progress")
        assert started.document["scenario"]["currentStep"] == number
        started.now += 1000
        started.command("step", step=number, status="completed")
        assert started.document["scenario"]["completedSteps"] == number
        assert started.document["scenario"]["steps"][number - 1]["duration"] == 1000
    assert (started.run["status"], started.run["reason"]) == ("completed", "last-step")
    assert started.document["performance"]["totalExecutionTime"] == 5000
    assert started.document["performance"]["averageStepDuration"] == 1000


@pytest.mark.parametrize(
    ("step", "status"),
    [
        (0, "completed"),
        (6, "completed"),
        (-1, "failed"),
        (1, "done"),
        (1, ""),
        ("2", "completed"),
        (True, "failed"),
        (None, "failed"),
    ],
)
def test_steps_out_of_range_are_refused(started: Lab, step: object, status: str) -> None:
    before = started.run
    refused(started, "step", step=step, status=status)
    assert started.run == before


def test_a_failed_step_has_its_end(started: Lab) -> None:
    started.command("step", step=2, status="failed")
    step = started.document["scenario"]["steps"][1]
    assert (step["status"], step["duration"]) == ("failed", 0)
    started.command("end")
    assert started.run["outcome"] == "failed"


def test_assertions_by_hand(started: Lab) -> None:
    started.command("assert", description="The logo is blue", result="passed")
    started.command("assert", description="It is quick", result="failed", actual="9 s", expected="2 s", step=1)
    told = started.document["validation"]["assertions"][1:]
    assert [(a["description"], a["result"], a["actual"]) for a in told] == [
        ("The logo is blue", "passed", None),
        ("It is quick", "failed", "9 s"),
    ]
    started.command("end")
    assert started.run["outcome"] == "failed"
    refused(started, "assert", description="late", result="passed")


def test_health_checks_by_hand(started: Lab) -> None:
    started.command("check", type="api", result="failure", data={"status": 503})
    assert started.document["validation"]["healthChecks"][0]["data"] == {"status": 503}
    assert started.run["bad_checks"] == 1


def test_signals(started: Lab) -> None:
    """S3-22: null when absent, with a timestamp when there."""
    assert started.view("signal", signal="ready") is None
    started.command("signal", signal="ready", data={"port": 3000})
    assert started.view("signal", signal="ready") == {"data": {"port": 3000}, "timestamp": "2025-07-05T14:30:22.123Z"}
    assert started.document["context"]["hooks"]["ready"]["data"] == {"port": 3000}
    started.command("signal", signal="ready", data=[1])
    assert started.view("signal", signal="ready")["data"] == [1]
    for n in range(80):
        started.command("signal", signal=f"s{n}", data=n)
    assert len(started.run["hooks"]) == 50
    assert started.view("signal", signal="s79")["data"] == 79
    assert "at most" in refused(started, "signal", signal="big", data="x" * 9000)
    refused(started, "signal", signal="", data=1)
    refused(started, "signal", signal="a\nb", data=1)


def test_context_for_other_hooks(started: Lab) -> None:
    """S3-21."""
    assert started.view("context") == {
        "scenario": "login-flow",
        "uatSessionId": started.run["id"],
        "currentStep": 0,
        "totalSteps": 5,
        "mode": "production",
        "baseUrl": "https://vrp-system-v4.pages.dev",
        "screenshotDirectory": f"{started.project}/uat/screenshots/{started.run['id']}",
    }
    started.command("end")
    with pytest.raises(CommandRefused):
        started.view("context")


def test_patches_are_merged_deeply(started: Lab) -> None:
    """S3-16."""
    started.now += 5000
    started.command("update", patches=[{"context": {"browser": {"name": "chromium"}}}])
    started.command("update", patches=[{"context": {"browser": {"version": 156}}}, {"session": {"mode": "staging"}}])
    document = started.document
    assert document["context"]["browser"] == {"name": "chromium", "version": 156}
    assert document["session"]["mode"] == "staging"
    assert document["context"]["baseUrl"] == "https://vrp-system-v4.pages.dev"
    assert document["meta"]["updated"] == document["session"]["lastActivity"] == "2025-07-05T14:30:27.123Z"


def test_what_is_derived_cannot_be_overwritten_and_that_is_said(started: Lab) -> None:
    told = started.command(
        "update",
        patches=[{"performance": {"toolCallCount": 99}, "meta": {"version": "9"}, "session": {"uatSessionId": "x"}}],
    )
    assert sorted(told["ignored"]) == ["meta", "performance", "session.uatSessionId"]
    assert started.document["performance"]["toolCallCount"] == 0
    assert started.document["meta"]["version"] == "1.0.0"


def test_lists_in_a_patch_are_added_to(started: Lab) -> None:
    patch = {
        "execution": {"errors": [{"message": "boom", "type": "page"}], "warnings": ["slow"]},
        "validation": {
            "healthChecks": [{"type": "api", "result": "success"}],
            "assertions": [{"description": "d", "result": "passed"}],
        },
    }
    started.command("update", patches=[patch])
    started.command("update", patches=[patch])
    document = started.document
    assert [e["message"] for e in document["execution"]["errors"]] == ["boom", "boom"]
    assert document["performance"]["errorCount"] == 2
    assert len(document["validation"]["healthChecks"]) == 2
    assert len(document["validation"]["assertions"]) == 3


def test_a_patch_may_end_the_run(started: Lab) -> None:
    """S3-19, as the seed's cleanup_session does it."""
    assert started.command("update", patches=[{"session": {"status": "completed"}}])["ignored"] == []
    assert started.run["status"] == "completed"


def test_patches_too_large_are_refused_and_documents_stay_bounded(started: Lab) -> None:
    assert "cannot be merged" in refused(started, "update", patches=[{"context": {"x": "y" * 70_000}}])
    refused(started, "update", patches=[])
    refused(started, "update", patches=["x"])
    refused(started, "update", patches=None)


def test_calls_told_by_hooks_are_numbered_and_counted(started: Lab) -> None:
    """S3-17, D8."""
    started.command("call", call={"toolName": "my_tool", "parameters": {"a": 1}, "executionTime": 5, "stepNumber": 2})
    started.command("call", call={"toolName": "my_tool", "success": False, "error": "no"})
    calls = started.document["execution"]["toolCalls"]
    assert [(c["id"], c["stepNumber"], c["success"]) for c in calls] == [
        ("tool-call-001", 2, True),
        ("tool-call-002", 0, False),
    ]
    assert started.document["performance"]["successRate"] == 0.5
    refused(started, "call", call={"parameters": {}})
    refused(started, "call", call={"toolName": "x", "stepNumber": 77})


def test_an_ad_hoc_run_has_no_steps_and_records_browser_and_shell(lab: Lab) -> None:
    lab.command("start", scenario="look around", ad_hoc=True)
    lab.tool("mcp__playwright__browser_navigate", url="http://x")
    lab.tool("Bash", command="ls")
    lab.tool("Read", file_path="/x")
    assert lab.run["calls"] == 2
    assert lab.run["status"] == "active"
    lab.command("end")
    assert lab.run["outcome"] == "incomplete", "without a step or an assertion nothing is proven"


def test_an_ad_hoc_run_cannot_stand_for_a_scenario(lab: Lab) -> None:
    """Its outcome would satisfy the scenario's gate without one of its steps."""
    lab.scenario()
    assert "is a scenario" in refused(lab, "start", scenario="login-flow", ad_hoc=True)


def test_a_run_is_found_by_parts_of_its_name(started: Lab) -> None:
    run = started.run["id"]
    for name in (run, run[-8:], "uat-20250705", ""):
        assert started.view("show", run=name)["id"] == run
    with pytest.raises(CommandRefused, match="no UAT run"):
        started.view("show", run="uat-19990101")
    with pytest.raises(CommandRefused):
        started.view("show", session="another session")


def test_health_of_a_server_is_asked_on_this_machine_only(lab: Lab) -> None:
    """P9: a repository cannot make us call other hosts."""
    checks = "health_checks: [{type: http, path: /health}]\n"
    lab.scenario(LOGIN.replace("health_checks:\n  - {type: page_load, step: 1}\n", checks))
    lab.command("start", scenario="login-flow")
    lab.work()
    (check,) = lab.document["validation"]["healthChecks"]
    assert check["result"] == "failure"
    assert "uat.health_hosts" in check["data"]["error"]


def test_health_of_a_real_server(lab: Lab) -> None:
    from tests.features.uat.site import site

    with site() as url:
        checks = "health_checks:\n  - {type: http, path: /health, contains: fine}\n"
        checks += "  - {type: http, path: /nothing}\n  - {type: http, path: /nothing, status: 404}\n"
        text = LOGIN.replace("health_checks:\n  - {type: page_load, step: 1}\n", checks)
        lab.scenario(text.replace("https://vrp-system-v4.pages.dev", url))
        lab.command("start", scenario="login-flow")
        lab.work()
    told = [(c["result"], c["data"]["statusCode"]) for c in lab.document["validation"]["healthChecks"]]
    assert told == [("success", 200), ("failure", 404), ("success", 404)]


def test_replay_knows_all_of_it(started: Lab) -> None:
    begin(started)
    started.command("signal", signal="a", data=1)
    started.command("update", patches=[{"context": {"x": [1, {"y": None}]}, "execution": {"errors": ["e"]}}])
    started.command("assert", description="d", result="failed")
    started.command("call", call={"toolName": "t"})
    started.command("end")
    started.work()
    assert started.replayed() == []


@given(OBJECT, OBJECT)
def test_merging_keeps_what_it_does_not_name(a: dict, b: dict) -> None:
    assert merge_objects(merge_objects(a, b), {}) == merge_objects(a, b)
    assert set(merge_objects(a, b)) == set(a) | set(b)
    assert merge_objects(merge_objects(a, b), b) == merge_objects(a, b)


@given(
    st.dictionaries(
        st.sampled_from(["meta", "session", "scenario", "execution", "performance", "context", "x"]),
        JSON
        | st.dictionaries(
            st.sampled_from(["status", "steps", "toolCalls", "errors", "mode", "hooks"]), JSON, max_size=3
        ),
        max_size=4,
    )
)
def test_no_patch_reaches_what_is_derived(patch: dict) -> None:
    kept, _, _ = split_patch(patch)
    for path in DERIVED:
        value = kept
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        assert value is None


def test_a_first_scenario_is_recorded_from_what_an_agent_did(lab: Lab) -> None:
    page = '### Page\n- Page URL: https://shop.example/home\n- Page Title: Home\n### Snapshot\n- heading "Hello {{x}}"'
    lab.tool("mcp__chrome-devtools__navigate_page", "ok", url="https://shop.example/login?next=1")
    lab.tool("mcp__chrome-devtools__fill", "ok", uid="1", value="ada")
    lab.tool("mcp__chrome-devtools__fill", "ok", uid="2", value="correct-horse")
    lab.failed("mcp__chrome-devtools__click", "no such element", uid="9")
    lab.tool("mcp__chrome-devtools__click", "ok", uid="3", element="Sign in")
    lab.tool("mcp__chrome-devtools__take_snapshot", page)
    lab.tool("Read", "not of a browser", file_path="x")
    asked = lab.command("init", scenario="signing in", record=True)
    lab.work()
    text = Path(asked["path"]).read_text()
    assert "correct-horse" not in text
    (plan,) = lab.view("scenarios")["scenarios"]
    assert (plan["name"], plan["steps"]) == ("signing in", 4)
    assert lab.view("validate")["mistakes"] == []
    assert 'arguments: {url: "/login*"}' in text
    assert 'description: "Click Sign in"' in text
    assert 'title: "Home"' in text
    assert "contains" not in text, "a heading with {{ }} cannot be asserted"


def test_a_recorded_step_is_called_after_its_element(lab: Lab) -> None:
    shown = 'uid=1_2 textbox "User"\nuid=1_3 textbox "Password"\nuid=1_4 button "Sign in"'
    lab.tool("mcp__chrome-devtools__take_snapshot", shown)
    lab.tool(
        "mcp__chrome-devtools__fill_form", "ok", elements=[{"uid": "1_2", "value": "a"}, {"uid": "1_3", "value": "b"}]
    )
    lab.tool("Bash", '- button "Pay" [ref=e7]', command="agent-browser open http://x/pay && agent-browser snapshot")
    lab.tool("Bash", "Done", command="agent-browser click @e7 && agent-browser screenshot a.png")
    asked = lab.command("init", scenario="paying", record=True)
    lab.work()
    text = Path(asked["path"]).read_text()
    told = [
        line.partition("description: ")[2].strip('"}').partition('"')[0]
        for line in text.splitlines()
        if "action:" in line
    ]
    looked, picture = "Look at the page", "Keep a picture"
    assert told == [looked, "Fill in User, Password", "Open /pay", looked, "Click Pay", picture]
    assert lab.view("validate")["mistakes"] == []


def test_nothing_is_recorded_where_no_browser_was(lab: Lab) -> None:
    lab.tool("Read", "x", file_path="x")
    with pytest.raises(CommandRefused, match="no browser call"):
        lab.command("init", scenario="x", record=True)


def test_an_agent_is_told_to_run_axe_where_it_must_have_run(lab: Lab) -> None:
    lab.scenario(LOGIN + "accessibility: {max_violations: 0}\n")
    told = lab.hook("UserPromptSubmit", prompt="Please test the login-flow scenario").decision
    assert "run axe-core in the page" in told.contexts[0].text

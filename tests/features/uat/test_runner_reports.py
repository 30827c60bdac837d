"""Reports of test runners come in as runs with the same numbers as the runner's own."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.runner_reports import failed_attempt
from tests.features.uat.kit import Lab
from tests.features.uat.pictures import png

DIFFERENCE = "Error: expect(received).toBe(expected)\n\nExpected: \x1b[32m1\x1b[39m\nReceived: \x1b[31m2\x1b[39m"


def result(status: str, **fields: Any) -> dict[str, Any]:
    error = {"errors": [{"message": DIFFERENCE}]} if status in ("failed", "timedOut") else {"errors": []}
    return {"status": status, "duration": 100, "attachments": [], **error, **fields}


def spec(title: str, *results: dict[str, Any], status: str, expected: str = "passed") -> dict[str, Any]:
    test = {"projectName": "chromium", "expectedStatus": expected, "status": status, "results": list(results)}
    return {"title": title, "file": "a.spec.ts", "tests": [test]}


def suite() -> dict[str, Any]:
    """20 tests: two failed, one flaky, one skipped, one that is meant to fail."""
    specs = [spec(f"passes {n}", result("passed"), status="expected") for n in range(15)]
    specs.append(spec("fails", result("failed"), result("failed"), status="unexpected"))
    specs.append(spec("times out", result("timedOut"), result("timedOut"), status="unexpected"))
    specs.append(spec("flaky", result("failed"), result("passed"), status="flaky"))
    specs.append(spec("skipped", status="skipped"))
    specs.append(spec("is broken", result("failed"), status="expected", expected="failed"))
    return {"suites": [{"title": "a.spec.ts", "file": "a.spec.ts", "specs": specs[:10], "suites": [
        {"title": "inner", "file": "a.spec.ts", "specs": specs[10:]}]}]}  # fmt: skip


def taken(lab: Lab, name: str, content: str) -> dict[str, Any]:
    path = lab.project / name
    path.write_text(content)
    (run,) = lab.command("import", path=str(path))["runs"]
    return lab.view("show", run=run["id"])


def test_playwrights_json(lab: Lab) -> None:
    run = taken(lab, "results.json", json.dumps(suite()))
    assert run["verdicts"] == {"passed": 17, "failed": 2, "skipped": 1}
    assert (run["flaky"], run["outcome"], run["source"], run["steps"]) == (1, "failed", "playwright", 20)
    failed = next(step for step in run["plan"] if step["verdict"] == "failed")
    assert failed["description"] == "[chromium] inner › fails"
    assert [a["status"] for a in failed["attempts"]] == ["failed", "failed"]
    assert (failed["attempts"][-1]["expected"], failed["attempts"][-1]["received"]) == ("1", "2")
    lab.work()
    assert "What failed (2)" in lab.view("report", run=run["id"])
    assert lab.replayed() == []


def test_junit_of_pytest(lab: Lab) -> None:
    run = taken(
        lab,
        "junit.xml",
        """<?xml version="1.0"?><testsuites><testsuite name="pytest" tests="3">
        <testcase classname="test_login" name="test_ok[chromium]" time="1.5"/>
        <testcase classname="test_login" name="test_bad[chromium]" time="0.5"><failure message="AssertionError: no">x
        </failure></testcase>
        <testcase classname="test_login" name="test_later" time="0"><skipped message="later"/></testcase>
        </testsuite></testsuites>""",
    )
    assert run["verdicts"] == {"passed": 1, "failed": 1, "skipped": 1}
    assert (run["source"], run["plan"][0]["duration"]) == ("pytest", 1500)
    assert run["plan"][1]["error"] == "AssertionError: no"


def test_cypress_and_mochawesome(lab: Lab) -> None:
    tests = [
        {"title": ["Login", "works"], "state": "passed", "attempts": [{"state": "failed"}, {"state": "passed"}]},
        {"title": ["Login", "fails"], "state": "failed", "displayError": "AssertionError: x", "attempts": []},
    ]
    run = taken(lab, "cypress.json", json.dumps({"runs": [{"spec": {"relative": "login.cy.js"}, "tests": tests}]}))
    assert (run["verdicts"], run["flaky"]) == ({"passed": 1, "failed": 1}, 1)
    inner = {"tests": [{"fullTitle": "Login works", "state": "passed", "duration": 5, "err": {}}], "suites": []}
    run = taken(lab, "mocha.json", json.dumps({"results": [{"file": "a.cy.js", "tests": [], "suites": [inner]}]}))
    assert (run["outcome"], run["source"]) == ("passed", "mochawesome")


def test_an_error_of_each_attempt_as_cypress_12_has_it(lab: Lab) -> None:
    attempt = {"state": "failed", "error": {"name": "AssertionError", "message": "expected 1 to equal 2", "stack": "x"}}
    tests = [{"title": ["Login", "fails"], "state": "failed", "displayError": "other", "attempts": [attempt, attempt]}]
    run = taken(lab, "cypress.json", json.dumps({"runs": [{"spec": {"relative": "login.cy.js"}, "tests": tests}]}))
    assert [a["error"] for a in run["plan"][0]["attempts"]] == ["AssertionError: expected 1 to equal 2"] * 2


@pytest.mark.parametrize(
    ("message", "expected", "received"),
    [
        ("Timed out retrying: expected 'Hello' to include 'Welcome'", "to include 'Welcome'", "'Hello'"),
        ("AssertionError: expected '<p>' not to be visible", "not to be visible", "'<p>'"),
        ("expected: <3> but was: <4>", "<3>", "<4>"),
        ("java.lang.AssertionError: expected 3 but was 4", "3", "4"),
        ("Error: the page is gone", "", ""),
        ("Expected: 5\nReceived: 6", "5", "6"),
    ],
)
def test_what_was_expected_and_received_by_the_words_of_the_runner(message: str, expected: str, received: str) -> None:
    attempt = failed_attempt("failed", 5, message)
    assert (attempt.expected, attempt.received) == (expected, received)


@pytest.mark.parametrize(
    "content", ["", "{}", "<a", "[1]", '<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>', "<testsuite/>"]
)
def test_what_is_no_report_is_refused(lab: Lab, content: str) -> None:
    path = lab.project / "report"
    path.write_text(content)
    with pytest.raises(CommandRefused):
        lab.command("import", path=str(path))
    with pytest.raises(CommandRefused, match="there is no file"):
        lab.command("import", path=str(Path("/nonexistent/report.json")))


def write_pictures(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png())


def test_a_real_suite_of_playwright_has_its_own_numbers(lab: Lab) -> None:
    """`playwright_results.json`: the report of examples/uat-shop/playwright as Playwright 1.65 wrote it."""
    text = Path(__file__).with_name("playwright_results.json").read_text().replace("PROJECT", str(lab.project))
    own = json.loads(text)["stats"]
    kept = [line.partition('"path": "')[2].strip('"') for line in text.splitlines() if "test-failed-" in line]
    write_pictures(lab.project, *kept)
    run = taken(lab, "results.json", text)
    lab.work()
    assert run["verdicts"] == {"passed": own["expected"] + own["flaky"], "failed": own["unexpected"]}
    assert (run["flaky"], run["outcome"], run["steps"]) == (own["flaky"], "failed", 20)
    shown = lab.view("show", run=run["id"])
    assert [len(step["attempts"]) for step in shown["plan"]].count(2) == 3
    assert len(shown["shots"]) == 5, "a picture of each attempt that failed"
    piano = next(step for step in shown["plan"] if "piano" in step["description"])
    assert piano["attempts"][-1]["expected"] == '"Piano"'
    assert "trace.zip" in lab.view("report", run=run["id"])


PYTEST_PLAYWRIGHT = """<testsuites name="pytest tests"><testsuite name="pytest" tests="2" failures="1">
<testcase classname="test_shop" name="test_orders[chromium]" time="5.494" />
<testcase classname="test_shop.TestAccount" name="test_eve[chromium]" time="3.088">{properties}
<failure message="AssertionError: Locator expected to have text 'Welcome Eve'&#10;Actual value: Welcome Ada &#10;Call log:">
self = x</failure></testcase></testsuite></testsuites>"""
RESULTS = "test-results/test-shop-py-testaccount-test-eve-chromium"
PROPERTIES = f"""<properties><property name="playwright_screenshot" value="{RESULTS}/test-failed-1.png" />
<property name="playwright_trace" value="{RESULTS}/trace.zip" /></properties>"""


@pytest.mark.parametrize("properties", [PROPERTIES, ""], ids=["named in the report", "found beside it"])
def test_pictures_and_traces_of_pytest_playwright(lab: Lab, properties: str) -> None:
    write_pictures(lab.project, f"{RESULTS}/test-failed-1.png", f"{RESULTS}/trace.zip")
    run = taken(lab, "results.xml", PYTEST_PLAYWRIGHT.format(properties=properties))
    lab.work()
    shown = lab.view("show", run=run["id"], calls=True)
    assert (run["source"], run["verdicts"]) == ("pytest", {"passed": 1, "failed": 1})
    last = shown["plan"][1]["attempts"][-1]
    assert (last["expected"], last["received"]) == ("to have text 'Welcome Eve'", "Welcome Ada")
    assert [shot["stepNumber"] for shot in shown["shots"]] == [2]
    assert "trace.zip" in lab.view("report", run=run["id"])


def test_pictures_of_cypress_are_found_by_the_names_of_tests(lab: Lab) -> None:
    """The shape that Cypress documents; it has not been run here."""
    folder = "cypress/screenshots/login.cy.js"
    write_pictures(lab.project, f"{folder}/login -- refuses (failed).png")
    write_pictures(lab.project, f"{folder}/login -- refuses (failed) (attempt 2).png")
    attempts = [{"state": "failed"}, {"state": "failed"}]
    test = {
        "title": ["login", "refuses"],
        "state": "failed",
        "displayError": "AssertionError: no",
        "attempts": attempts,
    }
    good = {"title": ["login", "welcomes"], "state": "passed", "attempts": [{"state": "passed"}]}
    run = taken(
        lab, "cypress.json", json.dumps({"runs": [{"spec": {"relative": "login.cy.js"}, "tests": [good, test]}]})
    )
    lab.work()
    assert (run["source"], run["verdicts"]) == ("cypress", {"passed": 1, "failed": 1})
    shots = lab.view("show", run=run["id"])["shots"]
    assert [shot["stepNumber"] for shot in shots] == [2, 2]


TRACE: list[dict[str, Any]] = [
    {"version": 10, "type": "context-options", "title": "test-shop-py", "monotonicTime": 9481.3},
    {"type": "before", "callId": "1", "startTime": 9489.4, "class": "BrowserContext", "method": "newPage", "params": {}},
    {"type": "after", "callId": "1", "endTime": 9857.3},
    {"type": "before", "callId": "3", "startTime": 9881.7, "class": "Frame", "method": "goto", "params": {"url": "/login"}},
    {"type": "screencast-frame", "file": "screencast/1.png", "timestamp": 10032.7},
    {"type": "console", "messageType": "error", "text": "login failed", "time": 10100.0},
    {"type": "after", "callId": "3", "endTime": 10119.8},
    {"type": "screencast-frame", "file": "screencast/2.png", "timestamp": 10157.6},
    {"type": "before", "callId": "5", "startTime": 10200.8, "class": "Frame", "method": "fill",
     "params": {"selector": 'internal:label="Password"i', "value": "lovelace"}},
    {"type": "after", "callId": "5", "endTime": 10577.1},
    {"type": "before", "callId": "7", "startTime": 10817.8, "title": 'Expect "to_have_text"', "class": "Frame",
     "method": "expect", "params": {"selector": "internal:role=heading[level=2]", "expression": "to.have.text",
                                    "expectedText": [{"string": "Welcome Eve"}]}},
    {"type": "log", "callId": "7", "time": 10900.0, "message": '     - unexpected value "Welcome Ada"'},
    {"type": "after", "callId": "7", "endTime": 11955.0, "error": {"message": "Expect failed", "name": "ExpectError"}},
    {"type": "before", "callId": "9", "startTime": 11960.0, "class": "Frame", "method": "click", "params": {"selector": "a"}},
]  # fmt: skip
REQUEST = {
    "request": {"method": "POST", "url": "http://x/login"},
    "response": {"status": 401},
    "_monotonicTime": 10300.0,
}


def write_trace(path: Path, lines: list[Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.trace", "\n".join(json.dumps(one) for one in lines))
        archive.writestr("trace.network", json.dumps({"type": "resource-snapshot", "snapshot": REQUEST}))
        for name in ("screencast/1.png", "screencast/2.png"):
            archive.writestr(name, png())
    return path


def test_a_trace_comes_in_with_its_actions(lab: Lab) -> None:
    """The lines are those of a real trace of pytest-playwright, shortened."""
    path = write_trace(lab.project / "trace.zip", [*TRACE, ["odd"], {"type": "before"}, {"type": "_x"}])
    (run,) = lab.command("import", path=str(path))["runs"]
    lab.work()
    shown = lab.view("show", run=run["id"])
    titles = [step["description"] for step in shown["plan"]]
    assert titles == ["goto /login", "fill “Password”", 'Expect "to_have_text" heading', "click a"]
    assert [step["verdict"] for step in shown["plan"]] == ["passed", "passed", "failed", "interrupted"]
    broken = shown["plan"][2]["attempts"][0]
    assert (broken["expected"], broken["received"]) == ("to have text Welcome Eve", "Welcome Ada")
    told = {(one["type"], one["message"], one["stepNumber"]) for one in shown["problems"]}
    assert {("console", "login failed", 1), ("network", "POST http://x/login → 401", 2)} <= told
    assert len(shown["shots"]) == 4
    assert "lovelace" not in lab.view("report", run=run["id"])
    assert lab.replayed() == []


@pytest.mark.parametrize("content", [b"PK no archive", b""])
def test_what_is_no_trace_is_refused(lab: Lab, content: bytes) -> None:
    (lab.project / "trace.zip").write_bytes(content)
    with pytest.raises(CommandRefused, match="cannot be read as a trace"):
        lab.command("import", path=str(lab.project / "trace.zip"))
    path = write_trace(lab.project / "empty.zip", TRACE[:1])
    with pytest.raises(CommandRefused, match="no actions"):
        lab.command("import", path=str(path))


def test_a_file_imported_again_is_the_run_that_is_there(lab: Lab) -> None:
    path = lab.project / "results.json"
    path.write_text(json.dumps(suite()))
    first = lab.command("import", path=str(path))
    assert first["again"] is False
    # A copy is the same file; what counts is what is in it.
    copied = lab.project / "copied" / "results.json"
    copied.parent.mkdir()
    copied.write_bytes(path.read_bytes())
    for again in (path, copied):
        lab.now += 60_000
        answer = lab.command("import", path=str(again))
        assert answer["again"] is True
        assert [run["id"] for run in answer["runs"]] == [run["id"] for run in first["runs"]]
    assert len(lab.view("list")["runs"]) == 1
    changed = suite()
    changed["suites"][0]["specs"].pop()
    path.write_text(json.dumps(changed))
    assert lab.command("import", path=str(path))["again"] is False
    assert len(lab.view("list")["runs"]) == 2
    # Under another scenario's name it is a run of that one.
    assert lab.command("import", path=str(path), scenario="nightly")["again"] is False
    assert lab.replayed() == []

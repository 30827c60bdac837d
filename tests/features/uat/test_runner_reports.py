"""Reports of test runners come in as runs with the same numbers as the runner's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import CommandRefused
from tests.features.uat.kit import Lab

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

"""JUnit reports that the settings name."""

from pathlib import Path

import pytest

from holdfast.features.project.jobs import reports

JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="a" tests="4">
<testcase classname="t.A" name="ok"/><testcase classname="t.A" name="bad"><failure message="x">no</failure></testcase>
<testcase classname="t.A" name="broken"><error/></testcase><testcase classname="t.A" name="left"><skipped/></testcase>
</testsuite></testsuites>"""


def test_junit_reports(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/r.xml").write_text(JUNIT)
    (run,) = reports.read_reports(str(tmp_path), ["out/*.xml"], {})
    assert (run.passed, run.failed, run.skipped) == (1, 2, 1)
    assert run.failures == ["t.A::bad", "t.A::broken"]
    assert reports.read_reports(str(tmp_path), ["out/*.xml"], {run.name: run.written}) == [], (
        "the same report is no news"
    )


@pytest.mark.parametrize(
    "text", ["", "<a>", "<html></html>", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>']
)
def test_a_report_that_is_none_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.xml").write_text(text)
    found = reports.read_reports(str(tmp_path), ["r.xml"], {})
    assert found == []


def test_reports_are_only_looked_for_below_the_project(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(JUNIT)
    inside = tmp_path / "inside"
    inside.mkdir()
    assert reports.read_reports(str(inside), ["../r.xml", str(tmp_path / "r.xml")], {}) == []

"""Reports to hand on, and two runs side by side."""

import html.parser
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

import msgspec
import pytest

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.report import render_report
from holdfast.features.uat.report.page import build_page
from tests.features.uat.kit import CLICK, FILL, LOGIN, NAVIGATE, SHOT, SNAPSHOT, URL, Lab
from tests.features.uat.pictures import png
from tests.features.uat.policy.test_derive import PAGE

EVIL = "</pre><script>alert(1)</script>\"'&<img src=x onerror=1>"
PROMPT = "Please test the login flow scenario"


def played(lab: Lab, page: str = PAGE, took: int = 100, colour: int = 0) -> str:
    """A whole run; its id."""
    lab.now += 60_000
    lab.hook("UserPromptSubmit", prompt=PROMPT)
    lab.tool(NAVIGATE, {"success": True, "url": URL}, url=URL)
    lab.tool(FILL, took=took, selector="#email")
    lab.tool(CLICK, selector="#go")
    lab.tool(SNAPSHOT, page)
    (lab.project / "a.png").write_bytes(png(10, 10, (colour, 0, 0)))
    lab.tool(SHOT, "### Result\n- [Screenshot of viewport](a.png)")
    lab.hook("Stop", last_assistant_message="done")
    lab.work()
    return lab.run["id"]


class Tags(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_a_report_is_written_when_a_run_ends(lab: Lab) -> None:
    lab.scenario()
    run = played(lab)
    text = (lab.project / "uat" / "reports" / f"{run}.html").read_text()
    assert '<span class="verdict passed">passed</span>' in text
    assert "Navigate to login page" in text
    assert "<svg" in text
    assert text.count('<img alt="') == 2, "in its step, and small in the filmstrip"
    assert lab.document["artifacts"]["reports"][0]["format"] == "html"


def test_html_stands_alone_without_script_or_address(lab: Lab) -> None:
    lab.scenario()
    text = render_report(_record(lab, played(lab)), "html").decode()
    found = Tags(text)
    assert not {"script", "link", "iframe", "object", "form", "a"} & set(found.tags)
    for name, value in found.attributes:
        assert name != "src" or value.startswith(("data:image/png;base64,", "data:image/jpeg;base64,"))
        assert not name.startswith("on")
        assert name not in ("href", "action")
    assert "url(" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", ["html", "markdown", "junit"])
def test_hostile_text_stays_text(lab: Lab, name: str) -> None:
    lab.scenario(LOGIN.replace("Fill login credentials", msgspec.json.encode(EVIL).decode()))
    lab.hook("UserPromptSubmit", prompt=f"{PROMPT} {EVIL}")
    lab.tool(NAVIGATE, EVIL, url=URL, x=EVIL)
    lab.failed(FILL, EVIL, selector="\x00\x1b[31m\ud800")
    lab.command("assert", description=EVIL, result="failed", actual="\x07\x0b]]>")
    lab.command("end")
    made = render_report(lab.record, name).decode()
    assert "<script>" not in made
    assert "<img src=x" not in made
    if name == "junit":
        Xml.fromstring(made)
    if name == "html":
        assert "script" not in Tags(made).tags


def test_junit_says_what_passed_failed_and_was_not_reached(lab: Lab) -> None:
    lab.scenario()
    lab.hook("UserPromptSubmit", prompt=PROMPT)
    lab.tool(NAVIGATE, url=URL)
    lab.failed(FILL, "no such field", selector="#x")
    lab.command("end")
    suite = Xml.fromstring(render_report(lab.record, "junit")).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "1", "4")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "no such field"
    assert suite.findall("testcase")[0].get("time") == "0.100"


def test_markdown_names_steps_assertions_and_pictures(lab: Lab) -> None:
    lab.scenario()
    text = render_report(_record(lab, played(lab, "### Page\nWrong password")), "markdown").decode()
    assert text.startswith("# UAT: login-flow: failed")
    assert "| ✓ | 1. Navigate to login page |" in text
    assert "**failed** The user is welcomed" in text
    (path,) = re.findall(r"\]\(<(.*)>\)", text)
    assert (lab.project / "uat" / "reports" / path).resolve().is_file()


def test_a_picture_that_is_gone_is_said(lab: Lab) -> None:
    lab.scenario()
    run = played(lab)
    for path in (lab.project / "uat" / "screenshots" / run).iterdir():
        path.unlink()
    assert "the picture is gone" in render_report(lab.record, "html").decode()


def test_a_picture_swapped_for_a_link_is_not_followed(lab: Lab) -> None:
    lab.scenario()
    run = played(lab)
    secret = lab.project.parent / "secret"
    secret.write_bytes(b"SECRET" * 10)
    (path,) = (lab.project / "uat" / "screenshots" / run).iterdir()
    path.unlink()
    path.symlink_to(secret)
    assert "the picture is gone" in render_report(lab.record, "html").decode()


def test_the_summary_counts_passed_failed_and_what_was_not_reached(lab: Lab) -> None:
    lab.scenario()
    whole = build_page(_record(lab, played(lab)))["tiles"]
    assert whole[:-1] == [
        ("5/5", "steps passed", ""), ("0", "failed", ""), ("0", "flaky", ""), ("1/1", "assertions held", ""),
    ]  # fmt: skip
    assert whole[-1][1] == "took"
    lab.now += 60_000
    lab.hook("UserPromptSubmit", prompt=PROMPT)
    lab.tool(NAVIGATE, {"success": True, "url": URL}, url=URL)
    lab.failed(FILL, "Timeout 30000ms exceeded", selector="#gone")
    lab.command("end", run=lab.run["id"])
    assert ("1/5", "steps passed", "") in (tiles := build_page(lab.record)["tiles"])
    assert {("1", "failed", "bad"), ("3", "not reached", "wait"), ("0/1", "assertions held", "")} <= set(tiles)
    lab.now += 60_000
    lab.hook("UserPromptSubmit", prompt=PROMPT)
    lab.tool(NAVIGATE, {"success": True, "url": URL}, url=URL)
    lab.before(FILL, "cut-off", selector="#email")
    lab.command("end", run=lab.run["id"])
    assert ("1", "interrupted", "wait") in build_page(lab.record)["tiles"]


def test_without_assertions_there_is_no_figure_for_them(lab: Lab) -> None:
    lab.scenario(LOGIN.partition("assertions:")[0])
    labels = [label for _, label, _ in build_page(_record(lab, played(lab)))["tiles"]]
    assert labels == ["steps passed", "failed", "flaky", "took"]


def test_slow_steps_are_marked(lab: Lab) -> None:
    lab.scenario(LOGIN.replace("{action: fill,", "{action: fill, expected_ms: 50,"))
    text = render_report(_record(lab, played(lab)), "html").decode()
    assert "100 ms, expected 50 ms" in text
    assert "completed slow" in text


def test_a_run_that_has_not_begun_its_steps_can_be_reported(lab: Lab) -> None:
    lab.scenario()
    lab.command("start", scenario="login-flow")
    for name in ("html", "markdown", "junit"):
        assert render_report(lab.record, name)


def test_an_unknown_format_is_refused(lab: Lab) -> None:
    lab.scenario()
    lab.command("start", scenario="login-flow")
    with pytest.raises(CommandRefused, match="html, markdown, junit"):
        lab.command("report", formats=["pdf"])


def test_two_runs_side_by_side(lab: Lab) -> None:
    lab.scenario()
    before = played(lab)
    after = played(lab, "### Page\nWrong password\n[ERROR] boom @ x", took=900, colour=200)
    told = lab.view("compare", run=before, other=after)
    assert [s["change"] for s in told["steps"]] == ["", "slower", "", "", ""]
    assert (told["before"]["outcome"], told["after"]["outcome"]) == ("passed", "failed")
    assert told["assertions"] == [{"description": "The user is welcomed", "was": "passed", "now": "failed"}]
    assert told["warnings"]["new"] == ["boom @ x"]
    asked = lab.command("compare", run=before, other=after)
    lab.work()
    (pair,) = lab.view("done", key=asked["done"])["pairs"]
    assert pair["share"] == 1.0
    back = lab.view("compare", run=after, other=before)
    assert [s["change"] for s in back["steps"]] == ["", "faster", "", "", ""]
    assert back["warnings"] == {"new": [], "gone": ["boom @ x"]}


def test_runs_of_two_scenarios_are_not_compared(lab: Lab) -> None:
    lab.scenario()
    one = played(lab)
    lab.command("start", scenario="other", ad_hoc=True)
    with pytest.raises(CommandRefused, match="two scenarios"):
        lab.view("compare", run=one, other=lab.run["id"])


def _record(lab: Lab, run: str):
    assert lab.run["id"] == run
    return lab.record


def test_everything_a_view_gives_can_be_sent(lab: Lab, tmp_path: Path) -> None:
    lab.scenario()
    run = played(lab)
    for name in ("list", "show", "document", "signals", "report", "scenarios", "validate", "schema", "place", "active"):
        msgspec.json.encode(lab.view(name, run=run, calls=True))

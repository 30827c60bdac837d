"""History and cost on the page, over the API and on the command line: the same, and each hit leads to its row."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.doors.web.screens.finding_pages import EDITORS, _why_no_code, editor_link
from tests.doors.web.conftest import Door
from tests.kit import wait_until


def _indexed(door: Door) -> bool:
    told = door.api("history?q=test")["data"]
    return bool(told["indexed"] >= told["head"])


def test_a_hit_on_the_page_opens_the_timeline_at_its_row(lived_in: Door):
    wait_until(lambda: _indexed(lived_in), "the log is indexed")
    hits = lived_in.api("history?q=lint&failed=true")["data"]["hits"]
    assert [(hit["kind"], hit["session"]) for hit in hits] == [("tool.failed", "first")]
    page = lived_in.page("/search?q=lint")
    assert f'href="/session/first#e{hits[0]["seq"]}"' in page
    assert f'id="e{hits[0]["seq"]}"' in lived_in.page("/session/first")


def test_without_an_index_no_project_is_named_that_was_not_chosen():
    missing: Any = [("/work/shop", {"problem": "/work/shop has no index"})]
    everywhere: Any = SimpleNamespace(project="")
    assert "None of your latest projects has an index" in _why_no_code(everywhere, missing)
    chosen: Any = SimpleNamespace(project="/work/shop")
    assert _why_no_code(chosen, missing) == "/work/shop has no index"


def test_the_command_line_says_the_same(lived_in: Door):
    wait_until(lambda: _indexed(lived_in), "the log is indexed")
    world = lived_in.world
    assert world.json("history", "faster")["hits"] == lived_in.api("history?q=faster")["data"]["hits"]
    assert world.json("history", "make", "--session", "first", "--tool", "Bash", "--failed")["hits"][0]["failed"]
    assert world.json("history", "a.py", "--file", "a.py", "--since", "1h", "--here")["hits"]
    assert "No results in any session" in world.cli("history", "zzzz")
    assert "No results with these filters" in world.cli("history", "faster", "--agent", "nobody")


@pytest.mark.parametrize(
    ("editor", "link"),
    [
        ("vscode", "vscode://file/home/ada/my%20app/src/a.py:7"),
        ("idea", "idea://open?file=/home/ada/my%20app/src/a.py&line=7"),
        ("emacs://{path}#{line}", "emacs:///home/ada/my%20app/src/a.py#7"),
        ("off", ""), ("javascript:alert('{path}')", ""), ("https://example.org/{path}", ""), ("vim", ""),
    ],
)  # fmt: skip
def test_a_code_hit_leads_into_the_editor(editor: str, link: str) -> None:
    assert editor_link(EDITORS.get(editor, editor), "/home/ada/my app", "src/a.py", 7) == link


def test_the_page_narrows_the_history(lived_in: Door):
    wait_until(lambda: _indexed(lived_in), "the log is indexed")
    assert 'class="card hit" id="h' in lived_in.page("/search?q=lint&tool=Bash&since=7d")
    narrowed = lived_in.page("/search?q=lint&tool=Nothing&since=7d")
    assert 'class="card hit" id="h' not in narrowed
    assert "No results with these filters" in narrowed and 'href="/search?q=lint"' in narrowed


def test_cost_on_the_page(lived_in: Door):
    assert "Cost" in lived_in.page("/cost")
    for by in ("day", "month", "session", "project", "agent", "model", "branch", "block"):
        lived_in.page(f"/cost?by={by}&days=all")
        assert lived_in.api(f"cost?by={by}")["data"] == lived_in.world.json("cost", by)


def test_checks_are_shown_with_verdict_and_reason(lived_in: Door) -> None:
    for path in ("/session/first", "/gates"):
        page = lived_in.page(path)
        assert "make test shows no summary of a test run" in page, path

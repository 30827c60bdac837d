"""Text from events is shown as text: no markup, no control characters, no surprises."""

import pytest
from rich.text import Text

from holdfast.core.times import time_ago
from holdfast.doors.cli import board, render, up


@pytest.mark.parametrize("text", ["[redacted:key]", "[bold]not bold[/bold]", "a [link=x]y[/link]"])
def test_brackets_are_text(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = render.plain_table("title")
    table.add_row(text)
    render.out.print(table)
    render.out.print(text)
    assert capsys.readouterr().out.count(text) == 2


def test_control_characters_are_left_out() -> None:
    assert render.clean_line("a\x1b[31mred\x07\u202e b") == "ared b"


def test_counts_are_readable() -> None:
    assert [render.counted(n, "event") for n in (0, 1, 87878)] == ["0 events", "1 event", "87,878 events"]


def test_long_text_is_cut_with_a_mark() -> None:
    assert render.clean_line("x" * 500, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("seconds", "said"), [(3, "3 s ago"), (125, "2 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")]
)
def test_ages(seconds: int, said: str) -> None:
    assert time_ago(0, seconds * 1000) == said


def test_a_narrow_terminal_loses_columns_and_never_ids(capsys: pytest.CaptureFixture[str]) -> None:
    console = render.VisibleConsole(width=40, markup=False, highlight=False)
    table = render.plain_table("", "session", "project", "state", "turns", "what")
    table.add_row("●", "55555553", "a-project-name", "working", "1", "a long text that has to be cut somewhere")
    console.print(table)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert "55555553" in lines[1] and "a long" in lines[1] and "turns" not in lines[0]


def test_the_board_never_scrolls() -> None:
    drawn = board.fit_screen("\n".join(f"line {n}" for n in range(60)) + "\n", 24)
    assert drawn.count("\n") < 24
    assert "line 0" in drawn and "line 59" in drawn and "more lines" in drawn
    assert board.fit_screen("one\ntwo\n", 24).count("\n") == 2


def test_columns_that_stay_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    console = render.VisibleConsole(width=60, markup=False, highlight=False)
    table = render.plain_table("requirement", "type", "scope", "resolved by")
    table.add_row("review_before_commit", "blocking", "single_use", "a long text that has to be cut somewhere")
    console.print(table)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert lines[1].split()[:3] == ["review_before_commit", "blocking", "single_use"]


def test_a_line_that_says_nothing_more_ends_there() -> None:
    event = {"seq": 7, "at": 0, "kind": "project.look_asked", "session": "", "tool": "", "data": {}}
    assert render.event_line(event).plain.endswith("project.look_asked")


def test_the_next_command_is_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "out", render.VisibleConsole(width=60, force_terminal=True))
    line = Text("  x trust     Codex skips the hooks until they are reviewed")
    assert up.with_next(line.copy(), "→ start codex").plain.splitlines()[1].strip() == "→ start codex"
    monkeypatch.setattr(render, "out", render.VisibleConsole(width=90, force_terminal=True))
    assert "\n" not in up.with_next(line.copy(), "→ start codex").plain


def test_a_number_is_never_cut_but_the_name_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    console = render.VisibleConsole(width=60, markup=False, highlight=False)
    table = render.plain_table("project")
    for name in ("input", "output", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(
        "/home/somebody/work/a-folder-with-a-very-long-name-that-goes-on", "18,212,273", "2,542,217", "$684.59"
    )
    console.print(table)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert lines[1].endswith("$684.59") and "18,212,273" in lines[1] and "…" in lines[1]

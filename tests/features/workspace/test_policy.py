"""Which uncommitted lines a command may discard, read from its text."""

import pytest

from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.agent_events import OwnedLines
from holdfast.features.workspace.policy import (
    EVERYTHING,
    MOST_ENDANGERED,
    NOT_KEPT,
    decide,
    discarded_files,
    is_among,
    name_lines,
    spares_committed,
)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        # What lies elsewhere, or is not named, is not in danger.
        ("rm -rf /tmp/build", ("/tmp/build",)),
        ("cd sub && rm *.log", ("/p/sub/*.log",)),
        ("git checkout HEAD -- a", ("/p/a",)),
        ("git checkout --quiet main", ()),
        ("git checkout --detach", ()),
        ("ls", ()),
        # Where the names are not known, everything may be meant.
        ("git reset --hard", EVERYTHING),
        ("rm /tmp/x && git stash", EVERYTHING),
        ("git checkout -f main", EVERYTHING),
        ("git checkout .", EVERYTHING),
        ("git -C sub restore a", EVERYTHING),
        ("ls | xargs rm", EVERYTHING),
        ('rm "$file"', EVERYTHING),
    ],
)
def test_what_a_command_may_discard(command: str, files: tuple[str, ...]) -> None:
    assert discarded_files(command, "/p") == files


def test_only_git_clean_spares_what_is_committed() -> None:
    assert [spares_committed(one) for one in ("git clean -fd", "git clean -fd && git reset --hard")] == [True, False]


def test_a_folder_and_a_pattern_name_what_is_in_them() -> None:
    assert [is_among(path, ("/p/sub", "/p/*.md")) for path in ("/p/sub/a/b", "/p/x.md", "/p/subway", "/p/a")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "promise"),
    [
        (["1", ""], "They can be restored with: holdfast undo"),
        (["1", NOT_KEPT], "What is not kept cannot be restored. The others can be restored with: holdfast undo"),
        ([NOT_KEPT], "What is not kept cannot be restored."),
    ],
)
def test_nothing_is_promised_of_what_is_not_kept(lines: list[str], promise: str) -> None:
    data = ToolPayload(action="shell", endangered=[OwnedLines(f"f{n}", "", one) for n, one in enumerate(lines)])
    event = Event(key="k", kind="tool.started", at=1, session="s", data=data)
    decision = decide(None, event, None)
    assert decision and decision.contexts[0].text.endswith(f". {promise}")
    assert ("(not kept, by a person)" in decision.contexts[0].text) == (NOT_KEPT in lines)


def test_a_list_that_was_cut_says_so() -> None:
    many = [OwnedLines(f"f{n}", "", "1") for n in range(MOST_ENDANGERED)]
    assert name_lines(many).endswith("and at least 42 more") and name_lines(many[:10]).endswith(") and 2 more")


def test_a_name_with_a_line_break_stays_on_its_line() -> None:
    assert "\n" not in name_lines([OwnedLines("a\nb", "", "1")])

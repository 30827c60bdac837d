"""What a command may start, also where it is hidden in a corner of the shell."""

import pytest

from holdfast.analysis.shell.analysis import analyse_command
from holdfast.analysis.shell.command_effects import read_acts

PUSH = "git push"


@pytest.mark.parametrize(
    "command",
    [
        'set -- x git push; shift; "$@"',
        'set -- a b git push; shift 2; "$@"',
        "echo hi > >(git push)",
        "make 2> >(tee log >&2) > >(git push)",
        "cat > notes <<'EOF'\n" + "a line of notes\n" * 4_000 + "EOF\ngit push",
    ],
    ids=["shift", "shift by two", "into a program", "two of them", "behind a long text"],
)
def test_a_push_is_seen(command: str) -> None:
    assert PUSH in read_acts(command).readings


def test_make_that_only_marks_targets_is_read_as_one_that_makes_them() -> None:
    """Lines behind `+` run all the same."""
    assert "make deploy" in read_acts("make -t deploy").readings
    assert not read_acts("make -n deploy").readings


def test_what_is_behind_the_limit_is_said_to_be_hidden() -> None:
    assert read_acts(":" + " " * 30_000 + "; git push").hidden
    text = "cat > notes <<'EOF'\n" + "a line of notes\n" * 4_000 + "EOF\n"
    assert not read_acts(text).hidden  # The text of a file starts nothing.


def test_a_flag_that_is_a_value_makes_no_dry_run() -> None:
    assert "npm publish --tag --help" in read_acts("npm publish --tag --help").readings
    assert read_acts("npm publish --dry-run").readings == ()
    assert read_acts("helm upgrade --install --dry-run x").readings == ()


def test_every_folder_that_find_deletes_in_is_written() -> None:
    assert read_acts("find a b -name '*.pyc' -delete").writes == ("a/**", "b/**")


def test_a_name_that_is_read_may_be_anything() -> None:
    acts = read_acts("a=ls; input | while read a b; do $a; done")
    assert acts.hidden


@pytest.mark.parametrize(
    "command",
    ["exit --5", "ls {-1..1000000000}", "ls {1.." + "9" * 5_000 + "}", "[ --5 -eq 5 ]", "shift --5", "shift 99"],
)
def test_strange_numbers_are_bounded_and_raise_nothing(command: str) -> None:
    analyse_command(command)
    assert len(read_acts(command).readings) <= 64

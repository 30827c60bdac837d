"""Spellings that the grammar does not know are read as the shell reads them."""

import pytest

from holdfast.analysis.shell.analysis import Ran, analyse_command
from holdfast.analysis.shell.command_effects import read_acts


@pytest.mark.parametrize(
    "command",
    [
        "{git,commit} -m x", "{git,commit,-m,x}", "cd a && {git,commit,-m,x}", "if true; then {git,commit} -m x; fi",
        "coproc (git commit -m x)", "coproc SHIP (git commit -m x)", "coproc SHIP { git commit -m x; }",
    ],
)  # fmt: skip
def test_a_commit_is_seen(command: str) -> None:
    acts = read_acts(command, "/p")
    assert "git commit -m x" in acts.readings
    assert not acts.problem


@pytest.mark.parametrize(
    "command", ["echo '{git,commit}'", "echo {git,commit}", "grep '; {git,commit}' x", "awk '{print $1,$2}' a", "echo coproc X"]
)  # fmt: skip
def test_words_are_not_commands(command: str) -> None:
    assert not any(one.startswith("git") for one in read_acts(command, "/p").readings)


def test_the_end_of_a_coprocess_is_not_known() -> None:
    run = analyse_command("coproc (pytest -q)", 0).commands[0]
    assert run.words == ["pytest", "-q"]
    assert (run.ran, run.exit_code) != (Ran.YES, 0)

"""Bad input: never an exception, and no more work than is bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.analysis.shell.analysis import analyse_command
from holdfast.analysis.shell.parse import MAX_CHARACTERS, ShellTooLarge, parse_command

PIECES = st.sampled_from(
    ["pytest -q", "|", "&&", "||", ";", "(", ")", "{ ", " }", "$(", "`", "'", '"', "<<E\n", "E\n", "if ", "then ", "fi", "for i in a; do ", "done", "\n", "&", ">f", "2>&1",
     "cd x", "exit 0", "!", "$?", "${A:-b}", "case x in", "esac", "f() ", "trap 'x' EXIT", "set -e", "\\", "#", "echo ", "tail -1", "while ", "[[ -n $x ]]", "((1))", "eval ", "bash -c "]
)  # fmt: skip


@given(st.text(max_size=200), st.one_of(st.none(), st.integers(-300, 300)))
def test_any_text_is_survived(text: str, code: int | None) -> None:
    analyse_command(text, code, text, text)


@given(st.lists(PIECES, max_size=25).map(" ".join), st.integers(0, 255))
def test_any_mixture_of_shell_is_survived(text: str, code: int) -> None:
    analyse_command(text, code, "x\n1\n", "")


@given(st.binary(max_size=200))
def test_bytes_are_survived(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    analyse_command(text, 0, text, text)


LARGE = {
    "one megabyte": "x" * 1_000_000,
    "megabyte of commands": "a; " * 350_000,
    "nested subshells": "(" * 10_000 + "a" + ")" * 10_000,
    "nested substitutions": "$(" * 10_000 + "a" + ")" * 10_000,
    "nested quotes": "'" * 9_999,
    "ten thousand stages": "a | " * 10_000 + "b",
    "ten thousand alternatives": "a || " * 10_000 + "b",
    "nested ifs": "if a; then " * 2_000 + "b" + "; fi" * 2_000,
    "deep but small": "( " * 200 + "a" + " )" * 200,
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_what_is_too_large_is_refused(text: str) -> None:
    analysis = analyse_command(text, 0)
    assert analysis.problem and analysis.commands == []


def test_size_is_looked_at_before_anything_else() -> None:
    with pytest.raises(ShellTooLarge):
        parse_command("a" * (MAX_CHARACTERS + 1))


def test_a_large_heredoc_is_no_large_command() -> None:
    body = "line of a file (with; signs | in it)\n" * 5_000
    analysis = analyse_command(f"cat > f <<'E'\n{body}E\nt", 3)
    assert [c.exit_code for c in analysis.commands if c.words[0] == "t"] == [3]


def test_many_undecided_commands_stay_bounded() -> None:
    analysis = analyse_command("; ".join(f"(a{n} || true)" for n in range(40)) + "; t", 0)
    assert analysis.problem or [c.exit_code for c in analysis.commands if c.words[0] == "t"] == [0]


HOSTILE = {
    "closing parentheses": ")" * 20_000,
    "thousands of words": "echo " + "a " * 15_000,
    "thousands of variables": "echo " + "$a" * 10_000,
    "evals": "eval " * 500 + "'pytest'",
    "wrappers": "timeout 5 " * 2_000 + "pytest",
    "a heredoc of variables": "cat <<E\n" + "x $y\n" * 3_000 + "E\n" + "y; " * 1_999,
    "dollars beside a heredoc": "cat <<E\nE\n" + "$" * 390_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_takes_the_grammar_or_the_walk_too_long_is_refused_early(text: str) -> None:
    assert analyse_command(text, 0).problem


def test_a_command_that_was_followed_once_is_judged_afresh_each_time() -> None:
    first, second = analyse_command("a && b", 0), analyse_command("a && b", 3)
    assert [c.exit_code for c in first.commands] == [0, 0]
    assert [c.exit_code for c in second.commands] == [None, None] or second.commands[0].exit_code != 0
    assert [c.exit_code for c in analyse_command("a && b", 0).commands] == [0, 0]

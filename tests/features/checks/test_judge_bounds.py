"""Whatever a command or its output holds: no exception, and no proof from what failed."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.checks.judge import judge_command
from holdfast.features.checks.runners.attribution import clean_output

FAILING = (
    "=================================== FAILURES ===================================\n1 failed, 2 passed in 0.05s\n"
)
PASSING = "...                                                                      [100%]\n3 passed in 0.05s\n"
SUFFIXES = st.sampled_from(
    [
        "",
        "; true",
        " || true",
        " | cat",
        " | tail -1",
        "; echo done",
        " && echo ok",
        " 2>&1 | tee f",
        "; exit 0",
        " &",
        " | grep passed",
        "; git status",
        " || echo bad",
        "; :",
    ]
)
PREFIXES = st.sampled_from(
    [
        "",
        "cd a && ",
        "set -e; ",
        "timeout 9 ",
        "FOO=1 ",
        "true && ",
        "echo x; ",
        "ls; ",
        "(",
        "if ",
        "! ",
        "time ",
        "bash -c '",
        "x=$(",
    ]
)
CLOSE = {"(": ")", "if ": "; then :; fi", "bash -c '": "'", "x=$(": ")"}


@given(PREFIXES, SUFFIXES, st.integers(0, 3))
def test_a_failing_summary_is_never_a_proof(prefix: str, suffix: str, code: int) -> None:
    command = f"{prefix}pytest -q{CLOSE.get(prefix, '')}{suffix}"
    assert not judge_command(command, ".", code, FAILING, "").proves_tests_pass


@given(st.text(max_size=300), st.text(max_size=300), st.one_of(st.none(), st.integers(-5, 300)))
def test_any_output_is_survived(out: str, err: str, code: int | None) -> None:
    for command in ("pytest -q", "make test | tail -3", "npm test; go test ./...; cargo test", "git commit -m x"):
        judge_command(command, ".", code, out, err)


@given(st.binary(max_size=400))
def test_any_bytes_are_survived(data: bytes) -> None:
    text = data.decode("latin-1")
    judge_command(text, text, 0, text, text)
    clean_output(text)


def test_a_cut_summary_is_no_summary() -> None:
    for length in range(len(PASSING)):
        judged = judge_command("pytest -q; true", ".", 0, PASSING[:length], "")
        assert not judged.proves_tests_pass or "passed in 0.05s" in PASSING[:length]


def test_a_command_that_is_too_large_is_unknown() -> None:
    judged = judge_command("pytest; " * 200_000, ".", 0, PASSING, "")
    assert not judged.proves_tests_pass and "too large" in judged.why


def test_thousands_of_heredocs_are_too_much_to_follow_and_hundreds_are_not() -> None:
    one = "cat <<A >f\nx\nA\n"
    assert "too large" in judge_command(f"{one * 2_000}pytest -q", ".", 0, PASSING, "").why
    assert judge_command(f"{one * 20}pytest -q", ".", 0, PASSING, "").proves_tests_pass

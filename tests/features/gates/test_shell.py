"""What a command proves by exiting 0, and what is a command of ours."""

import time

import pytest

from holdfast.features.gates.shell import commits, is_ours, proven, readings, single_blanks


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("pytest -q", ["pytest -q"]),
        ("cd api && pytest -q", ["pytest -q", "cd api"]),
        ("pytest | tail", ["tail"]),
        ("pytest; true", ["true"]),
        ("pytest\ntrue", ["true"]),
        ("pytest || true", []),
        ("false || pytest && ls", ["ls"]),
        ("false || pytest | tail", []),
        ("pytest && git diff | head", ["head", "pytest"]),
        ("pytest -q 2>&1", ["pytest -q 2>&1"]),
        ("pytest &> out.txt", ["pytest &> out.txt"]),
        ("pytest &", []),
        ("pytest;", ["pytest"]),
        ("echo 'a && pytest'", ["echo 'a && pytest'"]),
        ('echo "x; pytest"', ['echo "x; pytest"']),
        ("echo a \\&\\& pytest", ["echo a \\&\\& pytest"]),
        ("cat <<E\npytest\nE", []),
        ("echo 'never closed && pytest", []),
        ("", []),
    ],
)
def test_only_what_the_exit_code_proves(command: str, parts: list[str]) -> None:
    assert list(proven(command)) == parts


@pytest.mark.parametrize(
    "command",
    ["CI=1 pytest -q", "uv run pytest -q", ".venv/bin/pytest -q", "python -m pytest -q", "time env A=b pytest -q"],
)
def test_what_only_runs_a_command_is_looked_through(command: str) -> None:
    assert "pytest -q" in proven(command)


@pytest.mark.parametrize(
    ("command", "yes"),
    [
        ("git commit -m 'x; y'", True),
        ("git add . && git commit -m x", True),
        ("git -C /x commit", True),
        ("git -c user.name='A B' -c a=b --no-pager commit -m x", True),
        ("git commit -m x | cat", False),
        ("git commit || true", False),
        ("echo git commit", False),
        ("git log --grep commit", False),
    ],
)
def test_a_commit_is_one_that_must_have_succeeded(command: str, yes: bool) -> None:
    assert commits(command) is yes


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("holdfast gate satisfy commit_plan", True),
        ("/opt/bin/holdfast gate status", True),
        ("holdfast gate status; git commit -m x", False),
        ("holdfast gate status && rm -rf .", False),
        ("holdfast gate status $(rm x)", False),
        ("holdfast gate status `rm x`", False),
        ("holdfast gateway", False),
        ("echo holdfast gate", False),
    ],
)
def test_only_the_gates_own_command_alone_is_exempt(command: str, ours: bool) -> None:
    assert is_ours(command) is ours


@pytest.mark.parametrize(
    "command",
    ["git -C /x commit", "cd a && git  -c user.name='A B' --no-pager commit", "git --git-dir .g --work-tree . commit"],
)
def test_options_between_git_and_its_verb_are_no_way_around_a_pattern(command: str) -> None:
    assert any("git commit" in text for text in readings(command))


def test_no_command_makes_this_slow() -> None:
    began = time.perf_counter()
    for hostile in (
        "git" + " -c a=b" * 1300,
        "git -" + "-x " * 1900,
        "'" * 3999,
        'git -c "' + "a' " * 1300,
        "\\" * 3999,
    ):
        readings(hostile)
        proven(hostile)
    assert time.perf_counter() - began < 2


def test_runs_of_blanks_are_one_and_lines_stay_lines() -> None:
    assert single_blanks("git \t  commit\n-m  x ") == "git commit\n-m x"

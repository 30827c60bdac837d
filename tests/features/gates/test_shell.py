"""What a command proves by exiting 0, and what is a command of ours."""

import pytest

from holdfast.features.gates.shell import commits, is_ours, proven, single_blanks


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
    "command", ["CI=1 pytest -q", "uv run pytest -q", ".venv/bin/pytest -q", "python -m pytest -q", "time env A=b pytest -q"]
)
def test_what_only_runs_a_command_is_looked_through(command: str) -> None:
    assert "pytest -q" in proven(command)


@pytest.mark.parametrize(
    ("command", "yes"),
    [
        ("git commit -m 'x; y'", True),
        ("git add . && git commit -m x", True),
        ("git -C /x commit", True),
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


def test_runs_of_blanks_are_one_and_lines_stay_lines() -> None:
    assert single_blanks("git \t  commit\n-m  x ") == "git commit\n-m x"

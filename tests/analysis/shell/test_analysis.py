"""Which programs of a command ran, and what the reported exit status tells of them."""

import pytest

from holdfast.analysis.shell.analysis import Ran, ShellCommand, analyse_command


def command(text: str, name: str, code: int | None = 0, stdout: str = "") -> ShellCommand:
    analysis = analyse_command(text, code, stdout)
    assert not analysis.problem
    return next(c for c in analysis.commands if c.words[0] == name)


VISIBLE = [
    "t", "cd a && t", "t && true", "true; t", "(t)", "{ t; }", "bash -c t", "bash -lc 't'", "timeout 5 t", "env A=1 t", "nice -n 3 t",
    "sudo -u x t", "t | cat; exit ${PIPESTATUS[0]}", "set -o pipefail; t | tail", "set -e; t; echo x", "t || exit 1", "t; exit $?",
    "t; rc=$?; echo x; exit $rc", "if t; then :; else exit 1; fi", "if ! t; then exit 1; fi", "t & wait $!", "x=$(t)", "f() { t; }; f",
    "eval t", "command t", "exec t", "uv run t", "uv run --extra dev t", "uvx t", "poetry run t", "npx t", "npx -y t", "bundle exec t",
    "docker run --rm -v a:b image t", "docker compose run --rm app t", "docker exec box t", "xvfb-run -a t", "stdbuf -oL t",
    "bash <<'E'\nt\nE", "C=t; bash <<E\n$C\nE", "echo t | sh", "C=t; $C", "${X:-t}", "for i in 1; do t; done", "case a in a) t;; esac", "time t",
    "pdm run t", "hatch run dev:t", "conda run -n e t", "pnpm exec t", "t; [ $? -eq 0 ]", "t; test $? = 0", "trap 'rm x' EXIT; t",
    "setsid t", "ionice -c 3 t", "nohup t", "bash -euo pipefail -c 't | cat'", "mise exec -- t", "flock f t", "t <<< x", "a=1 b=2 t",
]  # fmt: skip


@pytest.mark.parametrize("text", VISIBLE)
def test_the_status_shows(text: str) -> None:
    assert command(text, "t", 0).exit_code == 0
    assert command(text, "t", 0).ran is Ran.YES
    assert command(text, "t", 1).exit_code in (1, -1)


MASKED = [
    "t; true", "t || true", "t | cat", "t; echo x", "t &", "(t; true)", "bash -c 't; true'", "t | tee f", "set -e; t | cat",
    "set -o pipefail; set +o pipefail; t | cat", "trap 'exit 0' EXIT; t", "echo $(t)", "cat < <(t)", "x=$(t); true", "local x=$(t)",
    "find . -exec t {} \\;", "if t; then :; fi; true", "while t; do break; done; true", "f() { t || true; }; f", "t; :", "exit 0 | t; true",
    "t; [ $? -eq 1 ]", "t; [ $? -lt 2 ]", "t; test $? != 1",
]  # fmt: skip


@pytest.mark.parametrize("text", MASKED)
def test_the_status_does_not_show(text: str) -> None:
    assert not command(text, "t", 0).status_visible


DEAD = [
    "false && t",
    "true || t",
    "exit 0; t",
    "exec true; t",
    "if false; then t; fi",
    "set -n; t",
    "bash -n -c t",
    "f() { t; }",
    ": t",
    "# t",
    "echo t",
    "case a in b) t;; esac",
]


@pytest.mark.parametrize("text", DEAD)
def test_what_is_not_reached_did_not_run(text: str) -> None:
    commands = [c for c in analyse_command(text, 0).commands if c.words[0] == "t"]
    assert all(c.ran is Ran.NO for c in commands)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("cd a && t", "a"), ("cd a; cd b; t", "a/b"), ("(cd a); t", "."), ("pushd a; t", "a"), ("cd a && cd .. && t", "."), ("cd a/../b; t", "b"),
        ("env -C a t", "a"), ("uv --directory a run t", "a"), ("for d in x; do (cd $d && t); done", "x"), ("bash -c 'cd a; t'", "a"), ("cd /x; t", "/x"),
    ],
)  # fmt: skip
def test_the_folder_is_followed(text: str, folder: str) -> None:
    assert command(text, "t").invocation.cwd == folder


def test_a_printed_status_is_read() -> None:
    assert command("t >/dev/null; echo code=$?", "t", 0, "code=7\n").exit_code == 7
    assert command("t >/dev/null; printf 'code=%d\\n' $?", "t", 0, "code=7\n").exit_code == 7
    assert command("t | tail -1; echo ${PIPESTATUS[0]}", "t", 0, "x\n1\n").exit_code == 1
    assert command("t >/dev/null && echo yes || echo no", "t", 0, "no\n").exit_code == -1
    assert command("t >/dev/null && echo OK || echo NOT OK", "t", 0, "NOT OK\n").exit_code == -1


def test_where_output_goes() -> None:
    assert [p.filters for p in command("t 2>&1 | tail -3", "t").visible] == [("tail",)]
    assert command("t > /dev/null 2>&1", "t").visible == ()
    assert command("t > f 2>&1; cat f", "t").visible
    assert "rewritten" in command("t 2>/dev/null | sed s/a/b/", "t").visible[0].filters
    assert "rewritten" in command("t > f 2>&1; sed -i s/a/b/ f; cat f", "t").visible[0].filters


def test_names_that_were_given_another_meaning() -> None:
    assert command("t() { true; }; t", "t").invocation.shadowed
    assert not command("t() { true; }; command t", "t").invocation.shadowed
    assert command("PATH=x:$PATH t", "t").invocation.tampered
    assert not command("PATH=$HOME/.local/bin:$PATH t", "t").invocation.tampered
    assert command("source ./unknown.sh; t", "t").invocation.tampered
    assert not command("source .venv/bin/activate; t", "t").invocation.tampered
    assert command("ENV=./fake.sh t", "t").invocation.tampered
    assert not command("ENV=test t", "t").invocation.tampered

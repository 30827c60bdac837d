"""`holdfast checks …`: what a shell command really did, judged by the code that judges live calls."""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.core.errors import HoldfastError
from holdfast.core.text import escape_invisible, strip_controls

if TYPE_CHECKING:
    from holdfast.features.checks.judge import Judgement

app = typer.Typer(help="Look at what commands checked, and why it counts or does not.", no_args_is_help=True)


class Request(msgspec.Struct):
    """One line for `explain --json -`."""

    command: str
    cwd: str = "."
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None
    id: Any = None


@app.callback()
def _group() -> None:
    """Keeps `explain` a command of its own while it is the only one."""


@app.command()
def explain(
    command: Annotated[str, typer.Argument(help="The command, or - for JSON lines on standard input.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="How the command ended.")] = None,
) -> None:
    """Says which checks a command runs, and whether it proves that the tests pass."""
    if command == "-":
        _explain_lines(sys.stdin.buffer)
        return
    request = Request(command, exit_code=exit_code)
    if json:
        print(_answer(request))
    elif exit_code is not None:
        _show(_judge(request))
    else:
        for code in (0, 1):
            print(f"If it ends with {code}, and its output is not known:")
            _show(_judge(Request(command, exit_code=code)))


def _explain_lines(lines: Iterable[bytes]) -> None:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.DecodeError as error:
            raise HoldfastError(f"line {number} of standard input is not a command to explain: {error}") from None
        sys.stdout.write(_answer(request) + "\n")


def _judge(request: Request) -> "Judgement":
    from holdfast.features.checks.judge import judge_command
    from holdfast.features.checks.repository import RepositoryFiles

    root = os.getcwd()
    return judge_command(
        request.command,
        request.cwd,
        request.exit_code,
        request.stdout,
        request.stderr,
        root=root,
        read_file=RepositoryFiles(root).read,
    )


def _answer(request: Request) -> str:
    judgement = msgspec.to_builtins(_judge(request))
    answer = {"checks": judgement["checks"], "proves_tests_pass": judgement["proves_tests_pass"]}
    answer |= {"git": judgement["git"], "why": judgement["why"], "writes": judgement["writes"]}
    if request.id is not None:
        answer = {"id": request.id, **answer}
    return escape_invisible(msgspec.json.encode(answer).decode())


def _show(judgement: "Judgement") -> None:
    for check in judgement.checks:
        counts = f", {check.passed} passed, {check.failed} failed" if check.passed is not None else ""
        where = strip_controls(f"{check.kind} {check.runner} in {check.dir} ({check.selection})")
        print(f"  {where}: {check.verdict}{counts}: {strip_controls(check.why)}")
    for act in judgement.git:
        effect = {True: "took effect", False: "had no effect", None: "effect unknown"}[act.effective]
        print(f"  git {act.verb}: {effect}")
    print(
        f"  {'proves' if judgement.proves_tests_pass else 'does not prove'} that the tests pass: {strip_controls(judgement.why)}"
    )

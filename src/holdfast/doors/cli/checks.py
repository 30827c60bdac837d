"""`holdfast check …`: what a shell command really did, judged by the code that judges live calls."""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.core.errors import HoldfastError
from holdfast.core.text import escape_invisible, strip_controls
from holdfast.doors.cli.options import Json, Since, since_ms

if TYPE_CHECKING:
    from holdfast.features.checks.judge import Judgement

app = typer.Typer(help="Look at what commands checked, and why it counts or does not.", no_args_is_help=True)


class Request(msgspec.Struct):
    """One input line of `explain --json -`."""

    command: str
    cwd: str = "."
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None
    id: Any = None


@app.command("list")
def list_checks(
    json: Json = False,
    kind: Annotated[str, typer.Option("--kind", help="test, lint, types, format or build.")] = "",
    verdict: Annotated[str, typer.Option("--verdict", help="passed, failed, did_not_run or unknown.")] = "",
    since: Since = "",
) -> None:
    """List the latest run of each check here, newest first, and whether it is valid for the current content."""
    from holdfast.doors.cli import answered, render

    answer = answered.view(json, "checks.list", kind=kind, verdict=verdict, since=since_ms(since))
    if not answer["runs"]:
        render.out.print("No check ran here that Holdfast saw.")
    else:
        for run in answer["runs"]:
            render.out.print(_run_line(run))


@app.command()
def show(
    seq: Annotated[int, typer.Argument(help="The number of the check, as `list` shows it.")] = 0,
    kind: Annotated[str, typer.Option("--kind", help="Without a number: the nearest run of this kind.")] = "test",
    folder: Annotated[str, typer.Option("--dir", help="The folder that must be covered; . is all of it.")] = ".",
    json: Json = False,
) -> None:
    """Show one check with its reason; without a number, whether tests are proven to pass here and now."""
    from holdfast import client
    from holdfast.doors.cli import render

    answer = (
        client.ask_view("checks.show", seq=seq)
        if seq
        else client.ask_view("checks.explain_last", kind=kind, dir=folder)
    )
    render.finish_as_json(json, answer)
    if seq:
        _show_run(answer)
    else:
        _show_nearest(answer)


def _run_line(run: dict[str, Any]) -> str:
    from holdfast.core.ids import session_alias
    from holdfast.doors.cli import render

    state = {True: "", False: ", files changed since", None: ", content unknown"}[run["current"]]
    where = "" if run["here"] else f" on {run['branch'] or 'no branch'} in {run['worktree']}"
    who = "this session" if run["own"] else session_alias(run["session"])
    counts = f" ({run['counts']})" if run["counts"] else ""
    folder = "" if run["dir"] in ("", ".") else f" in {run['dir']}"
    what = f"{run['runner']}{folder}{where}: {run['verdict']}{counts}{state}"
    command = render.clean_line(run["command"], 60)
    return f"{run['seq']:>6}  {render.short_time(run['at'])}  {render.clean_line(what, 200)}  [{who}]  {command}"


def _show_run(run: dict[str, Any]) -> None:
    from holdfast.doors.cli import render

    lines = {
        "command": run["command"], "verdict": f"{run['verdict']}: {run['why']}", "where": run["worktree"],
        "folder": run["dir"], "branch": run["branch"], "commit": run["commit"][:12], "session": run["session"],
        "exit code": "not known" if run.get("exit_code") is None else str(run["exit_code"]),
        "content": run["content"].get("") or "not looked at in time",
    }  # fmt: skip
    for name, value in lines.items():
        render.out.print(f"{name:<10} {render.clean_line(value, 1000)}")


def _show_nearest(answer: dict[str, Any]) -> None:
    from holdfast.doors.cli import render

    run = answer["run"]
    state = "hold here and now" if answer["holds"] else "are not proved here and now"
    render.out.print(
        f"Checks of kind {render.clean_line(answer['kind'])} {state}: {render.clean_line(answer['why'], 300)}"
    )
    if run:
        render.out.print(f"nearest: {_run_line(run)}")
    if answer["hint"]:
        render.out.print(answer["hint"])


@app.command()
def explain(
    command: Annotated[str, typer.Argument(help="The command, or - for JSON lines on standard input.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="How the command ended.")] = None,
) -> None:
    """Show which checks a command runs, and whether it proves that the tests pass."""
    if command == "-":
        _explain_lines(sys.stdin.buffer)
        return
    request = Request(command, exit_code=exit_code)
    if json:
        print(_answer_request(request))
    elif exit_code is not None:
        _show_judgement(_judge_request(request))
    else:
        # The exit status is unknown: show both cases.
        for code in (0, 1):
            print(f"If it ends with {code}, and its output is not known:")
            _show_judgement(_judge_request(Request(command, exit_code=code)))


def _explain_lines(lines: Iterable[bytes]) -> None:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.DecodeError as error:
            raise HoldfastError(f"line {number} of standard input is not a command to explain: {error}") from None
        sys.stdout.write(_answer_request(request) + "\n")


def _judge_request(request: Request) -> "Judgement":
    from holdfast.features.checks.judge import judge_command
    from holdfast.features.checks.runners.entries import RepositoryFiles

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


def _answer_request(request: Request) -> str:
    judgement = msgspec.to_builtins(_judge_request(request))
    answer = {"checks": judgement["checks"], "proves_tests_pass": judgement["proves_tests_pass"]}
    answer |= {"git": judgement["git"], "why": judgement["why"], "writes": judgement["writes"]}
    if request.id is not None:
        answer = {"id": request.id, **answer}
    return escape_invisible(msgspec.json.encode(answer).decode())


def _show_judgement(judgement: "Judgement") -> None:
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

"""`holdfast uat …`: scenario runs and their proof."""

import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.core.text import strip_controls
from holdfast.core.times import format_duration, time_ago
from holdfast.doors.cli import answered, render, uat_runner
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.uat_runner import headless_agents

app = typer.Typer(help="UAT: begin, watch, report and compare runs of a scenario.", no_args_is_help=True)

Run = Annotated[str, typer.Argument(help="The run's id, or its beginning or end. Default: the one of this session.")]
RunOption = Annotated[str, typer.Option("--run", help="Another run than this session's.")]
Session = Annotated[str, typer.Option("--session", help="The agent's session; `latest` is the last one at work here.")]
Step = Annotated[int | None, typer.Option("--step", help="The number of the step.")]

# Seconds a command waits for its job; comparing pictures takes longest.
PATIENCE_S = 150.0
MARKS = {
    **dict.fromkeys(("passed", "completed", "success"), ("✓", "green")),
    **dict.fromkeys(("failed", "failure"), ("✗", "red")),
    **dict.fromkeys(("incomplete", "skipped"), ("–", "yellow")),
    "in_progress": ("…", "yellow"),
    "interrupted": ("!", "yellow"),
    "flaky": ("~", "yellow"),
}


@app.command("list")
def list_runs(
    all_: Annotated[bool, typer.Option("--all", "-a", help="Of all projects.")] = False,
    active: Annotated[bool, typer.Option("--active", help="Only those going on.")] = False,
    scenarios: Annotated[bool, typer.Option("--scenarios", help="The scenarios of this project instead.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500)] = 50,
    json: Json = False,
) -> None:
    """List runs, the latest first."""
    if scenarios:
        _list_scenarios(json)
        return
    answer = answered.view(json, "uat.list", all=all_, status="active" if active else "", limit=limit)
    if not answer["runs"]:
        render.out.print("No UAT runs here. Begin one with: holdfast uat start SCENARIO")
        return
    table = render.plain_table("", "run", "scenario", "steps", "calls", "errors", "pictures", "took", "when")
    for run in answer["runs"]:
        counts = (f"{run['completed']}/{run['steps']}", str(run["calls"]), str(run["errors"]), str(run["screenshots"]))
        name = Text(render.clean_line(run["scenario"], 40))
        times = (_run_duration(run), time_ago(run["at"], answer["now"]))
        table.add_row(_status_mark(run["outcome"]), run["id"], name, *counts, *times)
    render.out.print(table)


def _list_scenarios(json: bool) -> None:
    answer = answered.view(json, "uat.scenarios")
    table = render.plain_table("scenario", "steps", "file", "description")
    for one in answer["scenarios"]:
        table.add_row(*(Text(render.clean_line(one[name], 80)) for name in ("name", "steps", "file", "description")))
    render.out.print(table if answer["scenarios"] else f"No scenarios in {answer['folder']}. See: holdfast uat init")
    for problem in answer["problems"]:
        render.say(render.clean_line(problem, 300), "yellow")


@app.command()
def show(
    run: Run = "",
    session: Session = "",
    calls: Annotated[bool, typer.Option("--calls", help="Every tool call too.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The whole document as JSON.")] = False,
    json: Json = False,
) -> None:
    """Show one run: steps, assertions, problems, pictures."""
    if raw:
        print(
            msgspec.json.format(msgspec.json.encode(client.ask_view("uat.document", run=run, session=session))).decode()
        )
        return
    answer = answered.view(json, "uat.show", run=run, session=session, calls=calls)
    _show_head(answer)
    for step in answer["plan"]:
        render.out.print(_step_line(step))
    for one in answer["judged"]:
        render.out.print(_assertion_line(one))
    for problem in answer["problems"][-20:]:
        render.say(f"  {problem['level']}: {render.clean_line(problem['message'], 160)}", "yellow")
    for call in answer["tool_calls"]:
        words = f"  {call['id']} step {call['stepNumber']} {render.clean_line(call['toolName'], 60)}"
        render.hint(f"{words} {_format_ms(call['executionTime'])}")


def _step_line(step: dict[str, Any]) -> Text:
    line = Text("  ") + _status_mark(step["verdict"])
    line.append(f" {step['stepNumber']}. {render.clean_line(step['description'] or step['action'], 60):<50} ")
    took = step["verdict"].replace("_", " ") if step["duration"] is None else _format_ms(step["duration"])
    tried = f", attempt {len(step['attempts'])}" if len(step["attempts"]) > 1 else ""
    return line.append(f"{took}{tried}{', flaky' if step['flaky'] else ''}", style="dim")


def _assertion_line(one: dict[str, Any]) -> Text:
    line = Text("  ") + _status_mark(one["result"]) + Text(f" {render.clean_line(one['description'], 100)}")
    if one["result"] != "passed" and one["actual"]:
        line.append(f" (actual: {render.clean_line(one['actual'], 120)})", style="dim")
    return line


def _show_head(answer: dict[str, Any]) -> None:
    outcome = answer["outcome"] or answer["status"]
    head = _status_mark(outcome) + Text(f" {render.clean_line(answer['scenario'], 80)}  {outcome}  {answer['id']}")
    render.out.print(head)
    calls = render.counted(answer["calls"], "call")
    pictures = render.counted(answer["screenshots"], "picture")
    counts = f"{answer['completed']} of {answer['steps']} steps, {calls}, {pictures}"
    render.hint(f"  {counts}, began {time_ago(answer['start'])}, took {_run_duration(answer)}")
    for remark in answer["remarks"]:
        render.say(f"  {render.clean_line(remark, 300)}", "yellow")
    for name, value in (("file", answer["file"]), *((r["format"], r["path"]) for r in answer["reports"])):
        if value:
            render.hint(f"  {name}: {render.clean_line(value, 300)}")


@app.command()
def start(
    scenario: Annotated[str, typer.Argument(help="Its name, as in `holdfast uat list --scenarios`.")],
    session: Session = "",
    message: Annotated[str, typer.Option("--message", "-m", help="What was asked for.")] = "",
    ad_hoc: Annotated[bool, typer.Option("--ad-hoc", help="Without a scenario file: only record.")] = False,
    json: Json = False,
) -> None:
    """Start a run in a session."""
    facts = {"session": _existing_session(session), "message": message, "ad_hoc": ad_hoc}
    answer = client.run_command("uat.start", scenario=scenario, **facts)
    _show_answer(answer, f"Recording {answer['id']}: {answer['steps']} steps.", json)


def _existing_session(session: str) -> str:
    """The full id of a recorded session: a run of an unknown session has no events."""
    return session if session in ("", "latest") else client.ask_view("sessions.find", id=session)["id"]


@app.command()
def step(
    number: int,
    status: Annotated[str, typer.Argument(help="in_progress, completed, failed or skipped.")],
    run: RunOption = "",
    session: Session = "",
    json: Json = False,
) -> None:
    """Report where a run is."""
    answer = client.run_command("uat.step", step=number, status=status, run=run, session=session)
    _show_answer(answer, f"Step {number} of {answer['steps']} is {status}.{_outcome_sentence(answer)}", json)


@app.command("assert")
def record_assertion(
    description: str,
    passed: Annotated[bool, typer.Option("--pass/--fail", help="Does it hold?")] = True,
    actual: Annotated[str, typer.Option("--actual", help="What was found instead.")] = "",
    expected: Annotated[str, typer.Option("--expected", help="What should have been found.")] = "",
    step: Step = None,
    run: RunOption = "",
    session: Session = "",
    json: Json = False,
) -> None:
    """Record an assertion judged by hand or by a hook."""
    facts = {"actual": actual, "expected": expected, "step": step, "run": run, "session": session}
    result = "passed" if passed else "failed"
    answer = client.run_command("uat.assert", description=description, result=result, **facts)
    counts = answer["assertions"]
    _show_answer(answer, f"{result}: {description} ({counts['passed']} passed, {counts['failed']} failed)", json)


@app.command()
def signal(
    name: Annotated[str, typer.Argument(help="Without data: what was left under this name.")] = "",
    data: Annotated[str, typer.Argument(help="JSON, or plain text.")] = "",
    run: RunOption = "",
    session: Session = "",
    json: Json = False,
) -> None:
    """Leave a message for another hook, or read one."""
    if data:
        answer = client.run_command("uat.signal", signal=name, data=_json_or_text(data), run=run, session=session)
        _show_answer(answer, f"Left under {name}.", json)
        return
    value = client.ask_view("uat.signal", signal=name, run=run, session=session) if name else None
    value = value if name else client.ask_view("uat.signals", run=run, session=session)
    render.finish_as_json(json, value)
    print(render.json_text(value))


@app.command()
def end(
    run: Run = "",
    session: Session = "",
    reason: Annotated[str, typer.Option("--reason")] = "",
    json: Json = False,
) -> None:
    """End a run now."""
    answer = client.run_command("uat.end", run=run, session=session, reason=reason)
    _show_answer(answer, f"{answer['id']} is over: {answer['outcome']}.", json)


@app.command()
def report(
    run: Run = "",
    session: Session = "",
    format_: Annotated[
        str, typer.Option("--format", "-f", help="html, markdown or junit; several with a comma.")
    ] = "html",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write it there; - is the terminal.")] = None,
    json: Json = False,
) -> None:
    """Write a report into the run's reports folder, or elsewhere."""
    formats = [name.strip() for name in format_.split(",") if name.strip()]
    if out is not None:
        text = client.ask_view("uat.report", run=run, session=session, format=formats[0])
        if str(out) == "-":
            render.print_text(text)
        else:
            out.write_text(strip_controls(text), encoding="utf-8")
            _show_answer({"path": str(out.absolute())}, f"Written: {out}", json)
        return
    made = _wait_until_done(client.run_command("uat.report", run=run, session=session, formats=formats))
    if "reports" not in made:
        raise CommandRefused(made.get("message", "the report could not be written"))
    render.finish_as_json(json, made["reports"])
    for one in made["reports"]:
        render.say(f"Written: {render.clean_line(one['path'], 500)}")


@app.command()
def suite(
    tag: Annotated[str, typer.Option("--tag", help="Only scenarios with this tag.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the page there as one HTML file.")] = None,
    json: Json = False,
) -> None:
    """Show all scenarios over their runs: pass rate, flaky, slowest, trend."""
    if out is not None:
        page = client.ask_view("uat.suite", tag=tag, format="html", folder=str(out.absolute().parent))
        out.write_text(page["html"], encoding="utf-8")
        _show_answer({"path": str(out.absolute())}, f"Written: {out}", json)
        return
    answer = answered.view(json, "uat.suite", tag=tag)
    table = render.plain_table("", "scenario", "passed", "runs", "flaky", "median", "slowest", "trend")
    for row in answer["scenarios"]:
        trend = Text("").join(_status_mark(point["outcome"]) for point in row["trend"])
        counts = (f"{100 * row['passed'] // row['runs']} %", str(row["runs"]), str(row["flaky"]))
        name = Text(render.clean_line(row["scenario"], 60))
        times = (_format_ms(row["median_ms"]), _format_ms(row["slowest_ms"]))
        table.add_row(_status_mark(row["latest"]), name, *counts, *times, trend)
    render.out.print(table if answer["scenarios"] else "No UAT run is over yet.")


@app.command("import")
def import_results(
    file: Annotated[Path, typer.Argument(help="Playwright's or Cypress's JSON report, mochawesome, or JUnit XML.")],
    name: Annotated[str, typer.Option("--name", help="The scenario's name; default: the file's.")] = "",
    json: Json = False,
) -> None:
    """Import the results of a test runner as a run: a test is a step, a retry an attempt."""
    answer = answered.command(json, "uat.import", path=str(file.absolute()), scenario=name)
    if answer["again"]:
        render.out.print("This file was imported before, and has not changed since:")
    for run in answer["runs"]:
        counts = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in run["verdicts"].items())
        flaky = f", {run['flaky']} flaky" if run["flaky"] else ""
        render.out.print(_status_mark(run["outcome"]) + Text(f" {run['id']}  {run['outcome']}: {counts}{flaky}"))


@app.command()
def compare(
    before: Annotated[str, typer.Argument(help="The earlier run.")],
    after: Annotated[str, typer.Argument(help="The later run.")],
    pictures: Annotated[bool, typer.Option("--pictures/--no-pictures", help="Compare screenshots by pixels.")] = True,
    json: Json = False,
) -> None:
    """Compare two runs of a scenario: slower steps, new errors, changed pictures."""
    answer = client.ask_view("uat.compare", run=before, other=after)
    if pictures and answer["screenshots"]:
        made = _wait_until_done(client.run_command("uat.compare", run=before, other=after))
        answer |= {"screenshots": made["pairs"], "report": made.get("report", "")}
    render.finish_as_json(json, answer)
    _show_comparison(answer)


def _show_comparison(answer: dict[str, Any]) -> None:
    for name in ("before", "after"):
        one = answer[name]
        words = f" {name:<6} {one['id']}  {one['outcome']}, {one['calls']} calls, {one['errors']} errors, {_format_ms(one['ms'])}"
        render.out.print(_status_mark(one["outcome"]) + Text(words))
    for step in answer["steps"]:
        style = {"slower": "red", "faster": "green"}.get(step["change"], "dim")
        words = f"  {step['step']}. {render.clean_line(step['description'] or step['action'], 50):<50} "
        line = Text(words) + Text(
            f"{_format_ms(step['before'])} → {_format_ms(step['after'])} {step['change']}", style=style
        )
        render.out.print(line.append(f" {step['was']} → {step['now']}" if step["was"] != step["now"] else ""))
    for what in ("error", "warning"):
        _show_messages(what, **answer[f"{what}s"])
    for one in answer["assertions"]:
        render.out.print(f"  {render.clean_line(one['description'], 100)}: {one['was']} → {one['now']}")
    for pair in answer["screenshots"]:
        share = pair.get("share")
        words = pair.get("note", "") if share is None else f"{share:.2%} of the pixels differ ({pair.get('note', '')})"
        render.say(f"  step {pair['step']}, picture {pair['number']}: {words}")
    if answer.get("report"):
        render.hint(f"  side by side: {render.clean_line(answer['report'], 300)}")


def _show_messages(what: str, new: list[str], gone: list[str], **_more: Any) -> None:
    for message in new:
        render.say(f"  new {what}: {render.clean_line(message, 160)}", "red")
    for message in gone:
        render.hint(f"  gone: {render.clean_line(message, 160)}")


@app.command()
def validate(
    files: Annotated[list[str] | None, typer.Argument(help="Scenario files; default: all of this project.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema instead.")] = False,
    json: Json = False,
) -> None:
    """Validate scenario files; each mistake is reported with file and line."""
    if schema:
        print(msgspec.json.format(msgspec.json.encode(client.ask_view("uat.schema")), indent=2).decode())
        return
    answer = client.ask_view("uat.validate", files=[str(Path(name).absolute()) for name in files or ()])
    code = 1 if answer["mistakes"] else 0
    render.finish_as_json(json, answer, code)
    for one in answer["mistakes"]:
        where = f"{one['file']}:{one['line']}" if one["line"] else one["file"]
        render.say(f"{render.clean_line(where, 300)}: {render.clean_line(one['text'], 300)}")
    looked_at = render.counted(answer["files"], "file")
    mistakes = render.counted(len(answer["mistakes"]), "mistake")
    render.out.print(f"{looked_at}, {len(answer['good'])} good, {mistakes}.")
    raise typer.Exit(code)


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="The scenario's name.")] = "login-flow",
    base_url: Annotated[str, typer.Option("--base-url", help="The address under test.")] = "",
    record: Annotated[
        bool, typer.Option("--record", help="From what an agent did in a browser, in `--session` or the last one here.")
    ] = False,
    session: Session = "",
    json: Json = False,
) -> None:
    """Write a first scenario, with its schema for editors."""
    facts = {"base_url": base_url, "record": record, "session": _existing_session(session)}
    answer = client.run_command("uat.init", scenario=name, **facts)
    _wait_until_done(answer)
    _show_answer({"path": answer["path"]}, f"Written: {answer['path']}\nBegin with: holdfast uat start {name}", json)


@app.command("run")
def run_suite(
    what: Annotated[str, typer.Argument(help="A tag, or the name of a scenario.")],
    agent: Annotated[
        str, typer.Option("--agent", help=f"One of: {', '.join(headless_agents())}. Default: the first installed.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before tokens are spent.")] = False,
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=240, help="The time limit for each scenario.")] = 20,
    agent_args: Annotated[
        str, typer.Option("--agent-args", help='For the agent itself, e.g. "--permission-mode acceptEdits".')
    ] = "",
    json: Json = False,
) -> None:
    """Let an agent in headless mode run scenarios; exits 1 unless all passed."""
    to_run = uat_runner.scenarios_to_run(what)
    chosen = uat_runner.find_agent(agent)
    if not json:
        names = ", ".join(render.clean_line(one["name"], 60) for one in to_run)
        render.say(f"{chosen.name} runs {len(to_run)} scenarios: {names}.")
        render.say("It uses its own account and its own tokens; Holdfast only records.")
    if not yes:
        typer.confirm("Continue?", abort=True)
    words = uat_runner.split_words(agent_args)
    results = []
    for scenario in to_run:
        results.append(uat_runner.run_scenario(chosen, scenario, minutes * 60, words))
        if not json:
            _show_result(results[-1])
    code = 0 if all(one["outcome"] == "passed" for one in results) else 1
    render.finish_as_json(json, results, code)
    raise typer.Exit(code)


def _show_result(one: dict[str, Any]) -> None:
    why = f" ({render.clean_line(one['problem'], 200)})" if one["problem"] else ""
    told = f" {render.clean_line(one['scenario'], 60)}  {one['outcome']}{why}  {one['run']}"
    render.out.print(_status_mark(one["outcome"]) + Text(told))


@app.command()
def recover(run: Run = "", session: Session = "", json: Json = False) -> None:
    """Rewrite a run's file from the log."""
    made = _wait_until_done(client.run_command("uat.recover", run=run, session=session))
    _show_answer(made, f"{made['path']}: it was {made['was']}, now it is {made['now']}.", json)
    raise typer.Exit(0 if made["now"] == "good" else 1)


@app.command()
def clean(
    days: Annotated[
        int | None, typer.Option("--days", min=0, help="Older than so many days; default: `uat.keep_days`.")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: Json = False,
) -> None:
    """Remove the files of old runs of this project. The log keeps the runs."""
    made = _wait_until_done(client.run_command("uat.clean", days=days, dry=dry))
    render.finish_as_json(json, made)
    for path in made["removed"]:
        render.say(render.clean_line(path, 500))
    render.out.print(f"{made['count']} {'would be ' if made['dry'] else ''}removed.")


def _wait_until_done(answer: dict[str, Any]) -> dict[str, Any]:
    """Wait for the job that a command enqueued."""
    deadline = time.monotonic() + PATIENCE_S
    pause = 0.02
    while time.monotonic() < deadline:
        outcome: dict[str, Any] | None = client.ask_view("uat.done", key=answer["done"])
        if outcome is not None:
            return outcome
        time.sleep(pause)
        # Most jobs are done at once; long ones are polled less and less often.
        pause = min(0.5, pause * 1.5)
    raise CommandRefused("it is not done yet", fix="It continues in the background; see: holdfast daemon logs")


def _show_answer(payload: Any, words: str, json: bool) -> None:
    render.finish_as_json(json, payload)
    for line in words.splitlines():
        render.say(render.clean_line(line, 600))


def _outcome_sentence(answer: dict[str, Any]) -> str:
    return f" The run is over: {answer['outcome']}." if answer["outcome"] else ""


def _json_or_text(data: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data


def _status_mark(status: str) -> Text:
    sign, style = MARKS.get(status, ("·", "dim"))
    return Text(sign, style=style)


def _format_ms(ms: int | None) -> str:
    if ms is None:
        return "–"
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s" if ms < 120_000 else format_duration(ms)


def _run_duration(run: dict[str, Any]) -> str:
    return _format_ms(None if run["end"] is None else run["end"] - run["start"])

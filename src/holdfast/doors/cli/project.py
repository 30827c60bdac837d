"""`holdfast task`: what needs doing in a project."""

from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast.core.times import time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.lease import lease_app
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.state import as_of, fresh_view

task_app = typer.Typer(
    help="What needs doing in this project. Tasks open and close by what was recorded.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    app.add_typer(task_app, name="task")
    app.add_typer(lease_app, name="lease")


STYLES = {"P0": "bold red", "P1": "yellow", "P2": "", "P3": "dim"}
Id = Annotated[str, typer.Argument(help="e.g. task_003")]


@task_app.command("list")
def list_tasks(json: Json = False) -> None:
    """List open tasks, the most pressing first."""
    answer = fresh_view("project.tasks")
    render.finish_as_json(json, answer)
    render.out.print(as_of(answer), end="")
    if not answer["tasks"]:
        if answer["looked_at"]:
            render.out.print("Nothing needs doing.")
        return
    for task in answer["tasks"]:
        render.out.print(_task_line(task))


def _task_line(task: dict[str, Any]) -> Text:
    line = Text(f"{task['priority']}  ", style=STYLES[task["priority"]])
    line.append(f"{task['id']}  ", style="dim")
    line.append(render.clean_line(task["description"], 100))
    line.append(f"  ~{task['estimated_effort']['time_minutes']} min, {time_ago(task['since'])}", style="dim")
    return line


@task_app.command()
def why(task: Id, json: Json = False) -> None:
    """Explain why a task exists, and when it is done."""
    answer = fresh_view("project.task", id=task)
    render.finish_as_json(json, answer)
    render.out.print(as_of(answer), end="")
    if answer["open"]:
        _show_task(answer)
    else:
        render.out.print(
            f"{answer['id']} is closed since {time_ago(answer['done_at'])}. {render.clean_line(answer['summary'])}"
        )


def _show_task(task: dict[str, Any]) -> None:
    render.out.print(_task_line(task))
    render.out.print(f"  why        {render.clean_line(task['why'], 400)}")
    for n, text in enumerate(task["resolution_criteria"]):
        render.out.print(f"  {'done when' if n == 0 else '':<10} {render.clean_line(text, 200)}")
    for label, name in (("blocks", "blocking"), ("touches", "required_resources"), ("work", "required_capabilities")):
        if task[name]:
            render.out.print(f"  {label:<10} {render.clean_line(', '.join(task[name]), 200)}")


@task_app.command("next")
def next_task(json: Json = False) -> None:
    """Show the most pressing task."""
    answer = fresh_view("project.next")
    render.finish_as_json(json, answer)
    render.out.print(as_of(answer), end="")
    if answer["task"]:
        _show_task(answer["task"])
    elif answer["looked_at"]:
        render.out.print("Nothing needs doing.")


@task_app.command()
def add(
    description: Annotated[str, typer.Argument(help="The task.")],
    priority: Annotated[str, typer.Option("--priority", "-p", help="P0, P1, P2 or P3")] = "P2",
    done_when: Annotated[list[str] | None, typer.Option("--done-when", help="May be given several times.")] = None,
    why: Annotated[str, typer.Option("--why")] = "",
    json: Json = False,
) -> None:
    """Add a task of your own to the derived ones."""
    fields = {"description": description, "priority": priority, "done_when": done_when or [], "why": why}
    answer = answered.command(json, "project.add_task", **fields)
    render.out.print(f"{answer['id']}  {render.clean_line(answer['description'], 200)}")


@task_app.command()
def done(task: Id, json: Json = False) -> None:
    """Close a task of your own. Derived ones close by themselves."""
    answer = answered.command(json, "project.finish_task", id=task)
    render.out.print(f"{answer['id']} is done: {render.clean_line(answer['description'], 200)}")


@task_app.command()
def dismiss(
    task: Id,
    reason: Annotated[str, typer.Option("--reason", help="Why it is no task; kept in the history.")],
    json: Json = False,
) -> None:
    """Dismiss a task. It returns if its cause changes and is found again."""
    answer = answered.command(json, "project.dismiss_task", id=task, reason=reason)
    render.out.print(f"{answer['id']} is dismissed: {render.clean_line(answer['description'], 200)}")

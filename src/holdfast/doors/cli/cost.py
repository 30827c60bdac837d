"""`holdfast cost`: tokens and money of all agents."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.analysis.usage.report import (
    COLUMNS,
    UNTOLD,
    format_money,
    format_token_count,
    reported_money,
    token_amounts,
)
from holdfast.core.ids import session_alias
from holdfast.core.times import now_ms, parse_moment
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json, OfAgent, OfProject, OfThisProject
from holdfast.doors.cli.price import price_app

GROUPS_HELP = "day, month, session, turn, project, agent, model, branch, commit or block (five hours)."


def register(app: typer.Typer) -> None:
    app.command()(cost)
    app.add_typer(price_app, name="price")


def cost(
    by: Annotated[str, typer.Argument(help=GROUPS_HELP)] = "day",
    since: Annotated[str, typer.Option("--since", help="From then on: 2026-11-01, 10:45, 2h, 3d.")] = "",
    until: Annotated[str, typer.Option("--until", help="Up to then.")] = "",
    project: OfProject = "",
    here: OfThisProject = False,
    agent: OfAgent = "",
    session: Annotated[str, typer.Option("--session", help="Only of this session: how its id begins.")] = "",
    model: Annotated[str, typer.Option("--model", help="Only of models with this in their name.")] = "",
    branch: Annotated[str, typer.Option("--branch", help="Only on this branch.")] = "",
    json: Json = False,
) -> None:  # fmt: skip
    """Show what sessions cost, as far as agents report it. Unknown values are shown as –."""
    now = now_ms()
    root = client.current_project() if here else str(Path(project).expanduser().absolute()) if project else ""
    answer = answered.view(
        json,        "cost.report", by=by, project=root, agent=agent, session=session, model=model, branch=branch,
        since=parse_moment(since, now) if since else 0, until=parse_moment(until, now) if until else 0,
    )  # fmt: skip
    if not answer["groups"]:
        if any((root, agent, session, model, branch, since, until)):
            render.out.print("No token use on record fits that. All of it: holdfast cost")
        else:
            render.out.print("No token use is on record. Bring earlier sessions in: holdfast data import")
        return
    _print_report(answer)


def _print_report(answer: dict[str, Any]) -> None:
    table = render.plain_table(answer["by"])
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for group in answer["groups"]:
        table.add_row(group_name(answer["by"], group), *cost_figures(group))
    table.add_row(
        Text("total", style="bold"), *(Text(figure, style="bold") for figure in cost_figures(answer["total"]))
    )
    render.out.print(table)
    for note in answer["notes"]:
        render.say(render.clean_line(note, 500), "yellow")


def group_name(by: str, group: dict[str, Any]) -> str:
    name = str(group["group"])
    if by in ("session", "turn", "commit") and name:
        where = ", ".join(Path(one).name for one in group["projects"] if one)
        return f"{_short_group_id(by, name)}  {render.clean_line(', '.join(group['agents']))} {render.clean_line(where, 30)}".strip()
    if by == "block":
        start = datetime.fromtimestamp(group["start"] / 1000)
        return f"{start:%Y-%m-%d %H:%M}–{datetime.fromtimestamp(group['end'] / 1000):%H:%M}{' (open)' if group['open'] else ''}"
    return render.clean_line(name, 60) or UNTOLD


def _short_group_id(by: str, name: str) -> str:
    if by == "commit":
        return render.clean_line(name[:12])
    session, _, turn = name.rpartition("/") if by == "turn" else (name, "", "")
    return f"{render.clean_line(session_alias(session))}{' turn ' + turn if turn else ''}"


def cost_figures(group: dict[str, Any]) -> tuple[str, ...]:
    own = reported_money(group)
    return *map(format_token_count, token_amounts(group)), format_money(group) + (f" (agent says {own})" if own else "")

"""`holdfast team rule|memory|lease|handoff`: what members decide together and hand over."""

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import msgspec
import typer

from holdfast import client
from holdfast.core.caller import find_agent
from holdfast.core.errors import CommandRefused
from holdfast.core.machine import look_up_process
from holdfast.core.text import strip_controls
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast_team.core import rely_on_lease
from holdfast_team.identity import identify_project
from holdfast_team.membership import OwnLease, TeamConnection, TeamFiles, connect_team, need_membership, steady_ms
from holdfast_team.protocol import BudgetRequest, LeaseAnswer, LeaseRequest
from holdfast_team.sent import send_words

T = TypeVar("T")

EXIT_BUSY = 75
rule_app = typer.Typer(
    help="Requirements for everybody: they add to the settings, and never replace one.", no_args_is_help=True
)
budget_app = typer.Typer(
    help="What a week may cost, by person, project and model; people get a notice in time.", no_args_is_help=True
)
memory_app = typer.Typer(help="Words shared with the team, after a lead promoted them.", no_args_is_help=True)
lease_app = typer.Typer(
    help="Hold files or a name across machines; others are refused meanwhile.", no_args_is_help=True
)


def team_connection() -> TeamConnection:
    return connect_team(need_membership(client.state_paths()))


def ask_as_person(act: str, method: str, path: str, answer: type[T], body: Any = None) -> T:
    """An act of a lead or admin: the daemon must see a person before the server is asked."""
    client.authorise("team", act)
    return team_connection().request(method, path, answer, body)


def show_lines(value: Any, json: bool, lines: list[str]) -> None:
    render.finish_as_json(json, value)
    for line in lines:
        # Spaces stay as they are, because they form columns.
        print(strip_controls(line.replace("\n", " "))[:2000])


def show_list(json: bool, name: str, path: str, line: Callable[[dict[str, Any]], str], empty: str = "") -> None:
    """One line for each row of a list that the server has."""
    rows = team_connection().request("GET", path, list[dict[str, Any]])
    show_lines({name: rows}, json, [line(one) for one in rows] or ([empty] if empty else []))


def project_here() -> str:
    """The identity of the project in the current folder."""
    identity = identify_project(client.current_project())
    if identity.shared is None:
        raise CommandRefused(f"this folder is shared with no team: {identity.problem}")
    if level_here() == "none":
        fix = "Share it first: holdfast team level facts --project ."
        raise CommandRefused("nothing of this project is shared with the team", fix=fix)
    return identity.shared.id


def level_here() -> str:
    folder = client.current_project()
    return need_membership(client.state_paths()).level_for(folder, identify_project(folder).home)


def project_of_words(act: str) -> str:
    """The same, for text that leaves. Below `summaries` no text does unless a person says so: an agent may not."""
    project = project_here()
    if level_here() not in ("summaries", "full"):
        client.authorise("team", act)
    return project


def tell_team(path: str, answer: type[T], body: Any) -> T:
    from holdfast.app import open_settings

    # Loads the user's own rules for secrets.
    open_settings()
    files = TeamFiles(client.state_paths())
    now, folder = time.time_ns() // 1_000_000, client.current_project()
    return send_words(files, team_connection(), path, answer, body, now, folder)


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rule_app.command("set")
def set_rule(
    name: str,
    file: Annotated[Path, typer.Argument(help="A YAML file with the requirement, as in .claude/requirements.yaml.")],
) -> None:
    """Set a rule for the whole team (leads). Every machine shows its text on arrival."""
    from ruamel.yaml import YAML

    requirement = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
    ask_as_person(
        "setting a team rule", "POST", "/v1/rules", dict[str, str], {"name": name, "requirement": requirement}
    )
    render.out.print(f"{name} holds for the team.")


@rule_app.command()
def withdraw(name: str) -> None:
    """Withdraw a rule (leads)."""
    ask_as_person("withdrawing a team rule", "DELETE", f"/v1/rules/{quote(name, '')}", dict[str, str])
    render.out.print(f"{name} no longer holds.")


@rule_app.command("list")
def list_rules(json: Json = False) -> None:
    """List the rules of the team."""
    show_list(json, "rules", "/v1/rules", _rule_line, "The team has no rules.")


def _rule_line(one: dict[str, Any]) -> str:
    return f"{one['name']}  set by {one['by_person']}  {msgspec.json.encode(one['requirement']).decode()}"


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@budget_app.command("set")
def set_budget(
    name: str,
    person: Annotated[str, typer.Option("--person", help="Of one person. Default: of all.")] = "",
    here: Annotated[bool, typer.Option("--here", help="Of the project in this folder. Default: of all.")] = False,
    model: Annotated[str, typer.Option("--model", help="Of one model. Default: of all.")] = "",
    tokens: Annotated[int, typer.Option("--tokens", min=0, help="Tokens a week.")] = 0,
    usd: Annotated[float, typer.Option("--usd", min=0, help="Dollars a week, by the server's price list.")] = 0.0,
) -> None:
    """Set a weekly budget (leads). Its people get a notice at 80 % and at 100 %; nothing is refused."""
    project = project_here() if here else ""
    body = BudgetRequest(name=name, person=person, project=project, model=model, tokens=tokens, usd=usd)
    ask_as_person("setting a budget", "POST", "/v1/budgets", dict[str, str], body)
    render.out.print(f"{name} is set.")


@budget_app.command("remove")
def remove_budget(name: str) -> None:
    """Remove a budget (leads)."""
    ask_as_person("removing a budget", "DELETE", f"/v1/budgets/{quote(name, '')}", dict[str, str])
    render.out.print(f"{name} is no longer a budget.")


@budget_app.command("list")
def list_budgets(json: Json = False) -> None:
    """List the budgets, and how much of each was spent this week."""
    show_list(json, "budgets", "/v1/budgets", _budget_line, "The team has no budgets.")


def _budget_line(one: dict[str, Any]) -> str:
    dollars = one["micro_usd"] / 1_000_000
    of = (
        f"${one['used_usd']:.2f} of ${dollars:.2f}"
        if dollars
        else f"{one['used_tokens']:,} of {one['tokens']:,} tokens"
    )
    scope = ", ".join(filter(None, (one["person"], one["remote"] or one["project"], one["model"]))) or "the whole team"
    unknown = f"  (no price: {', '.join(one['unpriced'])})" if dollars and one["unpriced"] else ""
    return f"{one['name']:<20} {one['percent']:>4} %  {of}  {scope}{unknown}"


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@memory_app.command()
def share(text: str, kind: Annotated[str, typer.Option("--type", help="As in holdfast memory add.")] = "fact") -> None:
    """Propose words about this project to the team; a lead promotes them."""
    name = secrets.token_hex(6)
    body = {"id": name, "project": project_of_words("sharing words"), "text": text, "type": kind}
    tell_team("/v1/memory", dict[str, str], body)
    render.out.print(f"Proposed as {name}. A lead promotes it: holdfast team memory promote {name}")


@memory_app.command()
def promote(id: str) -> None:
    """Send these words to every machine of the team (leads); each person there still vouches for them."""
    ask_as_person("promoting a memory", "POST", f"/v1/memory/{id}/promote", dict[str, str])
    render.out.print(f"{id} was promoted.")


@memory_app.command("list")
def list_memories(json: Json = False) -> None:
    """List proposed and promoted words."""
    show_list(json, "memories", "/v1/memories", _memory_line, "Nothing was proposed.")


def _memory_line(one: dict[str, Any]) -> str:
    return f"{one['id']}  {one['by_person']}  {'promoted' if one['promoted_at'] else 'proposed'}  {one['text']}"


# ── hand-over ────────────────────────────────────────────────────────────────────────────────────────────────────────


def handoff(
    to: Annotated[str, typer.Argument(help="The person who continues.")],
    session: Annotated[str, typer.Option("--session", help="Default: this one, or the newest here.")] = "",
    note: Annotated[str, typer.Option("--next", help="The next step, in your words.")] = "",
) -> None:
    """Hand this project's work over: that person's next session here receives it, once. Its text leaves this machine."""
    project = project_of_words("handing text over")
    answer = client.run_command("memory.handoff", session=session, note=note, only_text=True)
    body = {"project": project, "to": to, "text": answer["text"], "session": answer["session"]}
    tell_team("/v1/handover", dict[str, str], body)
    print(render.clean_line(answer["text"], 20_000))
    render.err.print(f"{to} gets this.")


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@lease_app.command()
def acquire(
    name: str,
    paths: Annotated[list[str] | None, typer.Option("--path", help="Files that only the holder may edit, e.g. 'src/api/**'.")] = None,
    ttl: Annotated[int, typer.Option("--ttl", help="Seconds it lasts after the last sign of this machine.")] = 300,
    why: Annotated[str, typer.Option("--why", help="Shown to the others.")] = "",
    pid: Annotated[int, typer.Option("--pid", help="Held while it lives. Default: the agent that runs this, else your shell.")] = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Take a lease of this project. This machine renews it as long as the process lives; exits 75 if it is taken."""
    # Taken before the request, because the server counts from its arrival, which is later.
    owner, asked_at = pid or find_agent(os.getpid()) or os.getppid(), steady_ms()
    request = LeaseRequest(
        act="acquire", project=project_here(), name=name, session=client.current_session() or f"process-{owner}", ttl_s=ttl,
        paths=tuple(paths or ()), why=why,
    )  # fmt: skip
    answer = tell_team("/v1/lease", LeaseAnswer, request)
    if answer.granted:
        _save_lease(request, answer, asked_at, owner)
    word = f"{name} is yours, token {answer.token}." if answer.granted else f"{name} is held by {answer.person}."
    show_lines(msgspec.to_builtins(answer), json, [word])
    if not answer.granted:
        raise typer.Exit(EXIT_BUSY)


def _save_lease(request: LeaseRequest, answer: LeaseAnswer, asked_at: int, owner: int) -> None:
    held, seen = rely_on_lease(answer.token, answer.ttl_s, asked_at), look_up_process(owner)
    if held is None:
        return
    mine = OwnLease(
        project=request.project, name=request.name, session=request.session, token=held.token, ttl_s=answer.ttl_s,
        until=held.until, pid=owner if seen else 0, start=seen.start if seen else 0,
    )  # fmt: skip
    with TeamFiles(client.state_paths()).changing_leases() as leases:
        # The same name again replaces the older entry.
        leases[:] = [one for one in leases if (one.project, one.name) != (request.project, request.name)]
        leases.append(mine)


@lease_app.command()
def release(name: str) -> None:
    """Give a lease of this project back."""
    project = project_here()
    with TeamFiles(client.state_paths()).changing_leases() as leases:
        mine = [one for one in leases if (one.project, one.name) == (project, name)]
        # Removed from the list first, so that the forwarder does not renew it meanwhile.
        leases[:] = [one for one in leases if one not in mine]
    for one in mine:
        request = LeaseRequest(act="release", project=project, name=name, session=one.session, token=one.token)
        team_connection().request("POST", "/v1/lease", LeaseAnswer, request)
    render.out.print(f"{name} is free." if mine else f"This machine does not hold {name}.")


@lease_app.command("list")
def list_leases(json: Json = False) -> None:
    """List current leases in every project of the team."""
    leases = team_connection().request("GET", "/v1/board", dict[str, Any])["leases"]
    lines = [f"{one['name']}  {one['person']}  token {one['token']}  {', '.join(one['paths'])}" for one in leases]
    show_lines({"leases": leases}, json, lines or ["Nothing is held."])

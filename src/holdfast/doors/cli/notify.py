"""`holdfast notify …`: notifications when an agent needs you; `holdfast permission …`: fewer questions."""

import re
from typing import Annotated, Any

import typer

from holdfast import client
from holdfast.core.attention import KINDS
from holdfast.core.errors import CommandRefused
from holdfast.core.times import time_ago
from holdfast.doors.cli import answered, permission_rules, render
from holdfast.doors.cli.options import Json

app = typer.Typer(
    help="Notifications when an agent needs you: what is open, channels, and muting.", no_args_is_help=True
)
permission = typer.Typer(help="Be asked for permission less often.", no_args_is_help=True)
UNITS = {"m": 1, "h": 60, "d": 1440}


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="notify")
    root.add_typer(permission, name="permission")


@app.command("list")
def list_needs(json: Json = False) -> None:
    """Show what needs you, where notifications go, and what could not be sent."""
    answer = {**client.ask_view("attention.list"), **client.ask_view("attention.status")}
    render.finish_as_json(json, answer)
    now = answer["now"]
    if answer["muted_until"] > now:
        render.warn(
            f"Notifications are silent for {(answer['muted_until'] - now) // 60_000 + 1} more minutes: holdfast notify mute 0"
        )
    for need in answer["needs"]:
        render.out.print(_line(need, now))
    if not answer["needs"]:
        render.out.print("Nothing needs you.")
    off = [name for name, is_set_up in answer["channels"].items() if not is_set_up]
    render.hint(f"Channels: {', '.join(name for name in answer['channels'] if name not in off) or 'none'}")
    for name in off:
        render.warn(f"{name} is in a rule, and not set up: holdfast config explain attention")
    for one in [one for one in answer["sent"] if one["skipped"]][-3:]:
        render.hint(f"{one['channel']}, {time_ago(one['at'], now)}: not sent: {render.clean_line(one['skipped'], 200)}")
    for letter in answer["dead_letters"][-5:]:
        render.warn(f"not sent, {time_ago(letter['at'], now)}: {render.clean_line(letter['error'], 200)}")


def _line(need: dict[str, Any], now: int) -> str:
    folder = need["project"].rstrip("/").rpartition("/")[2]
    text = render.clean_line(need["text"], 100)
    return f"{need['id']}  {folder}: {need['agent']} {KINDS[need['kind']]} {time_ago(need['since'], now)}: {text}"


@app.command()
def test(
    channel: Annotated[str, typer.Argument(help="Only this channel. Default: all that are set up.")] = "",
    json: Json = False,
) -> None:
    """Send a test over every channel that is set up."""
    told = answered.command(json, "attention.test", channel=channel)
    render.out.print(f"Sent to: {', '.join(told['channels'])}. What fails is shown by: holdfast notify list")


@app.command()
def mute(
    time: Annotated[str, typer.Argument(help="How long: 30m, 1h, 2d; 0 ends it.")],
    json: Json = False,
) -> None:
    """Silence notifications for a while. What is still open afterwards is sent then."""
    told = answered.command(json, "attention.mute", minutes=parse_minutes(time))
    render.out.print("Notifications are silent." if told["until"] else "Notifications are on.")


def parse_minutes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})([mhd]?)", text.strip())
    if match is None:
        raise CommandRefused(f"{text[:40]!r} is no time", fix="For example: 30m, 1h, 2d, or 0.")
    return int(match[1]) * UNITS[match[2] or "m"]


@app.command()
def answer(
    id: Annotated[str, typer.Argument(help="The id that `holdfast notify list` shows, or the session.")],
    verdict: Annotated[str, typer.Argument(help="allow or deny.")],
    reason: Annotated[str, typer.Argument(help="Why not, for the agent.")] = "",
    json: Json = False,
) -> None:
    """Answer an agent that waits for a permission."""
    answered.command(json, "attention.answer", id=id, verdict=verdict, reason=reason)
    render.out.print("Sent.")


Days = Annotated[int, typer.Option("--days", min=1, max=365, help="How far back to look.")]


@permission.command()
def suggest(
    days: Days = 14,
    write: Annotated[bool, typer.Option("--write", help="Add them to the agent's settings, after you agreed.")] = False,
    json: Json = False,
) -> None:
    """Propose allow rules for what you always allowed, and show what they would have saved."""
    found = client.ask_view("attention.suggest", days=days)
    render.finish_as_json(json, found)
    if not found["rules"]:
        render.out.print(f"Nothing to propose: {found['asked']} questions in {days} days.")
        return
    for rule in found["rules"]:
        render.out.print(f"{rule['rule']}   allowed {rule['allowed']} times")
    render.out.print(f"This would have saved {found['saved']} of {found['asked']} questions in {days} days.")
    if runs_what_it_writes([rule["rule"] for rule in found["rules"]]):
        render.warn("With these edits and commands (tests, builds, scripts) an agent can run what it wrote, unasked.")
    if write:
        permission_rules.write_rules([rule["rule"] for rule in found["rules"]])
    else:
        render.hint("Add them to Claude Code's settings: holdfast permission suggest --write")


def runs_what_it_writes(rules: list[str]) -> bool:
    """Rules for whole commands name programs that run the project's code."""
    return any(one.startswith("Edit(") for one in rules) and any(
        one.startswith("Bash(") and not one.endswith(":*)") for one in rules
    )


@permission.command()
def remove() -> None:
    """Remove the allow rules that Holdfast added."""
    removed = permission_rules.remove_rules()
    render.out.print(f"Removed {removed} rules." if removed else "Holdfast has added no rules.")

"""`holdfast` and `holdfast status`: what is running, and the next useful command."""

from typing import Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.cli import installing, memory, render
from holdfast.cli.options import Json
from holdfast.core.times import format_bytes


def register(app: typer.Typer) -> None:
    app.command()(status)


def overview() -> None:
    """What a first-time user sees."""
    pid = client.running()
    if not pid:
        render.out.print("Holdfast keeps the state of AI coding sessions. Nothing is running yet.")
        render.out.print(next_step({}, bool(installing.where_installed())))
        return
    status(json=False)


def status(json: Json = False) -> None:
    """The daemon, the log, the hooks, and anything that needs you."""
    pid = client.running()
    told = client.ask("status") if pid else {}
    meter = _meter() if pid else {}
    places = installing.where_installed()
    if json:
        render.json_line({"running": bool(pid), **told, "installed": places, "model": meter})
        return
    render.out.print(_daemon_line(pid, told))
    if told:
        render.out.print(_log_line(told))
    render.out.print(_hooks_line(places))
    if meter:
        render.out.print(f"model    {memory.meter_line(meter)}")
    for warning in [*warnings(told), *_attention(pid), *([f"model: {meter['error']}"] if meter.get("error") else ())]:
        render.out.print(Text(f"! {warning}", style="yellow"))
    render.out.print(Text(next_step(told, bool(places)), style="dim"))


def _attention(pid: int) -> list[str]:
    """What the gates want a person to see."""
    try:
        return [render.clean(line, 400) for line in client.view("gates.attention")["lines"]] if pid else []
    except client.Refused:
        return []


def _meter() -> dict[str, Any]:
    try:
        value: dict[str, Any] = client.view("memory.meter")
        return value
    except client.Refused:
        return {}  # a daemon of an older version


def _daemon_line(pid: int, told: dict[str, Any]) -> str:
    if not pid:
        return "daemon   not running (hooks start it by themselves)"
    since, memory = render.ago(told["started"]), format_bytes(told["memory_bytes"])
    return f"daemon   pid {pid}, started {since}, {memory}, {told['state']}"


def _log_line(told: dict[str, Any]) -> str:
    counts = told["counts"]
    waiting = f", {format_bytes(told['spool_bytes'])} in the spool" if told["spool_bytes"] else ""
    jobs = f", {counts['jobs']} jobs waiting" if counts["jobs"] else ""
    return f"log      {counts['events']} events, {format_bytes(told['store_bytes'])} in {told['store']}{waiting}{jobs}"


def _hooks_line(places: list[dict[str, Any]]) -> str:
    if not places:
        return "hooks    in no agent yet"
    return "hooks    " + ", ".join(f"{p['agent']} ({p['level']}: {p['path']})" for p in places)


def warnings(told: dict[str, Any]) -> list[str]:
    counts = told.get("counts", {})
    found = [f"The store refuses to write: {told['refusing']}"] if told.get("refusing") else []
    found += [f"{feature}: {n} rules failed; see holdfast daemon logs" for feature, n in told.get("errors", {}).items()]
    found += [f"being rebuilt from the log: {name}" for name in told.get("asleep", ())]
    found += [f"{counts['dead_jobs']} jobs failed"] if counts.get("dead_jobs") else []
    return found + list(told.get("notices", ()))


def next_step(told: dict[str, Any], installed: bool) -> str:
    if not installed:
        return "Next: holdfast up        (starts the daemon and puts the hooks into the agents it finds)"
    if told.get("counts", {}).get("events", 0) < 5:
        return "Next: use your agent as always, then: holdfast event tail"
    return "See what happens: holdfast event tail"

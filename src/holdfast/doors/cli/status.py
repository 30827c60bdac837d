"""`holdfast` and `holdfast status`: what is running, and the next useful command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.errors import DaemonUnreachable, HoldfastError
from holdfast.core.times import format_bytes, now_ms, time_ago
from holdfast.doors.cli import installing, render
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.sessions import unrecorded_lines
from holdfast.doors.troubles import daemon_obstacle, trouble_lines
from holdfast.setup.install import hooks


def register(app: typer.Typer) -> None:
    app.command()(status)


def show_overview() -> None:
    """What a first-time user sees."""
    # Asked of the lock, not the daemon: this never starts one.
    pid = client.running_pid()
    if not pid:
        if obstacle := daemon_obstacle():
            render.warn(obstacle)
            raise typer.Exit(1)
        render.out.print("Holdfast keeps the state of AI coding sessions. Nothing is running yet.")
        render.out.print(next_step({}, bool(installing.where_installed())))
        return
    status(json=False)


def status(json: Json = False) -> None:
    """Show the daemon, the log, the hooks, and anything that needs you."""
    answer, obstacle = _status_or_obstacle()
    pid = answer.get("pid", 0)
    kept = _kept_versions() if pid else {}
    installed = installing.where_installed()
    fields = {"running": bool(pid), "obstacle": obstacle, **answer, "installed": installed, "undo": kept}
    render.finish_as_json(json, fields, 1 if obstacle else 0)
    render.out.print(_daemon_line(pid, answer, obstacle))
    if answer:
        _show_store(answer)
    if kept:
        render.out.print(versions_line(kept))
    render.out.print(_hooks_line(installed))
    for warning in (*_warnings(answer), *versions_warnings(kept)):
        render.warn(warning)
    if obstacle:
        raise typer.Exit(1)
    render.hint(next_step(answer, bool(installed)))


def _status_or_obstacle() -> tuple[dict[str, Any], str]:
    """The daemon's status, or why there is none; neither if it is not running and could be."""
    answer = _ask_status()
    obstacle = "" if answer else daemon_obstacle()
    # A daemon that failed before may have started just now.
    return answer or ({} if obstacle else _ask_status()), obstacle


def _warnings(answer: dict[str, Any]) -> Iterator[str]:
    yield from status_warnings(answer)
    yield from _gate_attention(answer.get("pid", 0))
    yield from _unrecorded(answer.get("pid", 0))
    for line in hooks.lost_hooks(AGENTS.values(), Path(client.current_project())):
        yield render.clean_line(line, 400)


def _show_store(answer: dict[str, Any]) -> None:
    render.out.print(_log_line(answer))
    if restored := answer.get("restored"):
        render.out.print(restored_line(restored))
    if answer.get("bodies"):
        render.out.print(f"bodies   {bodies_line(answer['bodies'])}")


def _kept_versions() -> dict[str, Any]:
    """Empty if no daemon runs, or one of an older version."""
    try:
        value: dict[str, Any] = client.ask_view("workspace.status") if client.running_pid() else {}
        return value
    except HoldfastError:
        return {}


def versions_line(kept: dict[str, Any]) -> str:
    if not kept["on"]:
        return "undo     off (workspace.snapshots)"
    space = f"{format_bytes(kept['bytes'])} of {format_bytes(kept['most_bytes'])}"
    return f"undo     {render.counted(kept['versions'], 'version')} of files, {space}, {kept['days']} days"


def versions_warnings(kept: dict[str, Any]) -> list[str]:
    """What could not be brought back."""
    lines = [f"undo: no watcher: {kept['trouble']}"] if kept.get("trouble") else []
    for root in kept.get("roots", ()):
        name = root["root"]
        lines += [f"undo: {name} is looked at only before calls: {root['problem']}"] if root["problem"] else []
        lines += (
            [f"undo: in {name}, {render.counted(root['late'], 'call')} began before every change was kept"]
            if root["late"]
            else []
        )
        lines += [f"undo: {name}/{path} is not kept: {why}" for path, why in list(root["not_kept"].items())[:5]]
    for one in kept.get("losses", ()):
        undo = f"holdfast undo --call {one['seq']} --dir {one['root']}"
        lines.append(f"undo: {one['said']} discarded; restore: {undo}")
    return [render.clean_line(line, 400) for line in lines]


def _ask_status() -> dict[str, Any]:
    """Empty if no daemon runs, or the starting one fails."""
    try:
        value: dict[str, Any] = client.ask_daemon("status") if client.running_pid() else {}
        return value
    except DaemonUnreachable:
        return {}


def restored_line(restored: dict[str, Any]) -> str:
    name = Path(restored["backup"]).name or "what could be read"
    by = "" if restored["asked"] else ", after damage"
    lost = render.counted(restored["lost"], "event was", "events were")
    return f"restored {time_ago(restored['at'])} from {name}{by}: {lost} lost; older approvals are void"


def _gate_attention(pid: int) -> list[str]:
    """What gates want a person to see."""
    try:
        return [render.clean_line(line, 400) for line in client.ask_view("gates.attention")["lines"]] if pid else []
    except client.Refused:
        return []


def _unrecorded(pid: int) -> list[str]:
    try:
        return list(unrecorded_lines(client.ask_view("sessions.unrecorded"), now_ms())) if pid else []
    except client.Refused:
        return []


def _daemon_line(pid: int, answer: dict[str, Any], obstacle: str) -> str:
    if obstacle:
        return f"daemon   {obstacle}"
    if not pid:
        return "daemon   not running (hooks start it automatically)"
    since, memory = time_ago(answer["started"]), format_bytes(answer["memory_bytes"])
    return f"daemon   pid {pid}, started {since}, {memory}, {answer['state']}"


def _log_line(answer: dict[str, Any]) -> str:
    counts = answer["counts"]
    waiting = f", {format_bytes(answer['spool_bytes'])} in the spool" if answer["spool_bytes"] else ""
    jobs = f", {render.counted(counts['jobs'], 'job')} waiting" if counts["jobs"] else ""
    size = f"{format_bytes(answer['store_bytes'])} in {answer['store']}"
    return f"log      {render.counted(counts['events'], 'event')}, {size}{waiting}{jobs}"


def bodies_line(bodies: dict[str, Any]) -> str:
    """Whether stored payloads are encrypted, and how far the conversion is."""
    left, form = bodies["left"], "encrypted" if bodies["wanted"] else "plain"
    if bodies["problem"]:
        return "not stored: they are to be encrypted, and there is no key"
    if left is None and bodies["wanted"]:
        return "encrypted at rest from now on; older ones are being counted"
    if left:
        return f"{form} from now on; {left} older ones are not yet"
    return "encrypted at rest" if bodies["wanted"] else "not encrypted at rest"


def _hooks_line(installed: list[dict[str, Any]]) -> str:
    if not installed:
        return "hooks    in no agent yet"
    return "hooks    " + ", ".join(f"{p['agent']} ({p['level']}: {p['path']})" for p in installed)


def status_warnings(answer: dict[str, Any]) -> list[str]:
    difference = client.version_difference(answer) if answer else ""
    lines = [f"{difference}: holdfast daemon restart"] if difference else []
    return [*lines, *trouble_lines(answer), *answer.get("notices", ())]


def next_step(answer: dict[str, Any], installed: bool) -> str:
    if not installed:
        return "Next: holdfast up        (starts the daemon and puts the hooks into the agents it finds)"
    if answer.get("counts", {}).get("events", 0) < 5:
        return "Next: use your agent as always, then: holdfast event tail"
    return "See what happens: holdfast event tail"

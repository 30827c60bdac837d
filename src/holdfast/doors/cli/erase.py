"""`holdfast data erase`: removes a session, a project, a text or everything for good."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import client
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.redact import STDIN, redact
from holdfast.paths import Paths

MOST_SHOWN = 40
TABLE_NAMES = {"facts": "events", "bodies": "tool output", "states": "documents"}


def register(app: typer.Typer) -> None:
    app.command()(erase)
    app.command()(redact)


def erase(
    session: Annotated[str, typer.Option("--session", help="A session, by its full id.")] = "",
    project: Annotated[str, typer.Option("--project", help="A project's folder, with all below it.")] = "",
    text: Annotated[str, typer.Option("--text", help="A text, wherever it is repeated; - reads standard input.")] = "",
    everything: Annotated[bool, typer.Option("--everything", help="All that Holdfast has stored.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this it is only shown.")] = False,
    json: Json = False,
) -> None:
    """Erase for good: store, files, indexes, backups, logs. After a crash it is completed at the next start."""
    if sum(map(bool, (session, project, text, everything))) != 1:
        raise CommandRefused("name one of --session, --project, --text, --everything")
    if everything:
        erase_everything(yes, json)
        return
    if text:
        erase_text(sys.stdin.read() if text == STDIN else text, yes, json)
        return
    folder = str(Path(project).expanduser().resolve()) if project else ""
    if not yes:
        raise CommandRefused(f"erasing {session or folder} cannot be undone", fix="Say --yes to do it.")
    sessions, projects = [session] if session else [], [folder] if folder else []
    show_receipt(client.ask_daemon("erase", sessions=sessions, projects=projects), json)


def erase_text(text: str, yes: bool, json: bool) -> None:
    """List every occurrence; `yes` erases them."""
    if not yes:
        _show_repetitions(client.ask_daemon("erase", texts=[text], dry=True), json)
        return
    show_receipt(client.ask_daemon("erase", texts=[text]), json)


def _show_repetitions(repetitions: list[dict[str, Any]], json: bool) -> None:
    render.finish_as_json(json, repetitions)
    for one in repetitions[:MOST_SHOWN]:
        where = f"{one['table']} {one['key']} {one['field']}".strip()
        render.out.print(f"{render.clean_line(where, 60):<60}  {render.clean_line(one['excerpt'], 160)}")
    if len(repetitions) > MOST_SHOWN:
        render.out.print(f"… and {len(repetitions) - MOST_SHOWN} more")
    if not repetitions:
        render.out.print("Nothing repeats it: not the store, nor logs, backups, indexes or files in projects.")
        return
    counted = Counter(TABLE_NAMES.get(one["table"], one["table"]) for one in repetitions)
    kinds = ", ".join(f"{kind} {count}" for kind, count in counted.items())
    render.out.print(f"{len(repetitions)} places repeat it ({kinds}). Erase them with --yes; this cannot be undone.")


def show_receipt(receipt: dict[str, Any], json: bool) -> None:
    render.finish_as_json(json, receipt)
    render.out.print(
        f"Erased and searched for: {receipt['events']} events, {receipt['rows']} rows, {receipt['copies']} backups and"
        f" copies, {receipt['files']} files changed, {receipt['removed']} files removed. Receipt {receipt['id']}."
    )


def erase_everything(yes: bool, json: bool) -> None:
    """Without a running daemon; a daemon that finds an unfinished erasure completes it."""
    paths = client.state_paths()
    if not yes:
        raise CommandRefused(
            f"this erases all of {paths.state} and the files Holdfast keeps in projects", fix="Say --yes to do it."
        )
    client.authorise("erase-everything")
    from holdfast.app import database_path, open_settings
    from holdfast.core.machine import Lease
    from holdfast.daemon.wipe import begin_wipe, finish_wipe, remove_state

    told = _tell_team(paths)
    # While the daemon can be asked: afterwards nobody knows which files in projects are ours.
    shown = client.ask_daemon("shown_files")
    # Marked before the daemon stops: one that a hook starts meanwhile finds the mark and continues.
    begin_wipe(paths)
    client.stop_daemon("holdfast data erase --everything")
    lease = Lease(paths.lease)
    if not lease.acquire():
        raise CommandRefused("a daemon has started meanwhile and erases everything", fix="See: holdfast status")
    for name in shown:
        Path(name).unlink(missing_ok=True)
    finish_wipe(paths, database_path(paths, open_settings()))
    remove_state(paths)
    lease.release()
    render.finish_as_json(json, {"erased": str(paths.state), "files": len(shown), "team": told})
    render.out.print(
        f"Erased: {paths.state}, and {len(shown)} files in projects. Settings and installed hooks are left;"
        f" `holdfast uninstall` removes the hooks.{told and ' '}{told}"
    )


def _tell_team(paths: Paths) -> str:
    """Report what happened to data sent to the team. Afterwards this machine has no token any more."""
    from holdfast_team.erased import forget_everything
    from holdfast_team.membership import TeamFiles, connect_team

    membership = TeamFiles(paths).membership()
    if membership is None:
        return ""
    try:
        receipt = forget_everything(connect_team(membership))
    except HoldfastError as error:
        return f"The team's server could not be informed ({error.message}): what this machine sent is still there."
    if receipt.words is None:
        return "The team's server is too old to forget a whole machine: what this machine sent is still there."
    return f"The team's server forgot {receipt.events} events and {receipt.rows} rows. Its receipt {receipt.id}."

"""`holdfast event`: the log."""

from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.times import format_bytes
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json, Since, since_ms

event_app = typer.Typer(help="Look at the log.", no_args_is_help=True)

Session = Annotated[
    str, typer.Option("--session", help="Only this session: its id, the beginning of it, or its alias.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)]


@event_app.command("list")
def list_events(
    session: Session = "",
    limit: Limit = 40,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only this kind; may be given several times.")
    ] = None,
    before: Annotated[int, typer.Option("--before", help="Only events before this number.")] = 0,
    since: Since = "",
    json: Json = False,
) -> None:
    """List the newest events, oldest first."""
    session = _full_id(session)
    page = answered.view(
        json, "log.events", session=session, limit=limit, before=before, kinds=kind or [], since=since_ms(since)
    )
    for event in page["events"]:
        render.out.print(render.event_line(event))
    if not page["events"]:
        render.out.print(_nothing_found(session, kind or [], before))
    elif page["next"]:
        only = f" --session {session}" if session else ""
        more = f"older: holdfast event list{only} --before {page['next']['before']}"
        render.hint(render.clean_line(more))


@event_app.command()
def tail(
    session: Session = "",
    limit: Limit = 10,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", "-f", help="Follow new events.")] = True,
    json: Json = False,
) -> None:
    """Show the last events, then each new one as it happens."""
    session = _full_id(session)
    page = client.ask_view("log.events", session=session, limit=limit)["events"]
    for event in page:
        _show_event(event, json)
    if not follow:
        return
    # The stream starts after the page, so no event in between is missed.
    after = page[-1]["seq"] if page else 0
    for line in client.stream_replies("tail", after=after, session=session):
        if "event" in line:
            _show_event(line["event"], json)


@event_app.command()
def show(seq: int, json: Json = False) -> None:
    """Show one event with all its fields."""
    event = answered.view(json, "log.event", seq=seq)
    render.out.print(render.event_line(event))
    for name, value in event["data"].items():
        render.out.print(Text(f"  {name:<12} ", style="dim") + Text(render.clean_line(value, 2000)))
    if event["body"]:
        size_note = "" if not event["body_hash"] else f" (cut down from {format_bytes(event['body_size'])})"
        render.hint(f"  body{size_note}:")
        render.say("  " + render.clean_line(event["body"], 4000))


def _full_id(session: str) -> str:
    """Resolve a prefix or alias to an id. Ambiguous ones are refused with the candidates."""
    return str(client.ask_view("sessions.find", id=session)["id"]) if session else ""


def _nothing_found(session: str, kinds: list[str], before: int) -> str:
    """The explanation for an empty page."""
    if not (session or kinds or before):
        return "No events yet. Put the hooks in with: holdfast install"
    of_kind = f" of kind {', '.join(kinds)}" if kinds else ""
    in_session = f" in session {session}" if session else ""
    return render.clean_line(f"No events{of_kind}{in_session}{f' before {before}' if before else ''}.")


def _show_event(event: dict[str, Any], json: bool) -> None:
    render.finish_as_json(json, event)
    render.out.print(render.event_line(event))

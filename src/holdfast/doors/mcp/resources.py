"""MCP resources: the state, the tasks, and what happened in each session."""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.doors.mcp.answers import Row, date_of, format_row
from holdfast.doors.mcp.context import Context
from holdfast.doors.mcp.prompts import figures_line
from holdfast.doors.mcp.tools import Arguments, Paged, list_tasks, show_state

STATE, TASKS, SESSION = "holdfast://state", "holdfast://tasks", "holdfast://session/"
SESSIONS_PER_PAGE = 50
ENTRIES = 200
TEMPLATE = {
    "uriTemplate": SESSION + "{id}", "name": "session", "mimeType": "text/plain",
    "description": "What happened in a session, in order, with dates.",
}  # fmt: skip
FIXED = (
    {
        "uri": STATE,
        "name": "state",
        "mimeType": "text/plain",
        "description": "Branch, changes, tests and blockers now.",
    },
    {"uri": TASKS, "name": "tasks", "mimeType": "text/plain", "description": "Open tasks, most urgent first."},
)


class Content(msgspec.Struct, rename={"mime_type": "mimeType"}):
    uri: str
    text: str
    mime_type: str = "text/plain"


def list_resources(cursor: str, context: Context) -> dict[str, Any]:
    before = _decode_cursor(cursor)
    answer = context.view(
        "sessions.list", all=True, project=context.caller.project, limit=SESSIONS_PER_PAGE, before=before
    )
    sessions = [_session_resource(one) for one in answer["sessions"]]
    following = {"nextCursor": f"{answer['next'][0]}:{answer['next'][1]}"} if answer["next"] else {}
    # The fixed ones are on the first page only.
    return {"resources": [*(() if before else FIXED), *sessions], **following}


def _decode_cursor(cursor: str) -> list[Any] | None:
    at, _, session = cursor.partition(":")
    if not cursor:
        return None
    if not at.isdecimal() or not session:
        raise CommandRefused("this cursor was not made here", fix="Begin without one.")
    return [int(at), session]


def _session_resource(session: dict[str, Any]) -> dict[str, str]:
    about = f"{session['agent']}, {date_of(session['at'])}, {session['status']}: {session['title']}"
    name = f"session {session['alias']}"
    return {"uri": SESSION + session["id"], "name": name, "description": about[:200], "mimeType": "text/plain"}


def read_resource(uri: str, context: Context) -> Content:
    if uri == STATE:
        return Content(uri, show_state(Arguments(), context).text)
    if uri == TASKS:
        return Content(uri, list_tasks(Paged(limit=50), context).text)
    if uri.startswith(SESSION) and len(uri) > len(SESSION):
        return Content(uri, "\n".join(timeline_lines(uri.removeprefix(SESSION), context)))
    raise CommandRefused(f"there is no resource {uri[:200]!r}", fix="See resources/list.")


def timeline_lines(session: str, context: Context) -> Iterator[str]:
    timeline = context.view("sessions.timeline", id=session, limit=ENTRIES)
    about = timeline["session"]
    yield f"session {about['id']} | {about['agent']} | {date_of(about['started_at'])} | {about['state']}"
    yield figures_line(about)
    if timeline["next"]:
        yield f"(only the last {ENTRIES} entries)"
    for entry in timeline["entries"]:
        text = f"{entry['tool']} {entry['text']}".strip()
        yield format_row(Row(f"e{entry['seq']}", date_of(entry["at"]), f"turn {entry['turn']}", entry["kind"], text))

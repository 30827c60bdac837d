"""The board as a page: plain HTML that refreshes itself, without scripts or external resources."""

import html
from datetime import UTC, datetime
from typing import Any

from holdfast.core.look import document_style
from holdfast.core.text import strip_controls
from holdfast_team.protocol import CodeIssued
from holdfast_team.server.tenancy import Member

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
REFRESH_S = 5
STYLE = """
.wide { overflow-x: auto; } table { margin-bottom: 2rem; } td:first-child, .urgent { font-weight: 600; } .urgent { color: var(--waiting); }
@media (max-width: 50rem) {
  thead { display: none; } tr { display: block; padding: .5rem 0; border-top: 1px solid var(--line); }
  td { display: grid; grid-template-columns: 6rem 1fr; padding: .1rem 0; border: 0; overflow-wrap: anywhere; }
  td::before { content: attr(data-label); font-weight: 400; color: var(--ink-3); } td:empty { display: none; }
}
"""
"""What only the board has."""
STATES = {
    "waiting": "waits for a person",
    "working": "works",
    "idle": "its turn is over",
    "unknown": "no sign of its machine",
}


def draw_board(board: dict[str, Any], who: Member) -> str:
    now = int(board["now"])
    parts = [
        f"<h1>{_escape_text(who.tenant)}</h1>"
        f"<p>You are {_escape_text(who.person)}, {_escape_text(who.role)}. This page refreshes itself every {REFRESH_S} seconds.</p>",
        "<h2>Sessions</h2>",
        _html_table(("Person", "State", "Project", "Branch", "Files written", "Agent", "Machine", "Last news"), [
            (
                one["person"], STATES.get(one["state"], one["state"]), one["remote"] or "", one["branch"],
                _some_names(one["files"]), one["agent"], _machine_name(one, board["sessions"]), _format_ago(one["seen_at"], now),
            )
            for one in board["sessions"]
        ], "No session is running."),
        "<h2>Files that several sessions write</h2>",
        _html_table(("File", "Project", "Written by"), [
            (one["path"], one["remote"] or "", "; ".join(f"{s['person']} on {s['branch'] or 'no branch'}" for s in one["sessions"]))
            for one in board["overlaps"]
        ], "None."),
        "<h2>Leases</h2>",
        _html_table(("Name", "Project", "Held by", "Files", "Why", "Ends, unless renewed", "Token"), [
            (
                one["name"], one.get("remote") or "", one["person"], ", ".join(one["paths"]) or "none: only the name", one.get("why", ""),
                f"in {_format_seconds(max(0, one['until'] - now) // 1000)}", str(one["token"]),
            )
            for one in board["leases"]
        ], "Nothing is held."),
    ]  # fmt: skip
    refresh = f'<meta http-equiv="refresh" content="{REFRESH_S}">'
    return _whole_page("Team board", "".join(parts), refresh)


def _machine_name(one: dict[str, Any], sessions: list[dict[str, Any]]) -> str:
    """Its label; with the beginning of its id if another machine has the same."""
    same = {other["machine"] for other in sessions if other["label"] == one["label"]}
    return one["label"] if one["label"] and len(same) == 1 else f"{one['label']} {one['machine'][:8]}".strip()


def _some_names(files: list[str]) -> str:
    return ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")


def draw_problem(error: str, fix: str) -> str:
    """A refusal as a page, where a program would get JSON."""
    return _simple_page("This did not work", f"<p>{_sentence(error)}</p><p>{_sentence(fix)}</p>")


def _sentence(text: str) -> str:
    whole = text[:1].upper() + text[1:]
    return _escape_text(whole if not whole or whole.endswith(".") or ": " in whole else f"{whole}.")


def draw_code(who: Member, issued: CodeIssued, address: str) -> str:
    """The code page after a sign-on to join a machine; the code works once."""
    return _simple_page(
        "Join a machine",
        f"<p>You are {_escape_text(who.person)}, {_escape_text(issued.role)} of {_escape_text(who.tenant)}."
        f" In the terminal that waits, enter this code within ten minutes; it works once.</p><pre>{_escape_text(issued.code)}</pre>"
        f"<p>Or run:</p><pre>holdfast team join {_escape_text(address)} --code {_escape_text(issued.code)}</pre>",
    )


def draw_signed_on(who: Member) -> str:
    """The board's cookie is sent only by our own pages, so this one links there."""
    return _simple_page(
        "Signed on",
        f'<p>You are {_escape_text(who.person)}. <a href="/board">To the board</a></p>',
        '<meta http-equiv="refresh" content="0;url=/board">',
    )


def _simple_page(title: str, body: str, head: str = "") -> str:
    return _whole_page(title, f"<h1>{_escape_text(title)}</h1>{body}", head)


def _whole_page(title: str, body: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{_escape_text(title)}</title>'
        f"<style>{document_style()}{STYLE}</style></head><body><main>{body}</main></body></html>"
    )


def _html_table(heads: tuple[str, ...], rows: list[tuple[str, ...]], empty: str) -> str:
    """On a narrow screen each row is a list with labelled cells."""
    if not rows:
        return f"<p>{_escape_text(empty)}</p>"
    head = "".join(f"<th scope=col>{_escape_text(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(map(_html_cell, heads, row))}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _html_cell(head: str, cell: str) -> str:
    urgent = " class=urgent" if cell == STATES["waiting"] else ""
    # Lines break at separators of a path or address before they break within a word.
    text = _escape_text(cell).replace("/", "/<wbr>").replace("@", "<wbr>@")
    return f'<td data-label="{_escape_text(head)}"{urgent}>{text}</td>'


def _escape_text(value: object) -> str:
    # Texts come from many machines: neither their markup nor control characters reach the page.
    return html.escape(strip_controls(str(value)))


def _format_ago(at: int, now: int) -> str:
    seconds = max(0, now - at) // 1000
    return (
        f"{_format_seconds(seconds)} ago"
        if seconds < 7200
        else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    )


def _format_seconds(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"

"""The board as a page: plain HTML that refreshes itself, no script, nothing from elsewhere."""

import html
from datetime import UTC, datetime
from typing import Any

from holdfast.core.text import strip_controls
from holdfast.team.protocol import CodeIssued
from holdfast.team.server.tenancy import Member

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
REFRESH_S = 5
STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem; }
th, td { text-align: left; padding: .35rem .7rem; vertical-align: top; }
td { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
"""


def draw_board(board: dict[str, Any], who: Member) -> str:
    now = int(board["now"])
    parts = [
        f"<h1>{_escape_text(who.tenant)}</h1>"
        f"<p>Signed in as {_escape_text(who.person)}, {_escape_text(who.role)}. Refreshes every {REFRESH_S} s.</p>",
        "<h2>Sessions</h2>",
        _html_table(("Person", "Machine", "Project", "Branch", "Agent", "State", "Files", "Last seen"), [
            (
                one["person"], one["label"] or one["machine"][:8], one["remote"] or "", one["branch"], one["agent"],
                one["state"], ", ".join(one["files"][:5]), _format_ago(one["seen_at"], now),
            )
            for one in board["sessions"]
        ], "No session is running."),
        "<h2>Overlaps</h2>",
        _html_table(("File", "Project", "Written by"), [
            (one["path"], one["remote"] or "", "; ".join(f"{s['person']} ({s['branch'] or 'no branch'})" for s in one["sessions"]))
            for one in board["overlaps"]
        ], "No file is written by two sessions."),
        "<h2>Leases</h2>",
        _html_table(("Name", "Held by", "Paths", "Token", "Left"), [
            (one["name"], one["person"], ", ".join(one["paths"]), str(one["token"]), f"{max(0, one['until'] - now) // 1000} s")
            for one in board["leases"]
        ], "Nothing is held."),
    ]  # fmt: skip
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{REFRESH_S}">'
        f"<title>Team board</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def draw_code(who: Member, issued: CodeIssued, address: str) -> str:
    """For whoever signed on to join a machine; the code works once."""
    return _simple_page(
        "Join a machine",
        f"<p>You are {_escape_text(who.person)}, {_escape_text(issued.role)} of {_escape_text(who.tenant)}."
        f" In the terminal that waits, enter this code within ten minutes; it works once.</p><pre>{_escape_text(issued.code)}</pre>"
        f"<p>Or run:</p><pre>holdfast team join {_escape_text(address)} --code {_escape_text(issued.code)}</pre>",
    )


def draw_signed_on(who: Member) -> str:
    """The board's cookie is sent only by our own pages, so this one leads there."""
    return _simple_page(
        "Signed on",
        f'<p>You are {_escape_text(who.person)}. <a href="/board">To the board</a></p>',
        '<meta http-equiv="refresh" content="0;url=/board">',
    )


def _simple_page(title: str, body: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}<title>{_escape_text(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{_escape_text(title)}</h1>{body}</body></html>"
    )


def _html_table(heads: tuple[str, ...], rows: list[tuple[str, ...]], empty: str) -> str:
    if not rows:
        return f"<p>{_escape_text(empty)}</p>"
    head = "".join(f"<th scope=col>{_escape_text(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_escape_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escape_text(value: object) -> str:
    # Texts come from many machines: neither markup nor control characters of theirs reach the page.
    return html.escape(strip_controls(str(value)))


def _format_ago(at: int, now: int) -> str:
    seconds = max(0, now - at) // 1000
    if seconds < 120:
        return f"{seconds} s ago"
    return (
        f"{seconds // 60} min ago" if seconds < 7200 else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    )

"""How things look in a terminal. Text from events is printed without control characters."""

import os
import sys
import time
import unicodedata
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.core.ids import alias

SCHEMA = 1
"""Raised when the JSON of any command changes in a way a script would notice."""

FOR_PIPES = 200
"""Columns where nobody's terminal says how many: a table that is searched or saved must not lose its ends."""
out = Console(
    highlight=False,
    soft_wrap=True,
    markup=False,
    width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FOR_PIPES,
)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)

STYLES = {
    "session": "cyan",
    "prompt": "green",
    "tool": "white",
    "turn": "blue",
    "decision": "yellow",
    "permission": "magenta",
    "unknown": "red",
}


def clean(value: Any, limit: int = 200) -> str:
    text = " ".join(str(value).split())
    shown = "".join(c for c in text[: limit + 1] if unicodedata.category(c)[0] != "C")
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def json_line(value: Any) -> None:
    print(msgspec.json.encode({"schema": SCHEMA, "data": value}, enc_hook=str).decode())


def clock(at_ms: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def day_and_clock(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


def ago(at_ms: int, now_ms: int | None = None) -> str:
    seconds = max(0, ((now_ms or time.time() * 1000) - at_ms) / 1000)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"


def plain_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
    for name in columns:
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    return table


def event_line(event: dict[str, Any]) -> Text:
    kind = event["kind"]
    line = Text(f"{event['seq']:>6}  {clock(event['at'])}  ", style="dim")
    line.append(f"{kind:<20} ", style=STYLES.get(kind.partition(".")[0], ""))
    line.append(f"{clean(alias(event['session'])):<8}  ", style="dim")
    line.append(clean(headline(event), 100))
    return line


def headline(event: dict[str, Any]) -> str:
    """What a person wants to know of an event in one line."""
    data = event["data"]
    if event["kind"] == "decision.made":
        told = [c["source"] for c in data.get("contexts", ())]
        return f"{data['verdict']}: {'; '.join(data['reasons']) or ', '.join(told)}"
    detail = next((data[name] for name in HEADLINE if data.get(name)), "")
    detail = detail[0] if isinstance(detail, list) and detail else detail
    lane = f"[{clean(data['lane_type'] or data['lane'], 20)}] " if data.get("lane") and "lane_type" in data else ""
    code = data.get("exit_code")
    return f"{lane}{event['tool'] + ': ' if event['tool'] else ''}{detail}{f' → {code}' if code is not None else ''}"


HEADLINE = (
    "prompt", "command", "paths", "skill", "source", "reason", "error", "message", "subject", "path", "text", "trigger",
    "version", "taken", "job", "native",
)  # fmt: skip

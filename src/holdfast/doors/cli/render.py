"""Formats terminal output; text from events is printed without control characters."""

import codecs
import io
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from holdfast.core.ids import session_alias
from holdfast.core.text import escape_invisible, shorten_line, strip_controls

SCHEMA = 1
"""Raised when the JSON of any command changes in a way that breaks scripts."""

FOR_PIPES = 200
"""Columns without a terminal: a table that is searched or saved must not lose its ends."""


class VisibleConsole(Console):
    """Prints nothing as an escape sequence but its own styles."""

    def on_broken_pipe(self) -> None:
        """The reader has seen enough (`| head`): no error. Rich would exit with 1."""
        raise BrokenPipeError

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        visible = [s if s.control else Segment(strip_controls(s.text), s.style) for s in buffer]
        return super()._render_buffer(visible)


# Created without arguments: `open_consoles` initialises the same objects again for every caller of the warm server.
out = VisibleConsole.__new__(VisibleConsole)
err = VisibleConsole.__new__(VisibleConsole)


PLAIN_SYMBOLS = {
    "✓": "+", "✗": "x", "·": "-", "●": "*", "⬜": "o", "→": "->", "…": "...", "–": "-", "—": "-", "×": "x", "≤": "<=",
    "“": '"', "”": '"', "’": "'", "─": "-", "│": "|",
}  # fmt: skip
"""Replacements of our symbols on a terminal that cannot show them."""


def _in_plain_symbols(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN_SYMBOLS.get(character, "?") for character in text), error.end


codecs.register_error("holdfast", _in_plain_symbols)


def open_consoles() -> None:
    """Use the current standard streams: a command of the warm server gets those of its caller."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="holdfast")
    # `COLUMNS` is the person's explicit width.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else FOR_PIPES
    for console, stderr in ((out, False), (err, True)):
        console.__init__(  # type: ignore[misc]
            stderr=stderr, highlight=False, soft_wrap=True, markup=False, width=None if stderr else width
        )


open_consoles()

STYLES = {
    "session": "cyan",
    "prompt": "green",
    "tool": "white",
    "turn": "blue",
    "decision": "yellow",
    "permission": "magenta",
    "unknown": "red",
}


def clean_line(value: Any, limit: int = 200) -> str:
    """One line of bounded length, without invisible characters."""
    return shorten_line(" ".join(strip_controls(str(value)).split()), limit)


def json_text(value: Any) -> str:
    return escape_invisible(msgspec.json.encode(value, enc_hook=str).decode())


def json_line(value: Any) -> None:
    print(json_text({"schema": SCHEMA, "data": value}))


def finish_as_json(asked: bool, value: Any, code: int = 0) -> None:
    """With --json, print the value and end the command; otherwise return, so that the command prints it for people."""
    if asked:
        json_line(value)
        raise typer.Exit(code)


def say(text: str, style: str = "") -> None:
    """One line for people. As a `Text`, so that nothing in it is read as an emoji code."""
    out.print(Text(text, style=style))


def hint(text: str) -> None:
    say(text, "dim")


def warn(text: Any) -> None:
    say(f"! {text}", "yellow")


def print_text(text: str) -> None:
    """A whole foreign text, without invisible characters."""
    print(strip_controls(text), end="", flush=True)


def counted(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def clock_time(at_ms: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def short_time(at_ms: int) -> str:
    """The clock, of another day with its date."""
    is_today = time.localtime(at_ms / 1000)[:3] == time.localtime()[:3]
    return clock_time(at_ms) if is_today else time.strftime("%d %b %H:%M", time.localtime(at_ms / 1000))


def day_and_clock(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


GAP = 2
SMALLEST_TEXT = 12
"""Minimum columns of the text; others are dropped first."""


class FittingTable(Table):
    """Drops columns that do not fit, from the right; the first titled one (the id) and the last one stay. The last is
    cut if it is text; a number never is, the name is cut instead."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        everything = self.columns
        self.columns = self._fitting(options.max_width)
        try:
            yield from super().__rich_console__(console, options)
        finally:
            self.columns = everything

    def _fitting(self, width: int) -> list[Column]:
        columns = list(self.columns)
        # The first column with a title; columns before it hold marks.
        identity = next((column for column in columns if str(column.header)), columns[0])
        text = identity if columns[-1].justify == "right" else columns[-1]
        while len(columns) > 2 and self._fixed(columns, text) + min(_column_width(text), SMALLEST_TEXT) > width:
            inner = [column for column in columns[:-1] if column is not identity]
            if not inner:
                break
            columns.remove(inner[-1])
        rest = width - self._fixed(columns, text)
        for column in columns:
            own = _column_width(column)
            column.width = max(1, min(own, rest)) if column is text else own
        return columns

    @staticmethod
    def _fixed(columns: list[Column], text: Column) -> int:
        """What all but the text need."""
        return sum(_column_width(column) for column in columns if column is not text) + GAP * (len(columns) - 1)


def _column_width(column: Column) -> int:
    return max(cell_len(str(cell)) for cell in (column.header, *column.cells))


def plain_table(*columns: str) -> Table:
    table = FittingTable(box=None, pad_edge=False, show_edge=False, header_style="dim")
    for name in columns:
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    return table


def event_line(event: dict[str, Any]) -> Text:
    kind = event["kind"]
    line = Text(f"{event['seq']:>6}  {short_time(event['at'])}  ", style="dim")
    line.append(f"{kind:<20} ", style=STYLES.get(kind.partition(".")[0], ""))
    line.append(f"{clean_line(session_alias(event['session'])):<8}  ", style="dim")
    line.append(clean_line(event_headline(event), 100))
    line.rstrip()
    return line


def event_headline(event: dict[str, Any]) -> str:
    """The essence of an event in one line."""
    data = event["data"]
    if event["kind"] == "answer.undelivered":
        return f"not delivered: {data.get('verdict', '')}: {'; '.join(data.get('reasons', ()))}"
    if event["kind"] == "decision.made":
        sources = [c["source"] for c in data.get("contexts", ())]
        return f"{data.get('verdict', '')}: {'; '.join(data.get('reasons', ())) or ', '.join(sources)}"
    lane = f"[{clean_line(data['lane_type'] or data['lane'], 20)}] " if data.get("lane") and "lane_type" in data else ""
    code = "" if data.get("exit_code") is None else f" → {data['exit_code']}"
    tool = f"{event['tool']}: " if event["tool"] else ""
    return f"{lane}{tool}{_first_detail(data)}{code}"


def _first_detail(data: dict[str, Any]) -> Any:
    detail = next((data[name] for name in HEADLINE if data.get(name)), "")
    return detail[0] if isinstance(detail, list) and detail else detail


HEADLINE = (
    "prompt", "command", "paths", "skill", "source", "reason", "error", "message", "subject", "path", "text", "trigger",
    "version", "taken", "job", "native",
)  # fmt: skip

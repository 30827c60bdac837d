"""Loads templates and static files once; autoescape is always on, and every value goes through `text.harmless`."""

import hashlib
import re
import time
from datetime import datetime
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup, escape

from holdfast import __version__
from holdfast.analysis.usage.report import format_dollars
from holdfast.core import look
from holdfast.core.ids import session_alias
from holdfast.core.text import name_invisible, shorten_line, without_fences
from holdfast.core.times import AGO_UNITS, DAY, HOUR, MINUTE, SECOND, format_bytes

# Formats values for pages. Whatever an agent sent is text: characters that hide or reorder it are named instead.

LONGEST = 20_000
UNITS = (*AGO_UNITS, (SECOND, "s"))


def sanitise_value(value: Any) -> Any:
    """Every expression of every template passes through here (Jinja's `finalize`)."""
    # Printable ASCII is nearly every value, and needs no further check.
    if type(value) is str and not (value.isascii() and value.isprintable()):
        return name_invisible(value)
    return "" if value is None else value


def cut_line(value: Any, limit: int = 200) -> str:
    """On one line, bounded."""
    # Cut before splitting: a value may be megabytes long.
    text = " ".join(str(value or "")[: limit * 4].split())
    return shorten_line(text, limit)


def cut_long_text(value: Any, limit: int = LONGEST) -> str:
    text = str(value or "")
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit:,} more characters"


def format_span(ms: Any) -> str:
    """A duration: 350 ms, 4.2 s, 3 min 05 s, 2 h 10 min."""
    ms = max(0, int(ms or 0))
    if ms < 1000:
        return f"{ms} ms"
    if ms < MINUTE:
        return f"{ms / 1000:.1f} s" if ms < 10_000 else f"{ms // 1000} s"
    if ms < HOUR:
        return f"{ms // MINUTE} min {ms // 1000 % 60:02d} s"
    if ms < DAY:
        return f"{ms // HOUR} h {ms // MINUTE % 60:02d} min"
    return f"{ms // DAY} d {ms // HOUR % 24} h"


def format_exact_time(at: Any) -> str:
    at = int(at or 0)
    try:
        return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S") + f".{at % 1000:03d}"
    except (ValueError, OverflowError, OSError):
        return str(at)


def format_clock(at: Any) -> str:
    return format_exact_time(at)[11:19]


def ago_words(at: int, now: int | None = None) -> str:
    """The same words as static/times.js."""
    passed = (now or int(time.time() * 1000)) - at
    for size, unit in UNITS:
        if passed >= size:
            return f"{passed // size} {unit} ago"
    return "now" if passed > -5_000 else format_exact_time(at)[:16]


def format_ago(at: Any, now: int | None = None) -> Markup:
    """ "2 min ago", with the exact time on hover; updated by a script."""
    if not at:
        return Markup('<span class="none">–</span>')
    at = int(at)
    words = ago_words(at, now)
    return Markup('<time data-at="{}" title="{}">{}</time>').format(at, format_exact_time(at), words)


def format_since(at: Any, now: int | None = None) -> Markup:
    """How long it has lasted; updated by a script."""
    if not at:
        return Markup('<span class="none">–</span>')
    passed = (now or int(time.time() * 1000)) - int(at)
    return Markup('<time data-since="{}" title="since {}">{}</time>').format(
        int(at), format_exact_time(at), format_span(passed)
    )


def format_count(value: Any) -> str:
    """1,234 · 12.3 k · 4.5 M"""
    number = float(value or 0)
    if abs(number) < 10_000:
        return f"{number:,.0f}"
    for unit in ("k", "M"):
        number /= 1000
        if abs(number) < 1000:
            return f"{number:.1f} {unit}" if abs(number) < 100 else f"{number:.0f} {unit}"
    return f"{number / 1000:.1f} G"


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_WORDS = re.compile(r"[a-z]+(_[a-z]+)+")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def format_fact(value: Any) -> str:
    """A value of the state document in readable form; the document itself is on the same page."""
    if isinstance(value, int | float):
        return f"{value:,}"
    text = str(value)
    if _MOMENT.fullmatch(text):
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if _WORDS.fullmatch(text):
        return text.replace("_", " ")
    return text[:12] if _COMMIT.fullmatch(text) else cut_line(text, 300)


def format_size(value: Any) -> str:
    return format_bytes(value or 0)


def format_latency(ms: float) -> str:
    """Hooks take from fractions of a millisecond to many: show three digits."""
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms" if ms >= 10 else f"{ms:.2f} ms"


def step_verdict(status: Any) -> str:
    """A step's status as the result used elsewhere on the page."""
    return {"completed": "passed", "in_progress": "not finished"}.get(str(status), str(status).replace("_", " "))


def folder_name(path: Any) -> str:
    """The last part of a path: what people call a project."""
    return str(path or "").rstrip("/").rpartition("/")[2] or str(path or "")


def mark_words(text: str, words: list[str]) -> Markup:
    """Mark search words by splitting the plain text, so that nothing can break out."""
    shown = sanitise_value(text)
    # The longest first: a word may be part of another one.
    terms = sorted({word for word in words if len(word) > 1}, key=len, reverse=True)
    if not terms:
        return escape(shown)
    parts = re.split(f"({'|'.join(map(re.escape, terms))})", shown, flags=re.IGNORECASE)
    # Every second part is a match, because the pattern has one group.
    return Markup("").join(Markup("<mark>{}</mark>").format(part) if n % 2 else part for n, part in enumerate(parts))


def build_link(path: str, **query: Any) -> str:
    """A URL of ours. Names from events are quoted."""
    arguments = {name: value for name, value in query.items() if value not in ("", None, 0)}
    return quote(path, safe="/%") + (f"?{urlencode(arguments)}" if arguments else "")


def quote_part(value: Any) -> str:
    """One path component."""
    return quote(str(value), safe="")


STATIC_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FILTERS = {
    "cut": cut_line, "long": cut_long_text, "span": format_span, "ago": format_ago, "since": format_since,
    "count": format_count, "size": format_size, "folder": folder_name, "exact": format_exact_time,
    "clock": format_clock, "part": quote_part, "alias": session_alias, "dollars": format_dollars,
    "unfenced": without_fences, "fact": format_fact, "latency": format_latency,
    "step_verdict": step_verdict,
}  # fmt: skip


class Static:
    """Styles and scripts, kept in memory under a URL that changes with their content."""

    def __init__(self) -> None:
        folder = resources.files(__package__).joinpath("static")
        self.files = {f.name: f.read_bytes() for f in folder.iterdir() if f.name.rpartition(".")[2] in STATIC_TYPES}
        self.files[look.TOKENS] = look.style_sheet(look.TOKENS).encode()
        # A new digest is a new URL, so browsers may cache the old one for ever.
        digest = hashlib.sha256(b"\0".join(name.encode() + body for name, body in sorted(self.files.items())))
        self.version = digest.hexdigest()[:12]

    def address(self, name: str) -> str:
        return f"/static/{self.version}/{name}"

    def type_of(self, name: str) -> str:
        return STATIC_TYPES[name.rpartition(".")[2]]


class Pages:
    def __init__(self, static: Static, **everywhere: Any) -> None:
        self._made = jinja2.Environment(
            loader=jinja2.PackageLoader("holdfast.doors.web"), autoescape=True, finalize=sanitise_value, auto_reload=False,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._made.filters |= FILTERS
        self._made.globals |= {
            "static": static.address, "link": build_link, "marked": mark_words, "version": __version__, **everywhere,
        }  # fmt: skip

    def compiled(self, template: str) -> None:
        self._made.get_template(template)

    def render(self, template: str, values: dict[str, Any]) -> bytes:
        return self._made.get_template(template).render(values).encode("utf-8", "replace")

"""Templates and files of our own, loaded once. Autoescape is always on, and every value goes through `text.harmless`."""

import hashlib
from importlib import resources
from typing import Any

import jinja2

from holdfast import __version__
from holdfast.core.ids import session_alias
from holdfast.core.text import without_fences
from holdfast.usage.report import format_dollars
from holdfast.web import text

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FILTERS = {
    "cut": text.cut_line, "long": text.cut_long_text, "span": text.format_span, "ago": text.format_ago, "since": text.format_since,
    "count": text.format_count, "size": text.format_size, "folder": text.folder_name, "exact": text.format_exact_time,
    "clock": text.format_clock, "part": text.quote_part, "alias": session_alias, "dollars": format_dollars,
    "unfenced": without_fences, "fact": text.format_fact,
}  # fmt: skip


class Static:
    """Style and scripts: few and small, kept in memory, under an address that changes when they do."""

    def __init__(self) -> None:
        folder = resources.files(__package__).joinpath("static")
        self.files = {f.name: f.read_bytes() for f in folder.iterdir() if f.name.rpartition(".")[2] in TYPES}
        # A new digest is a new address, so that browsers may keep the old one for ever.
        digest = hashlib.sha256(b"\0".join(name.encode() + body for name, body in sorted(self.files.items())))
        self.version = digest.hexdigest()[:12]

    def address(self, name: str) -> str:
        return f"/static/{self.version}/{name}"

    def type_of(self, name: str) -> str:
        return TYPES[name.rpartition(".")[2]]


class Pages:
    def __init__(self, static: Static, **everywhere: Any) -> None:
        self._made = jinja2.Environment(
            loader=jinja2.PackageLoader("holdfast.web"), autoescape=True, finalize=text.sanitise_value, auto_reload=False,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._made.filters |= FILTERS
        self._made.globals |= {
            "static": static.address, "link": text.build_link, "marked": text.mark_words, "version": __version__, **everywhere,
        }  # fmt: skip

    def compiled(self, template: str) -> None:
        self._made.get_template(template)

    def render(self, template: str, values: dict[str, Any]) -> bytes:
        return self._made.get_template(template).render(values).encode("utf-8", "replace")

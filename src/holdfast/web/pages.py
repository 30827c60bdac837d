"""Templates and files of our own, loaded once. Autoescape is always on, and every value goes through `text.harmless`."""

import hashlib
from importlib import resources
from typing import Any

import jinja2

from holdfast import __version__
from holdfast.core.ids import alias
from holdfast.usage.report import dollars
from holdfast.web import text

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FILTERS = {
    "cut": text.cut, "long": text.long, "span": text.span, "ago": text.ago, "since": text.since, "count": text.count,
    "size": text.size, "folder": text.folder, "exact": text.exact, "clock": text.clock, "part": text.part,
    "alias": alias, "dollars": dollars,
}  # fmt: skip


class Static:
    """Style and scripts: few and small, kept in memory, under an address that changes when they do."""

    def __init__(self) -> None:
        folder = resources.files(__package__).joinpath("static")
        self.files = {f.name: f.read_bytes() for f in folder.iterdir() if f.name.rpartition(".")[2] in TYPES}
        digest = hashlib.sha256(b"\0".join(name.encode() + body for name, body in sorted(self.files.items())))
        self.version = digest.hexdigest()[:12]

    def address(self, name: str) -> str:
        return f"/static/{self.version}/{name}"

    def type_of(self, name: str) -> str:
        return TYPES[name.rpartition(".")[2]]


class Pages:
    def __init__(self, static: Static, **everywhere: Any) -> None:
        self._made = jinja2.Environment(
            loader=jinja2.PackageLoader("holdfast.web"), autoescape=True, finalize=text.harmless, auto_reload=False,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._made.filters |= FILTERS
        self._made.globals |= {
            "static": static.address, "link": text.link, "marked": text.marked, "version": __version__, **everywhere,
        }  # fmt: skip

    def compiled(self, template: str) -> None:
        self._made.get_template(template)

    def render(self, template: str, values: dict[str, Any]) -> bytes:
        return self._made.get_template(template).render(values).encode("utf-8", "replace")

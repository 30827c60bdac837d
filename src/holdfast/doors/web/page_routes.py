"""The routes of the screens, rendered by the server, complete without scripts, once for all viewers."""

import io
import re
import time
import zipfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse, Response

from holdfast.client import version_difference
from holdfast.core.agent import Agent
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import session_alias
from holdfast.core.text import escape_invisible, strip_controls
from holdfast.doors.troubles import current_troubles
from holdfast.doors.web.answer_links import register_answer_links
from holdfast.doors.web.api_answers import UNAVAILABLE
from holdfast.doors.web.cached import Cached
from holdfast.doors.web.pages import Pages
from holdfast.doors.web.permissions import Permission, Routes
from holdfast.doors.web.screen import Screen, Visit
from holdfast.doors.web.screens import SCREENS
from holdfast.doors.web.shots import register_shots

if TYPE_CHECKING:
    from holdfast.doors.web.server import WebContext

FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
NOT_KEPT = {"cache-control": "no-store"}
WELCOME = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Holdfast</title>
<link rel="icon" href="ICON"><meta http-equiv="refresh" content="0;url=/"></head><body><a href="/">The dashboard</a></body></html>"""
ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3.5" fill="#0e7490"/>
<path d="M4.5 3.5v9M11.5 3.5v9M4.5 8h7" stroke="#fff" stroke-width="1.8" stroke-linecap="round"/>BADGE</svg>"""
BADGE = """<circle cx="11" cy="11" r="5" fill="#b45309"/><text x="11" y="13.4" font-family="sans-serif" font-size="6.5"
font-weight="700" text-anchor="middle" fill="#fff">NUMBER</text>"""
EXPORT_TYPES = {"md": "text/markdown", "jsonl": "application/jsonl", "html": "application/octet-stream"}
MOST_EXPORTED = 500
EXPORT_PATIENCE_S = 120.0
REMEMBERED = 32
# Seconds that a page is shared while the log has not grown.
KEPT_S = 2.0


class Broken(HoldfastError):
    """This page could not be rendered"""


def register(routes: Routes, web_context: "WebContext", _agents: Mapping[str, Agent]) -> None:
    pages = Pages(web_context.static, menu=[screen for screen in SCREENS if screen.key], csrf=web_context.keys.csrf)
    shown, files = RenderedPages(web_context, pages), Files(web_context)
    web_context.warm = shown.warm
    for screen in SCREENS:
        routes.add("GET", screen.path, Permission.READ, _page_handler(screen, shown))
    routes.add("GET", "/static/{version}/{name}", Permission.READ, files.static)
    routes.add("GET", "/icon.svg", Permission.READ, show_icon)
    routes.add("GET", "/sessions/export", Permission.READ, files.export)
    register_shots(routes, web_context)
    register_answer_links(routes, web_context, pages)
    routes.add("GET", "/open", Permission.LINK, files.open_link)


class RenderedPages:
    """Cached pages: fifty viewers of one page cost one rendering per change."""

    def __init__(self, web_context: "WebContext", pages: Pages) -> None:
        self._house, self._pages = web_context, pages
        self._made: dict[tuple[str, str], tuple[int, float, int, bytes]] = {}

    async def page(self, screen: Screen, request: Request) -> HTMLResponse:
        visit = Visit(self._house.client, dict(request.query_params), dict(request.path_params))
        status, body = await self._house.client.run(lambda: self._render(screen, visit, str(request.url)))
        return HTMLResponse(body, status, NOT_KEPT)

    def warm(self) -> None:
        """Compile the templates and render the first screen in advance."""
        for screen in SCREENS:
            self._pages.compiled(screen.file)
        self._anew(SCREENS[0], Visit(self._house.client, {}), 0)

    def _render(self, screen: Screen, visit: Visit, address: str) -> tuple[int, bytes]:
        head, now = self._head(visit), time.monotonic()
        at, made, status, body = self._made.get((screen.name, address), (-1, 0.0, 0, b""))
        if screen.live and at == head >= 0 and now - made < KEPT_S:
            return status, body
        status, body = self._anew(screen, visit, head)
        # Replaced as a whole: several threads render at once.
        recent = dict(list(self._made.items())[-REMEMBERED:])
        self._made = recent | {(screen.name, address): (head, now, status, body)}
        return status, body

    def _head(self, visit: Visit) -> int:
        try:
            return visit.reader.head()
        except HoldfastError:
            return -1  # The page itself will say what is wrong.

    def _anew(self, screen: Screen, visit: Visit, head: int) -> tuple[int, bytes]:
        common = {
            "screen": screen,
            "project": visit.project,
            "query": visit.query,
            "head": head,
            "waits": _count_waiting(visit),
            "troubles": troubles(),
        }
        try:
            return 200, self._pages.render(screen.file, {**common, **screen.page(visit)})
        except HoldfastError as error:
            status = 503 if isinstance(error, UNAVAILABLE) else 404
            return status, self._pages.render("problem.html", {**common, "error": error})
        except Exception as error:
            self._house.log.error("page.failed", error, screen=screen.name)
            return 500, self._pages.render("problem.html", {**common, "error": self._describe_failure(screen, error)})

    def _describe_failure(self, screen: Screen, error: Exception) -> Broken:
        """A daemon from before an upgrade keeps its version of the store, which explains most failures."""
        status = self._house.client.status()
        if status and (difference := version_difference(status, "the dashboard")):
            return Broken(difference, fix="Run: holdfast daemon restart")
        return Broken(f"{type(error).__name__} in {screen.name}", fix=f"See {self._house.paths.logs}/web.log")


troubles = Cached(current_troubles, 5.0)


def _count_waiting(visit: Visit) -> int:
    """How many sessions wait for the user, for the title and icon of every page."""
    try:
        return int(visit.view("sessions.who", of="")["waiting"])
    except HoldfastError:
        return 0


def _page_handler(screen: Screen, shown: RenderedPages) -> Callable[[Request], Any]:
    async def page(request: Request) -> HTMLResponse:
        return await shown.page(screen, request)

    return page


async def show_icon(waits: int = 0) -> Response:
    shown = "" if waits <= 0 else "9+" if waits > 9 else str(waits)
    badge = BADGE.replace("NUMBER", shown) if shown else ""
    return Response(ICON.replace("BADGE", badge), media_type="image/svg+xml", headers=FOR_EVER)


class Files:
    """What is no screen: static files, exports, and the page behind a one-time link."""

    def __init__(self, web_context: "WebContext") -> None:
        self._client, self._fixed, self._keys = web_context.client, web_context.static, web_context.keys

    async def static(self, version: str, name: str) -> Response:
        body = self._fixed.files.get(name)
        if body is None:
            return Response(status_code=404)
        cache_headers = FOR_EVER if version == self._fixed.version else NOT_KEPT
        return Response(body, media_type=self._fixed.type_of(name), headers=cache_headers)

    async def open_link(self, once: str = "") -> HTMLResponse:
        """A page with a link instead of a redirect: a strict cookie is not sent on a redirect from elsewhere."""
        if not self._keys.redeem(once):
            message = "This link was used already, or is too old. Make a new one: holdfast dashboard"
            return HTMLResponse(f"<!doctype html><title>Holdfast</title><p>{message}</p>", 403, NOT_KEPT)
        answer = HTMLResponse(WELCOME.replace("ICON", self._fixed.address("mark.svg")), 200, NOT_KEPT)
        # Strict and inaccessible to scripts: another site's link or page never carries it.
        answer.set_cookie(self._keys.cookie_name, self._keys.cookie, httponly=True, samesite="strict", path="/")
        return answer

    async def export(self, id: Annotated[list[str], Query(max_length=MOST_EXPORTED)], format: str = "md") -> Response:
        """Export one session as a file, or several as an archive."""
        if format not in EXPORT_TYPES:
            return Response(f"There is no format {format[:20]!r}: md, html or jsonl", 422, NOT_KEPT)
        if len(id) > 1:
            packed = await self._client.run(lambda: self._archive(id, format), EXPORT_PATIENCE_S)
            return _attachment(packed, "application/zip", "sessions.zip")
        text = await self._client.run(lambda: self._text(id[0], format), EXPORT_PATIENCE_S)
        return _attachment(text, f"{EXPORT_TYPES[format]}; charset=utf-8", f"session-{session_alias(id[0])}.{format}")

    def _archive(self, sessions: list[str], format: str) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for n, session in enumerate(dict.fromkeys(sessions), 1):
                name = _safe_name(session_alias(session))
                archive.writestr(f"{n:03d}-{name}.{format}", self._text(session, format))
        return packed.getvalue()

    def _text(self, session: str, format: str) -> str:
        answer = self._client.view("sessions.export", {"id": session, "format": format})
        parts = [answer["text"]]
        while answer["next"]:
            following = {"id": answer["id"], "format": format, "after": answer["next"]}
            answer = self._client.view("sessions.export", following)
            parts.append(answer["text"])
        return "".join(escape_invisible(part) if format == "jsonl" else strip_controls(part) for part in parts)


def _attachment(content: str | bytes, media_type: str, name: str) -> Response:
    # A session's name comes from an agent: it must not end the header.
    disposition = {"content-disposition": f'attachment; filename="{_safe_name(name)}"'}
    return Response(content, media_type=media_type, headers={**NOT_KEPT, **disposition})


def _safe_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)

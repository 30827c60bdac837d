"""The read side, address by address."""

from typing import TYPE_CHECKING

from holdfast.web.api import log, projects, search, sessions
from holdfast.web.api.requests import ERRORS, Answer, Views
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext


def register(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    routes.web.state.views = Views(web_context.client)
    for part in (sessions, log, projects, search):
        tag = part.__name__.rpartition(".")[2]
        for path, handler in part.ADDRESSES.items():
            how = {"response_model": Answer, "responses": ERRORS, "tags": [tag]}
            routes.add("GET", f"{prefix}/{path}", Permission.READ, handler, **how)

"""The API: /api/v1, the same views as the command line's --json, described by OpenAPI 3.1."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.agent import Agent
from holdfast.web.api import commands, health, live, requests, server, views
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext

PREFIX = "/api/v1"


def register(routes: Routes, web_context: "WebContext", _agents: Mapping[str, Agent]) -> None:
    requests.register_error_handlers(routes.web, web_context.log)
    for part in (views, health, commands, live, server):
        part.register(routes, web_context, PREFIX)

    async def openapi() -> dict[str, Any]:
        return routes.web.openapi()

    routes.add("GET", f"{PREFIX}/openapi.json", Permission.READ, openapi, include_in_schema=False)

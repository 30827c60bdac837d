"""How Holdfast itself is."""

from typing import TYPE_CHECKING, Any

from holdfast.web.api.requests import ERRORS, Answer, json_answer
from holdfast.web.condition import collect_health
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext


def register(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def health() -> Any:
        """The daemon, the store, jobs and errors."""
        return json_answer(await web_context.client.run(lambda: collect_health(web_context.client)))

    routes.add(
        "GET", f"{prefix}/health", Permission.READ, health, response_model=Answer, responses=ERRORS, tags=["health"]
    )

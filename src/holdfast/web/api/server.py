"""About the server itself: a new link, and its end. Only for who can read the token file."""

import asyncio
from typing import TYPE_CHECKING

from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext


def register(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def link() -> dict[str, str]:
        return {"link": web_context.new_link(), "address": web_context.address}

    async def stop() -> dict[str, bool]:
        asyncio.get_running_loop().call_later(0.05, web_context.stop)
        return {"stopping": True}

    routes.add("POST", f"{prefix}/link", Permission.TOKEN, link, include_in_schema=False)
    routes.add("POST", f"{prefix}/stop", Permission.TOKEN, stop, include_in_schema=False)

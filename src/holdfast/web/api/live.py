"""Server-sent events: what is new in the log, from a number on."""

from typing import TYPE_CHECKING, Annotated

from fastapi import Header, Query
from fastapi.responses import StreamingResponse

from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext

Seq = Annotated[int | None, Query(ge=0, le=1 << 53, description="The last event that is known already.")]
# A proxy must hand the lines on at once.
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def register(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def live(
        after: Seq = None,
        session: Annotated[str, Query(max_length=600)] = "",
        kinds: Annotated[str, Query(max_length=600, description="How kinds begin, e.g. `tool. decision.`")] = "",
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        """Every event after `after` (or after the header Last-Event-ID), then each as it is committed."""
        # A browser that connects again names the last event it has.
        again = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 17 else after
        wanted_kinds = tuple(k for k in kinds.split() if k != "*")
        return StreamingResponse(
            web_context.live.stream(again, session, wanted_kinds), 200, HEADERS, "text/event-stream"
        )

    routes.add("GET", f"{prefix}/live", Permission.READ, live, response_class=StreamingResponse, tags=["live"])

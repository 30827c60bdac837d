"""The pictures of UAT runs. Only images, only those our own job laid into the run's folder, never through a link."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi.responses import Response

from holdfast.core.agent import Agent
from holdfast.core.errors import HoldfastError
from holdfast.paths import open_unlinked
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext

# The first bytes decide, not the name.
TYPES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))
LARGEST = 20 << 20
KEPT = {"cache-control": "private, max-age=3600"}


def register(routes: Routes, web_context: "WebContext", _agents: Mapping[str, Agent]) -> None:
    async def shot(run: str, number: str) -> Response:
        image = await web_context.client.run(lambda: _read_shot(web_context, run, number))
        return Response(image[1], media_type=image[0], headers=KEPT) if image else Response(status_code=404)

    routes.add("GET", "/uat/{run}/shot/{number}", Permission.READ, shot, include_in_schema=False)


def _read_shot(web_context: "WebContext", run: str, number: str) -> tuple[str, bytes] | None:
    try:
        shown = web_context.client.view("uat.show", {"run": run})
    except HoldfastError:
        return None
    at = int(number) if number.isdecimal() and len(number) < 6 else -1
    if not 0 <= at < len(shown["shots"]):
        return None
    path = Path(str(shown["shots"][at]["path"]))
    # A path from an event may name any file: only the folder of this run is served.
    if path.parent.name != shown["id"] or path.parent.parent.name != "screenshots":
        return None
    return read_picture(path)


def read_picture(path: Path) -> tuple[str, bytes] | None:
    try:
        with open(path, "rb", opener=open_unlinked) as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                return None
            content = file.read(LARGEST)
    except (OSError, ValueError):
        return None
    kind = next((kind for magic, kind in TYPES if content.startswith(magic)), "")
    return (kind, content) if kind else None

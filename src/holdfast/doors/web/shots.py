"""Serves the screenshots of UAT runs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi.responses import Response

from holdfast.core.errors import HoldfastError
from holdfast.doors.web.permissions import Permission, Routes
from holdfast.paths import open_regular_itself

if TYPE_CHECKING:
    from holdfast.doors.web.server import WebContext

# The first bytes decide, not the name.
PICTURE_TYPES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))
LARGEST_PICTURE = 20 << 20
PICTURE_HEADERS = {"cache-control": "private, max-age=3600"}


def register_shots(routes: Routes, web_context: "WebContext") -> None:
    async def shot(run: str, number: str) -> Response:
        image = await web_context.client.run(lambda: _read_shot(web_context, run, number))
        return Response(image[1], media_type=image[0], headers=PICTURE_HEADERS) if image else Response(status_code=404)

    routes.add("GET", "/uat/{run}/shot/{number}", Permission.READ, shot)


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
        with open(path, "rb", opener=open_regular_itself) as file:
            if os.fstat(file.fileno()).st_size > LARGEST_PICTURE:
                return None
            content = file.read(LARGEST_PICTURE)
    except (OSError, ValueError):
        return None
    kind = next((kind for magic, kind in PICTURE_TYPES if content.startswith(magic)), "")
    return (kind, content) if kind else None

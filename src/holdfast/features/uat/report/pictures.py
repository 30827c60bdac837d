"""The screenshots of a run, for a report: read only from the run's own folder, whatever a path says."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.features.uat.files import places_of
from holdfast.features.uat.folders import inside
from holdfast.features.uat.record import Record

LARGEST_IMAGE = 8 << 20
LARGEST_TOTAL = 96 << 20
TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}


class Picture(NamedTuple):
    step: int
    name: str
    path: str
    data: str
    """A `data:` address; empty when the file is gone or too large to carry along."""


def pictures(record: Record) -> Iterator[Picture]:
    places, left = places_of(record.doc), LARGEST_TOTAL
    mine = places.screenshots(record.doc.id) if places else None
    folder = str(mine) if places and mine and places.is_plain(mine) else ""
    for shot in record.shots:
        content = _content(shot.data.path, folder) if left > 0 else b""
        left -= len(content)
        yield Picture(shot.data.step, shot.data.name, shot.data.path, _address(shot.data.path, content))


def _content(path: Any, folder: str) -> bytes:
    file = Path(str(path))
    if not folder or not inside(file, (folder,)) or file.suffix not in TYPES:
        return b""
    try:
        return file.read_bytes() if file.stat().st_size <= LARGEST_IMAGE else b""
    except OSError:
        return b""


def _address(path: Any, content: bytes) -> str:
    kind = TYPES.get(Path(str(path)).suffix)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}" if content and kind else ""

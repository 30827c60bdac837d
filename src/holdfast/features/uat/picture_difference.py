"""How different two pictures are: a program of its own (`python picture_difference.py BEFORE AFTER [DIFFERENCE]`).

It imports Pillow and nothing of ours, and prints one JSON object: `share` of the pixels that differ, and a `note`.
Pictures come from pages that nobody vouches for, so a decoder that fails fails alone.
"""

import io
import json
import sys
from pathlib import Path

from PIL import Image, ImageChops

MOST_PIXELS = 40_000_000
TOLERANCE = 8
"""Of 255, in each channel: below that an eye sees nothing and a rendering may differ from run to run."""
FORMATS = ("PNG", "JPEG", "WEBP")
RED = (220, 20, 40)
Image.MAX_IMAGE_PIXELS = MOST_PIXELS


class NotComparable(Exception):
    """Why two pictures cannot be compared."""


def compare_pictures(before: bytes, after: bytes) -> tuple[dict[str, object], Image.Image | None]:
    """(share and note, the picture of what differs where there is something to see)."""
    if before == after:
        return {"share": 0.0, "note": "the same file"}, None
    try:
        one, other = _opened(before), _opened(after)
    except NotComparable as reason:
        return {"share": None, "note": str(reason)}, None
    resized = one.size != other.size
    size = (max(one.width, other.width), max(one.height, other.height))
    changed = _changed_mask(_on_canvas(one, size), _on_canvas(other, size))
    count = changed.histogram()[255]
    note = f"{count} pixel{'' if count == 1 else 's'}"
    note = f"{one.width}×{one.height} became {other.width}×{other.height}, {note}" if resized else note
    share = round(count / max(1, size[0] * size[1]), 6)
    return {"share": share, "note": note}, _drawn(_on_canvas(other, size), changed) if count else None


def _opened(data: bytes) -> Image.Image:
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise NotComparable("one of the pictures is too large")
            return image.convert("RGBA")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise NotComparable("one of the pictures is too large") from None
    except (OSError, ValueError, SyntaxError, EOFError):
        raise NotComparable("one of the pictures is damaged, or no PNG, JPEG or WebP") from None


def _on_canvas(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """What one picture has and the other has not is transparent there, and so differs."""
    if image.size == size:
        return image
    canvas = Image.new("RGBA", size, (0, 0, 0, 0))
    canvas.paste(image, (0, 0))
    return canvas


def _changed_mask(one: Image.Image, other: Image.Image) -> Image.Image:
    """255 where any channel differs by more than the tolerance."""
    mask = Image.new("L", one.size, 0)
    for band in ImageChops.difference(one, other).split():
        mask = ImageChops.lighter(mask, band.point(lambda value: 255 if value > TOLERANCE else 0))
    return mask


def _drawn(picture: Image.Image, changed: Image.Image) -> Image.Image:
    """The later picture, pale, with what changed in red."""
    pale = Image.blend(picture.convert("RGB"), Image.new("RGB", picture.size, (255, 255, 255)), 0.7)
    pale.paste(RED, mask=changed)
    return pale


def main(before: str, after: str, difference: str = "") -> None:
    try:
        told, drawn = compare_pictures(Path(before).read_bytes(), Path(after).read_bytes())
    except OSError as error:
        told, drawn = {"share": None, "note": f"cannot be read: {error.strerror}"}, None
    if difference and drawn is not None:
        drawn.save(difference, "PNG", optimize=True)
        told["difference"] = difference
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:4])

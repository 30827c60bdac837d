"""Opens pictures in a separate process: they come from untrusted pages, and a decoder may crash or use up memory."""

# `python picture_program.py compare BEFORE AFTER [DIFFERENCE]` prints `share`, the part of the pixels that differ, and
# a `note`. `python picture_program.py shrink WIDTH HEIGHT` reads pictures, each after its length in four bytes, and
# prints small ones. Both print JSON. The program imports numpy, Pillow and nothing of Holdfast.

import base64
import io
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from PIL import Image

Pixels: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
"""Height × width × channels."""

# A small file can claim to be huge: more is not decoded.
MOST_PIXELS = 40_000_000
FORMATS = ("PNG", "JPEG", "WEBP")
TOLERANCE = 8
"""Of 255, in each channel: below that an eye sees nothing and a rendering may differ from run to run."""
RED = (220, 20, 40)
_LENGTH = struct.Struct(">I")
TOO_LARGE = f"one of the pictures has more than {MOST_PIXELS // 1_000_000} million pixels and was not opened"
DAMAGED = "one of the pictures is damaged, or no PNG, JPEG or WebP"


class NotComparable(Exception):
    """Why a picture cannot be opened."""


def compare_pictures(before: bytes, after: bytes) -> tuple[dict[str, object], Pixels | None]:
    """(share and note, the picture of what differs where there is something to see)."""
    # The very same bytes need no decoder.
    if before == after:
        return {"share": 0.0, "note": "the same file"}, None
    try:
        one, other = open_picture(before), open_picture(after)
    except NotComparable as reason:
        return {"share": None, "note": str(reason)}, None
    (height, width), (new_height, new_width) = one.shape[:2], other.shape[:2]
    size = (max(height, new_height), max(width, new_width))
    one, other = _on_canvas(one, size), _on_canvas(other, size)
    # Larger less smaller: the difference of unsigned bytes must not wrap.
    changed = np.any(np.maximum(one, other) - np.minimum(one, other) > TOLERANCE, axis=2)
    count = int(changed.sum())
    note = f"{count} pixel{'' if count == 1 else 's'}"
    if (height, width) != (new_height, new_width):
        note = f"{width}×{height} became {new_width}×{new_height}, {note}"
    share = round(count / max(1, size[0] * size[1]), 6)
    return {"share": share, "note": note}, _draw_changes(other, changed) if count else None


def _on_canvas(image: Pixels, size: tuple[int, int]) -> Pixels:
    """What one picture has and the other has not is transparent there, and so differs."""
    if image.shape[:2] == size:
        return image
    canvas: Pixels = np.zeros((*size, 4), np.uint8)
    canvas[: image.shape[0], : image.shape[1]] = image
    return canvas


def _draw_changes(picture: Pixels, changed: Any) -> Pixels:
    """The later picture, pale, with what changed in red."""
    pale: Pixels = (picture[:, :, :3] // 10 * 3 + 178).astype(np.uint8)
    pale[changed] = RED
    return pale


def open_picture(data: bytes) -> Pixels:
    """Red, green, blue and alpha of each pixel."""
    return np.asarray(_open_image(data))


def _open_image(data: bytes) -> Image.Image:
    # The size is compared here, before anything is unpacked; Pillow would only warn up to twice as many.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise NotComparable(TOO_LARGE)
            return _in_eight_bits(image).convert("RGBA")
    except NotComparable:
        raise
    # Hostile bytes make decoders fail in many ways; MemoryError is one of them.
    except Exception:
        raise NotComparable(DAMAGED) from None


def _in_eight_bits(image: Image.Image) -> Image.Image:
    """Grey of sixteen bits would be cut off at 255: of each pixel the upper eight bits count."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))


def encode_png(image: Image.Image) -> bytes:
    packed = io.BytesIO()
    image.save(packed, "PNG", compress_level=9)
    return packed.getvalue()


def shrink_picture(data: bytes, size: tuple[int, int]) -> bytes:
    """A PNG that is at most so wide and high; empty where the picture cannot be opened."""
    try:
        image = _open_image(data).convert("RGB")
    except NotComparable:
        return b""
    image.thumbnail(size, Image.Resampling.BOX)
    # The lowest bits are noise, and half of the bytes.
    return encode_png(image.point(lambda level: level & 0xF8))


def _read_framed(stream: BinaryIO) -> Iterator[bytes]:
    while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
        yield stream.read(_LENGTH.unpack(head)[0])


def print_comparison(before: str, after: str, difference: str = "") -> None:
    try:
        comparison, drawn = compare_pictures(Path(before).read_bytes(), Path(after).read_bytes())
    except OSError as error:
        comparison, drawn = {"share": None, "note": f"cannot be read: {error.strerror}"}, None
    if difference and drawn is not None:
        Path(difference).write_bytes(encode_png(Image.fromarray(drawn)))
        comparison["difference"] = difference
    print(json.dumps(comparison))


def print_small_ones(width: str, height: str) -> None:
    size = int(width), int(height)
    print(
        json.dumps([base64.b64encode(shrink_picture(data, size)).decode() for data in _read_framed(sys.stdin.buffer)])
    )


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        print_comparison(*sys.argv[2:])
    else:
        print_small_ones(*sys.argv[2:])

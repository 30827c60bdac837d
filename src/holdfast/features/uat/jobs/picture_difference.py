"""How different two pictures are: a program of its own (`python picture_difference.py BEFORE AFTER [DIFFERENCE]`).

It imports numpy and nothing of ours, and prints one JSON object: `share` of the pixels that differ, and a `note`.
Pictures come from pages that nobody vouches for, so a decoder that fails fails alone. PNG, which browsers write, is
decoded here; JPEG and WebP by Pillow, where it is installed (`holdfast-agents[pictures]`).
"""

import io
import json
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Pixels: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
"""Height × width × channels."""

# A small file can claim to be huge: more is not decoded.
MOST_PIXELS = 40_000_000
TOLERANCE = 8
"""Of 255, in each channel: below that an eye sees nothing and a rendering may differ from run to run."""
RED = (220, 20, 40)
MAGIC = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By PNG's colour type: grey, RGB, palette, grey and alpha, RGBA."""
PALETTE = 3
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Of an interlaced picture: first column, first row, and the steps between them."""
MEAN, PAETH = 3, 4
"""The two filters that need both neighbours."""
BAND = 1024
"""Lines that are undone together: more do not stay in a processor's cache."""
LARGE_BITS = np.uint8(0xF8)
TOO_LARGE = "one of the pictures is too large"
DAMAGED = "one of the pictures is damaged, or no PNG, JPEG or WebP"
NEEDS_PILLOW = "JPEG and WebP are compared with Pillow; add it: uv tool install 'holdfast-agents[pictures]'"


class NotComparable(Exception):
    """Why two pictures cannot be compared."""


class Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool


# ── comparison ─────────────────────────────────────────────────────────────────────────────────────────────────────


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
    if one.shape[:2] != (height, width) or other.shape[:2] != (new_height, new_width):
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


def shrink_picture(image: Pixels, width: int, height: int) -> Pixels:
    """At most that wide and high: each pixel is the mean of a square. The lowest bits are noise, and half of the bytes."""
    # Rounded up, so that the result never exceeds the size asked for.
    step = max(-(-image.shape[1] // width), -(-image.shape[0] // height), 1)
    rows, columns = max(1, image.shape[0] // step), max(1, image.shape[1] // step)
    squares = image[: rows * step, : columns * step, :3]
    squares = squares.reshape(rows, squares.shape[0] // rows, columns, squares.shape[1] // columns, 3)
    small: Pixels = squares.mean(axis=(1, 3), dtype=np.float32).astype(np.uint8)
    return small & LARGE_BITS


# ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_picture(data: bytes) -> Pixels:
    """Red, green, blue and alpha of each pixel."""
    if not data.startswith(MAGIC):
        return _open_with_pillow(data)
    try:
        return _decode_png(data)
    # MemoryError too: the header may promise more than there is.
    except (ValueError, IndexError, KeyError, struct.error, zlib.error, MemoryError):
        raise NotComparable(DAMAGED) from None


def _open_with_pillow(data: bytes) -> Pixels:
    if not (data.startswith(b"\xff\xd8") or data[8:12] == b"WEBP"):
        raise NotComparable(DAMAGED)
    try:
        from PIL import Image
    except ImportError:
        raise NotComparable(NEEDS_PILLOW) from None
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "WEBP")) as image:
            if image.width * image.height > MOST_PIXELS:
                raise NotComparable(TOO_LARGE)
            return np.asarray(image.convert("RGBA"))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise NotComparable(TOO_LARGE) from None
    except (OSError, ValueError, SyntaxError, EOFError):
        raise NotComparable(DAMAGED) from None


def _decode_png(data: bytes) -> Pixels:
    chunks: dict[bytes, bytearray] = {}
    for kind, body in _read_chunks(data):
        # The data of one picture may be spread over many chunks of the same type.
        chunks.setdefault(kind, bytearray()).extend(body)
    header = _read_header(bytes(chunks[b"IHDR"]))
    pixels: Pixels = np.zeros((header.height, header.width, CHANNELS[header.colour]), np.uint8)
    for place, lines in _read_passes(header, bytes(chunks[b"IDAT"])):
        x, y, step_x, step_y = place
        pixels[y::step_y, x::step_x] = _unpack_samples(_remove_filters(lines, header), header, pixels.shape[1], place)
    return _to_rgba(pixels, header, bytes(chunks.get(b"PLTE", b"")), bytes(chunks.get(b"tRNS", b"")))


def _read_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(MAGIC)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (sum_,) = struct.unpack_from(">I", data, at + 8 + length)
        # Each chunk ends with a checksum of its type and body.
        if sum_ != zlib.crc32(kind + body):
            raise ValueError("damaged")
        if kind == b"IEND":
            return
        yield kind, body
        at += 12 + length
    raise ValueError("it has no end")


def _read_header(body: bytes) -> Header:
    width, height, depth, colour, packing, filtering, interlaced = struct.unpack(">IIBBBBB", body)
    if width * height > MOST_PIXELS:
        raise NotComparable(TOO_LARGE)
    if not width * height or depth not in DEPTHS[colour] or packing or filtering or interlaced > 1:
        raise ValueError("no such PNG")
    return Header(width, height, depth, colour, bool(interlaced))


def _read_passes(header: Header, packed: bytes) -> Iterator[tuple[tuple[int, int, int, int], Pixels]]:
    """(which pixels of the picture, its lines with their filter byte). Never unpacks more than the header says."""
    places = PASSES if header.interlaced else ((0, 0, 1, 1),)
    shapes = []
    for x, y, step_x, step_y in places:
        # Rounded up: the last pixel of a pass may stand alone.
        width, height = -(-(header.width - x) // step_x), -(-(header.height - y) // step_y)
        if width > 0 and height > 0:
            shapes.append(((x, y, step_x, step_y), height, 1 + _line_bytes(width, header)))
    whole = sum(height * length for _, height, length in shapes)
    raw = zlib.decompressobj().decompress(packed, whole)
    if len(raw) < whole:
        raise ValueError("it is cut off")
    at = 0
    for place, height, length in shapes:
        yield place, np.frombuffer(raw, np.uint8, height * length, at).reshape(height, length)
        at += height * length


def _line_bytes(width: int, header: Header) -> int:
    return (width * CHANNELS[header.colour] * header.depth + 7) // 8


def _remove_filters(lines: Pixels, header: Header) -> Pixels:
    """PNG stores each byte as its difference to what is to the left (1), above (2), or both (3, 4)."""
    size = max(1, CHANNELS[header.colour] * header.depth // 8)
    height, columns = lines.shape[0], (lines.shape[1] - 1) // size
    filters = lines[:, 0]
    if filters.max(initial=0) > PAETH:
        raise ValueError("no such filter")
    padded = np.zeros((height + 1, columns + 1, size), np.uint8)
    padded[1:, 1:] = lines[:, 1:].reshape(height, columns, size)
    for at in range(0, height, BAND):
        band = filters[at : at + BAND]
        if band.max() < MEAN:
            for row, kind in enumerate(band, start=at + 1):
                _remove_simple_filter(padded, row, kind)
        else:
            _remove_by_diagonals(padded[at : at + len(band) + 1], band)
    return padded[1:, 1:].reshape(height, -1)


def _remove_simple_filter(padded: Pixels, row: int, kind: int) -> None:
    if kind == 1:
        # The sum wraps at 256, as PNG defines it.
        np.cumsum(padded[row], axis=0, dtype=np.uint8, out=padded[row])
    elif kind == 2:
        padded[row] += padded[row - 1]


def _remove_by_diagonals(padded: Pixels, filters: Pixels) -> None:
    """A byte depends on three that lie on the two diagonals before its own, so that a whole diagonal is done at once.

    `padded` has one finished line above and one empty pixel to the left.
    """
    height, columns = padded.shape[0] - 1, padded.shape[1] - 1
    masks = {kind: (filters == kind).astype(np.int16)[:, None] for kind in range(1, 5) if (filters == kind).any()}
    flat = padded.reshape(-1, padded.shape[2])
    for diagonal in range(2, height + columns + 1):
        first, last = max(1, diagonal - columns), min(height, diagonal - 1)
        # Of a flat array with columns + 1 pixels a line, every n-th pixel lies on one diagonal.
        start, stop = diagonal + first * columns, diagonal + last * columns + 1
        left, above, corner = (
            flat[start - back : stop - back : columns].astype(np.int16) for back in (1, columns + 1, columns + 2)
        )
        here = {kind: mask[first - 1 : last] for kind, mask in masks.items()}
        flat[start:stop:columns] += _predict(here, left, above, corner).astype(np.uint8)


def _predict(masks: dict[int, Any], left: Any, above: Any, corner: Any) -> Any:
    """What each byte is the difference to: a neighbour, the mean of two, or that of three which fits best (Paeth)."""
    guess = np.zeros_like(left)
    for kind, neighbour in ((1, left), (2, above)):
        if kind in masks:
            guess += neighbour * masks[kind]
    if MEAN in masks:
        guess += (left + above >> 1) * masks[MEAN]
    if PAETH in masks:
        to_left, to_above = np.abs(above - corner), np.abs(left - corner)
        to_corner = np.abs(left + above - 2 * corner)
        nearest = np.where(to_above <= to_corner, above, corner)
        nearest = np.where((to_left <= to_above) & (to_left <= to_corner), left, nearest)
        guess += nearest * masks[PAETH]
    return guess


def _unpack_samples(lines: Pixels, header: Header, width: int, place: tuple[int, int, int, int]) -> Pixels:
    """One byte a sample, whatever the depth; of sixteen bits the upper eight."""
    columns = -(-(width - place[0]) // place[2])
    if header.depth == 16:
        lines = lines[:, ::2]
    elif header.depth < 8:
        bits = np.unpackbits(lines, axis=1).reshape(lines.shape[0], -1, header.depth)
        # Packing pads with zeros on the right, so the value is shifted down again.
        lines = np.packbits(bits, axis=2)[:, :columns, 0] >> np.uint8(8 - header.depth)
    return lines.reshape(lines.shape[0], columns, CHANNELS[header.colour])


def _to_rgba(pixels: Pixels, header: Header, palette: bytes, transparent: bytes) -> Pixels:
    made: Pixels = np.full((*pixels.shape[:2], 4), 255, np.uint8)
    if header.colour == PALETTE:
        table = np.full((256, 4), 255, np.uint8)
        table[: len(palette) // 3, :3] = np.frombuffer(palette, np.uint8).reshape(-1, 3)
        table[: len(transparent), 3] = np.frombuffer(transparent, np.uint8)
        coloured: Pixels = table[pixels[:, :, 0]]
        return coloured
    if header.depth < 8:
        # Grey of 1, 2 or 4 bits is spread over 0 to 255.
        pixels = pixels * np.uint8(255 // ((1 << header.depth) - 1))
    has_alpha = header.colour in (4, 6)
    made[:, :, :3] = pixels[:, :, : pixels.shape[2] - has_alpha]
    if has_alpha:
        made[:, :, 3] = pixels[:, :, -1]
    return made


# ── writing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_png(image: Pixels) -> bytes:
    """Of red, green and blue; each line as its difference to the one above, which packs well."""
    height, width = image.shape[:2]
    lines = np.zeros((height, 1 + width * 3), np.uint8)
    lines[:, 1:] = image.reshape(height, -1)
    lines[1:, 1:] -= image.reshape(height, -1)[:-1]
    # Filter 2: the difference to the line above. The first line has none above it and stays as it is.
    lines[1:, 0] = 2
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return MAGIC + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


def main(before: str, after: str, difference: str = "") -> None:
    try:
        comparison, drawn = compare_pictures(Path(before).read_bytes(), Path(after).read_bytes())
    except OSError as error:
        comparison, drawn = {"share": None, "note": f"cannot be read: {error.strerror}"}, None
    if difference and drawn is not None:
        Path(difference).write_bytes(encode_png(drawn))
        comparison["difference"] = difference
    print(json.dumps(comparison))


if __name__ == "__main__":
    main(*sys.argv[1:4])

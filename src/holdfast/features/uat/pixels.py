"""How different two PNG pictures are: a program of its own (`python pixels.py A B`), plain Python and zlib.

It stands alone, imports nothing of ours, and prints one JSON object: `share` of the pixels that differ, `note`.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

MAGIC = b"\x89PNG\r\n\x1a\n"
LARGEST = 64 << 20
"""Decoded bytes; a picture that says it is larger is not opened."""
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
TOLERANCE = 8
"""Of 255, in each channel: below that an eye sees nothing and a rendering may differ from run to run."""


class NotComparable(Exception):
    pass


class Picture:
    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise NotComparable("only PNG pictures are compared pixel by pixel")
        self.width, self.height, self.channels, packed = _chunks(data)
        self.stride = self.width * self.channels
        size = (self.stride + 1) * self.height
        if size > LARGEST:
            raise NotComparable("the picture is too large")
        self.raw = zlib.decompressobj().decompress(packed, size + 1)
        if len(self.raw) != size:
            raise NotComparable("the picture is damaged")

    def line(self, number: int) -> bytes:
        start = number * (self.stride + 1)
        return self.raw[start : start + self.stride + 1]


def _chunks(data: bytes) -> tuple[int, int, int, bytes]:
    at, packed, head = len(MAGIC), [], b""
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        head = body if kind == b"IHDR" else head
        if kind == b"IDAT":
            packed.append(body)
        at += 12 + length
    if len(head) < 13:
        raise NotComparable("the picture is damaged")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head[:13])
    if depth != 8 or colour not in CHANNELS or interlaced:
        raise NotComparable("this kind of PNG is not compared pixel by pixel")
    return width, height, CHANNELS[colour], b"".join(packed)


def unfiltered(line: bytes, above: bytes, bpp: int) -> bytes:
    """One line of pixels from its filtered form (PNG, section 9)."""
    kind, row = line[0], bytearray(line[1:])
    if kind == 1:
        for i in range(bpp, len(row)):
            row[i] = (row[i] + row[i - bpp]) & 255
    elif kind == 2:
        return bytes([(a + b) & 255 for a, b in zip(row, above, strict=True)])
    elif kind == 3:
        for i in range(len(row)):
            left = row[i - bpp] if i >= bpp else 0
            row[i] = (row[i] + (left + above[i]) // 2) & 255
    elif kind == 4:
        _paeth(row, above, bpp)
    elif kind:
        raise NotComparable("the picture is damaged")
    return bytes(row)


def _paeth(row: bytearray, above: bytes, bpp: int) -> None:
    for i in range(min(bpp, len(row))):
        row[i] = (row[i] + above[i]) & 255
    for i in range(bpp, len(row)):
        a, b, c = row[i - bpp], above[i], above[i - bpp]
        p = a + b - c
        pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
        row[i] = (row[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255


def differing(one: Picture, other: Picture) -> int:
    """How many pixels. Lines that are stored alike below pixels that are alike need no decoding."""
    if (one.width, one.height, one.channels) != (other.width, other.height, other.channels):
        raise NotComparable(f"{one.width}×{one.height} became {other.width}×{other.height}")
    if one.raw == other.raw:
        return 0
    blank = bytes(one.stride)
    before = after = blank
    count = 0
    for number in range(one.height):
        old, new = one.line(number), other.line(number)
        same = old == new and before == after
        before = unfiltered(old, before, one.channels)
        after = before if same else unfiltered(new, after, other.channels)
        if before != after:
            count += _unlike(before, after, one.channels)
    return count


def _unlike(before: bytes, after: bytes, channels: int) -> int:
    far = [i // channels for i, (a, b) in enumerate(zip(before, after, strict=True)) if abs(a - b) > TOLERANCE]
    return len(set(far))


def compared(before: bytes, after: bytes) -> dict[str, object]:
    if before == after:
        return {"share": 0.0, "note": "the same file"}
    try:
        one, other = Picture(before), Picture(after)
        count = differing(one, other)
    except NotComparable as reason:
        return {"share": 1.0, "note": str(reason)}
    except (zlib.error, struct.error, ValueError):
        return {"share": None, "note": "one of the pictures is damaged"}
    return {
        "share": round(count / max(1, one.width * one.height), 6),
        "note": f"{count} pixel{'' if count == 1 else 's'}",
    }


def main(before: str, after: str) -> None:
    try:
        told = compared(Path(before).read_bytes(), Path(after).read_bytes())
    except OSError as error:
        told = {"share": None, "note": f"cannot be read: {error.strerror}"}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:3])

"""Real PNG pictures, made here: any colour, any line filter."""

import struct
import zlib

MAGIC = b"\x89PNG\r\n\x1a\n"


def png(
    width: int = 8, height: int = 4, colour: tuple[int, ...] = (10, 20, 30), *, filters: int = 0, dot: bool = False
) -> bytes:
    pixels = [[tuple(colour)] * width for _ in range(height)]
    if dot:
        pixels[height - 1][width - 1] = (255, 0, 255)[: len(colour)]
    return written(pixels, filters)


def written(pixels: list[list[tuple[int, ...]]], filters: int = 0) -> bytes:
    """`filters` 0 to 4 for every line, 5 for each in turn."""
    channels = len(pixels[0][0])
    above = bytes(len(pixels[0]) * channels)
    lines = []
    for number, row in enumerate(pixels):
        line = bytes(value for pixel in row for value in pixel)
        kind = number % 5 if filters == 5 else filters
        lines.append(bytes([kind]) + _filtered(kind, line, above, channels))
        above = line
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, colour, 0, 0, 0)
    return MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(lines))) + chunk(b"IEND", b"")


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _filtered(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    made = bytearray()
    for i, value in enumerate(line):
        left = line[i - channels] if i >= channels else 0
        corner = above[i - channels] if i >= channels else 0
        made.append((value - _guess(kind, left, above[i], corner)) & 255)
    return bytes(made)


def _guess(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    p = left + up - corner
    return min((left, up, corner), key=lambda v: abs(p - v))

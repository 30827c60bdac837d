"""Further checks of a token: checksums where the issuer has one, and that a body is random."""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable

from holdfast.redact import judge

_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE62 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def has_base58_checksum(token: bytes) -> bool:
    """The last four bytes are the double SHA-256 of what stands before them."""
    number = 0
    for letter in token:
        digit = _BASE58.find(letter)
        if digit < 0:
            return False
        number = number * 58 + digit
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return len(raw) > 4 and hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def has_crc32_suffix(token: bytes) -> bool:
    """GitHub and npm: the last six characters are the CRC-32 of the body in base 62."""
    body = token.rpartition(b"_")[2]
    return len(body) > 6 and encode_base62(zlib.crc32(body[:-6]), 6) == body[-6:]


def encode_base62(number: int, width: int) -> bytes:
    digits = bytearray()
    while number:
        number, rest = divmod(number, 62)
        digits.append(_BASE62[rest])
    return bytes(reversed(digits)).rjust(width, b"0")


def has_stellar_checksum(token: bytes) -> bool:
    """Base32; the last two bytes are the CRC-16 (XModem) of the rest, the lower one first."""
    try:
        raw = base64.b32decode(token)
    except ValueError:
        return False
    checksum = binascii.crc_hqx(raw[:-2], 0)
    return raw[0] == 0x90 and raw[-2:] == checksum.to_bytes(2, "little")


CHECKS: dict[str, Callable[[bytes], bool]] = {
    "base58": has_base58_checksum,
    "random": judge.has_random_tail,
    "stellar": has_stellar_checksum,
}

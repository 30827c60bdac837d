"""Checks what a value contains once decoded: a checksum, a key, a login."""

import base64
import binascii
import hashlib

_JUDGE_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def has_base58_checksum(token: bytes) -> bool:
    """The last four bytes are the double SHA-256 of the rest."""
    number = 0
    for letter in token:
        digit = _JUDGE_BASE58.find(letter)
        if digit < 0:
            return False
        number = number * 58 + digit
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return len(raw) > 4 and hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def has_stellar_checksum(token: bytes) -> bool:
    """Base32; the last two bytes are the CRC-16 (XModem) of the rest, little-endian."""
    try:
        raw = base64.b32decode(token)
    except ValueError:
        return False
    checksum = binascii.crc_hqx(raw[:-2], 0)
    # 0x90 is the version byte of a secret seed; account addresses have another.
    return raw[0] == 0x90 and raw[-2:] == checksum.to_bytes(2, "little")


_SEEN_BY_ALL = (b"-----BEGIN CERTIFICATE", b"-----BEGIN PUBLIC", b"-----BEGIN TRUSTED CERT", b"-----BEGIN PGP PUBLIC")


def holds_private_key(token: bytes) -> bool:
    """A PEM block in base64. Cluster settings hold certificates in the same way, which are no secrets."""
    whole = token[: len(token) & ~3].rstrip(b"=")
    try:
        block = base64.b64decode(whole[: len(whole) & ~3])
    except ValueError:
        return True
    return not block.startswith(_SEEN_BY_ALL) or b"PRIVATE" in block


def is_encoded_login(value: bytes) -> bool:
    """Base64 of `name:password`."""
    try:
        name, colon, password = base64.b64decode(
            # Encoders often omit the padding.
            value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4),
            altchars=None,
            validate=True,
        ).partition(b":")
    except (binascii.Error, ValueError):
        return False
    return (
        bool(colon and name and password)
        and all(32 < byte < 127 for byte in name)
        and all(32 <= byte < 127 for byte in password)
    )

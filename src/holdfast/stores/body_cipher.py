"""Encrypts bodies with AES-256-GCM if `store.encrypt_bodies` is on, and opens them wherever they are read."""

import hashlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core.errors import HoldfastError, KeyUnavailable
from holdfast.stores import body_keys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ENCRYPTED_MARK = b"\x00HFE1"
"""The first bytes of an encrypted body. JSON never begins with a zero byte."""
ID_BYTES, NONCE_BYTES, TAG_BYTES = 8, 12, 16
HEAD_BYTES = len(ENCRYPTED_MARK) + ID_BYTES + NONCE_BYTES
# Seconds until the keyring is asked again for a missing key.
ASK_AGAIN_S = 30.0
JOURNAL_PLACE = b"journal"
UNREADABLE = b'{"holdfast":"This body cannot be decrypted. Why: holdfast doctor"}'
"""Replaces an unreadable body: JSON like any payload, so that readers don't fail."""


class BodyUnreadable(HoldfastError):
    """A body cannot be decrypted."""


def is_encrypted(stored: bytes) -> bool:
    return stored.startswith(ENCRYPTED_MARK)


def key_id(key: bytes) -> bytes:
    """Names a key without revealing it: it is in every row and names the keyring entry."""
    return hashlib.sha256(b"holdfast body key" + key).digest()[:ID_BYTES]


def place_of(seq: int) -> bytes:
    """Bound to its row: a body moved to another event does not open there."""
    return seq.to_bytes(8, "big")


class BodyCipher:
    """One per process. `wanted` is the current setting."""

    def __init__(
        self,
        wanted: Callable[[], bool] = lambda: False,
        find_key: Callable[[str], bytes | None] = body_keys.find_key,
    ) -> None:
        self._wanted, self._find_key = wanted, find_key
        self._ciphers: dict[bytes, AESGCM] = {}
        self._missing: dict[bytes, tuple[float, HoldfastError]] = {}
        """Keys that the keyring refused: until when it is not asked again, and its message."""
        self._current = b""
        self.problem = ""
        """Why bodies cannot be encrypted although they should be; meanwhile they are left out."""

    @property
    def wanted(self) -> bool:
        return self._wanted()

    @property
    def ready(self) -> bool:
        return bool(self._current)

    def take_key(self, name: str) -> bool:
        """Encrypt with the key of this name from now on; False if the keyring has none. May raise `KeyUnavailable`."""
        try:
            self._cipher(bytes.fromhex(name), ask=True)
        except BodyUnreadable:
            return False
        self._current, self.problem = bytes.fromhex(name), ""
        return True

    def use_key(self, key: bytes) -> None:
        name = key_id(key)
        self._ciphers[name] = _aes(key)
        self._current, self.problem = name, ""

    def can_open(self, name: bytes) -> bool:
        """Whether bodies of this key can be read; may ask the keyring."""
        try:
            self._cipher(name, ask=True)
        except (BodyUnreadable, KeyUnavailable):
            return False
        return True

    def seal(self, body: bytes, place: bytes) -> bytes:
        """Return the stored form: plain if that is wanted, empty if it must be encrypted and cannot be."""
        # Events salvaged from a damaged database keep the stored form.
        if not body or is_encrypted(body) or not self._wanted():
            return body
        if self._current:
            return self._encrypt(self._current, body, place)
        # Just switched on: it is encrypted with the older ones once there is a key.
        return b"" if self.problem else body

    def sealer(self) -> Callable[[bytes, bytes], bytes]:
        """`seal` for a batch, which reads the setting once."""
        return self.seal if self._wanted() else _keep_plain

    def reseal(self, stored: bytes, body: bytes, place: bytes) -> bytes:
        """Replace the text of `stored`, keeping its form."""
        return self._encrypt(_id_of(stored), body, place) if is_encrypted(stored) else body

    def open(self, stored: bytes, place: bytes, *, ask: bool = True) -> bytes:
        """Return the plain body. Raises `BodyUnreadable` if no key can help, `KeyUnavailable` if one may come back.
        The keyring is asked only if the caller has time (`ask`)."""
        if not is_encrypted(stored):
            return stored
        cipher = self._cipher(_id_of(stored), ask=ask)
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(stored[HEAD_BYTES - NONCE_BYTES : HEAD_BYTES], stored[HEAD_BYTES:], place)
        except (InvalidTag, ValueError) as error:
            raise BodyUnreadable("it was changed, or belongs to another event") from error

    def show(self, stored: bytes, seq: int) -> bytes:
        """For readers: never fails."""
        if not is_encrypted(stored):
            return stored
        try:
            return self.open(stored, place_of(seq))
        except (BodyUnreadable, KeyUnavailable):
            return UNREADABLE

    def change_form(self, stored: bytes, seq: int) -> bytes:
        """Convert to the wanted form; unchanged if already so or impossible."""
        if self._wanted():
            return self.seal(stored, place_of(seq)) or stored
        try:
            return self.open(stored, place_of(seq))
        except (BodyUnreadable, KeyUnavailable):
            return stored

    def _cipher(self, name: bytes, *, ask: bool) -> "AESGCM":
        if name in self._ciphers:
            return self._ciphers[name]
        if (missing := self._missing.get(name)) and (time.monotonic() < missing[0] or not ask):
            # Without its old traceback, which would grow each time and keep everything alive.
            raise missing[1].with_traceback(None)
        if not ask:
            raise KeyUnavailable("the keyring was not asked yet")
        try:
            key = self._find_key(name.hex())
            if key is None or key_id(key) != name:
                raise BodyUnreadable(f"key {name.hex()} is not in the keyring")
        except (BodyUnreadable, KeyUnavailable) as error:
            self._missing[name] = time.monotonic() + ASK_AGAIN_S, error
            raise
        self._ciphers[name] = _aes(key)
        return self._ciphers[name]

    def _encrypt(self, name: bytes, body: bytes, place: bytes) -> bytes:
        # Random per row: with 96 bits and expiring bodies no collision is to be expected.
        nonce = os.urandom(NONCE_BYTES)
        return ENCRYPTED_MARK + name + nonce + self._ciphers[name].encrypt(nonce, body, place)


def _id_of(stored: bytes) -> bytes:
    return stored[len(ENCRYPTED_MARK) : len(ENCRYPTED_MARK) + ID_BYTES]


def _aes(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # Here: most installations do not need it.

    return AESGCM(key)


def _keep_plain(body: bytes, _place: bytes) -> bytes:
    return body


READING = BodyCipher()
"""For processes that only read: keys are looked up when a body needs one."""

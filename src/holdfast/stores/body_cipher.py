"""Bodies at rest: encrypted with AES-256-GCM where `store.encrypt_bodies` is on, opened wherever they are read."""

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
"""What an encrypted body begins with. Payloads are JSON, which never begins with a zero byte."""
ID_BYTES, NONCE_BYTES, TAG_BYTES = 8, 12, 16
HEAD_BYTES = len(ENCRYPTED_MARK) + ID_BYTES + NONCE_BYTES
# Seconds until the keyring is asked again for a key that it did not give.
ASK_AGAIN_S = 30.0
JOURNAL_PLACE = b"journal"
UNREADABLE = b'{"holdfast":"This body cannot be decrypted. Why: holdfast doctor"}'
"""What a reader is told in its stead: JSON like any payload, so that nobody who reads bodies fails over it."""


class BodyUnreadable(HoldfastError):
    """A body cannot be decrypted."""


def is_encrypted(stored: bytes) -> bool:
    return stored.startswith(ENCRYPTED_MARK)


def key_id(key: bytes) -> bytes:
    """Names a key and tells nothing of it: it stands in every row, and in the keyring as the entry's name."""
    return hashlib.sha256(b"holdfast body key" + key).digest()[:ID_BYTES]


def place_of(seq: int) -> bytes:
    """Bound to its row: a body that somebody moved to another event does not open there."""
    return seq.to_bytes(8, "big")


class BodyCipher:
    """One for each process. `wanted` is the setting as it is at this moment."""

    def __init__(
        self,
        wanted: Callable[[], bool] = lambda: False,
        find_key: Callable[[str], bytes | None] = body_keys.find_key,
    ) -> None:
        self._wanted, self._find_key = wanted, find_key
        self._ciphers: dict[bytes, AESGCM] = {}
        self._missing: dict[bytes, tuple[float, HoldfastError]] = {}
        """Keys that the keyring did not give: until when it is not asked again, and what it said."""
        self._current = b""
        self.problem = ""
        """Why bodies cannot be encrypted though they should be; they are left out meanwhile."""

    @property
    def wanted(self) -> bool:
        return self._wanted()

    @property
    def ready(self) -> bool:
        return bool(self._current)

    def take_key(self, name: str) -> bool:
        """Encrypts with the key of this name from now on; False where the keyring has none. May raise `KeyUnavailable`."""
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
        """Whether bodies of this key can be read; the keyring may be asked."""
        try:
            self._cipher(name, ask=True)
        except (BodyUnreadable, KeyUnavailable):
            return False
        return True

    def seal(self, body: bytes, place: bytes) -> bytes:
        """As it is to be stored: plain where that is wanted, empty where it must be encrypted and cannot be."""
        # What is read from a damaged database comes as it lay there.
        if not body or is_encrypted(body) or not self._wanted():
            return body
        if self._current:
            return self._encrypt(self._current, body, place)
        # Switched on a moment ago: it is encrypted with the older ones as soon as there is a key.
        return b"" if self.problem else body

    def sealer(self) -> Callable[[bytes, bytes], bytes]:
        """`seal` for a batch: the setting is asked for once."""
        return self.seal if self._wanted() else _keep_plain

    def reseal(self, stored: bytes, body: bytes, place: bytes) -> bytes:
        """Another text in the place of `stored`, in the form that it had."""
        return self._encrypt(_id_of(stored), body, place) if is_encrypted(stored) else body

    def open(self, stored: bytes, place: bytes, *, ask: bool = True) -> bytes:
        """Plain. Raises `BodyUnreadable` where no key can help and `KeyUnavailable` where one may come back.
        The keyring is asked only where the caller has time to wait (`ask`)."""
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
        """As the setting wants it now; unchanged where it is so already or cannot be."""
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
            # Without where it was raised before: each time would add to that, and keep all that was in hand there.
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
        # Random for each row: with 96 bits and bodies that expire, two alike are not to be expected.
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

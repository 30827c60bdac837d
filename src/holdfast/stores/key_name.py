"""Manages which key encrypts a store's bodies."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core.errors import KeyUnavailable
from holdfast.core.ports import Store
from holdfast.stores import body_keys
from holdfast.stores.body_cipher import BodyCipher, key_id

if TYPE_CHECKING:
    pass

KEY_NAME = "body_key"


def prepare_key(
    cipher: BodyCipher, store: Store, write: Callable[[Callable[[], None]], object] = lambda work: work()
) -> None:
    """Find the key, or create it if the setting wants one; an obstacle becomes the cipher's `problem`. `write` runs
    writes on the thread that may."""
    reader = store.reader()
    try:
        name = reader.meta(KEY_NAME)
    finally:
        reader.close()
    try:
        if (name and cipher.take_key(name)) or not cipher.wanted:
            return
        key = body_keys.create_key(key_id)
        write(lambda: _note_key(store, key_id(key).hex()))
        cipher.use_key(key)
    except KeyUnavailable as error:
        cipher.problem = error.message if cipher.wanted else ""


def _note_key(store: Store, name: str) -> None:
    with store.transaction():
        store.set_meta(KEY_NAME, name)

"""Manages the key of encrypted bodies in the system's keyring."""

import base64
import binascii
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.core.errors import KeyUnavailable

SERVICE = "holdfast"
KEY_BYTES = 32
# In seconds. A locked keyring may ask its user, who may be absent.
PATIENCE_S = 5.0
NO_KEYRING = "keyring.backends.fail"
NOT_REAL = (NO_KEYRING, "keyring.backends.null", "keyrings.alt")
"""Modules whose keyrings store nothing, or store it in a file readable like ours."""

T = TypeVar("T")
_asking = threading.Lock()
_refused = threading.Event()
"""Set while the keyring is locked: each request would prompt its user."""


def require_keyring() -> Any:
    """Return the system's keyring; `KeyUnavailable` if it would protect nothing."""
    try:
        import cryptography  # noqa: F401 - without it nothing can be encrypted
        import keyring
    except ImportError as error:
        raise KeyUnavailable(
            f"{error.name} is not installed", fix="Run: pip install 'holdfast-agents[encryption]'"
        ) from error
    backend = keyring.get_keyring()
    if type(backend).__module__ == NO_KEYRING:
        backend = _look_for_keyring_again()
    # Several at once: each of them may receive the key.
    for one in getattr(backend, "backends", None) or [backend]:
        if type(one).__module__.startswith(NOT_REAL) or one.priority < 1:
            raise KeyUnavailable(
                f"there is no system keyring here ({type(one).__module__})",
                fix="Start one (GNOME Keyring, KWallet, KeePassXC; macOS has its own), it is looked for again; or encrypt "
                "the disk instead and leave store.encrypt_bodies off.",
            )
    return backend


def _look_for_keyring_again() -> Any:
    """`keyring` looks once per process, and a daemon may start before the keyring does."""
    import keyring
    from keyring import backend, core

    # Its decorator `once` caches the first answer in this attribute, as documented.
    vars(backend.get_all_keyring).pop("saved_result", None)
    core.init_backend()
    return keyring.get_keyring()


def find_key(name: str) -> bytes | None:
    """None if the keyring says it has no such key."""
    text = _ask(lambda: _unlocked_keyring().get_password(SERVICE, name))
    if text is None:
        return None
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def _unlocked_keyring() -> Any:
    backend = require_keyring()
    if _refused.is_set() and any(map(_is_locked, getattr(backend, "backends", None) or [backend])):
        raise KeyUnavailable("the keyring is locked", fix="Unlock it; it is looked at again.")
    return backend


def _is_locked(backend: Any) -> bool:
    """Determined without a prompt, for keyrings that prompt."""
    if type(backend).__module__ != "keyring.backends.SecretService":
        return False
    import secretstorage

    connection = secretstorage.dbus_init()
    try:
        return bool(secretstorage.Collection(connection).is_locked())
    finally:
        connection.close()


def create_key(name_of: Callable[[bytes], bytes]) -> bytes:
    """Stored in the keyring and read back before anything is encrypted with it."""
    key = os.urandom(KEY_BYTES)
    name = name_of(key).hex()
    _ask(lambda: _unlocked_keyring().set_password(SERVICE, name, base64.b64encode(key).decode()))
    if find_key(name) != key:
        raise KeyUnavailable("the keyring does not keep what it is given")
    return key


def remove_key(name: str) -> None:
    _ask(lambda: _unlocked_keyring().delete_password(SERVICE, name))


def _ask(work: Callable[[], T]) -> T:
    """In a thread of its own: a keyring waiting for its user must not block anyone else."""
    answers: list[tuple[T | None, Exception | None]] = []
    if not _asking.acquire(timeout=PATIENCE_S):
        raise KeyUnavailable("the keyring does not answer", fix="Start or unlock it; it is retried.")

    def run() -> None:
        try:
            answers.append((work(), None))
            _refused.clear()
        except Exception as error:
            if not isinstance(error, KeyUnavailable):
                _refused.set()
            answers.append((None, error))
        finally:
            _asking.release()

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if not answers:
        raise KeyUnavailable("the keyring does not answer", fix="Start or unlock it; it is retried.")
    value, error = answers[0]
    if isinstance(error, KeyUnavailable):
        raise error
    if error is not None:
        # Its type only: a backend's message may not be safe to repeat.
        raise KeyUnavailable(
            f"the keyring failed ({type(error).__name__})", fix="Start or unlock it; it is retried."
        ) from error
    return value  # type: ignore[return-value]

"""A locked keyring is looked at, not asked again: each question would put a prompt before its user."""

from collections.abc import Iterator

import keyring as system
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import KeyringLocked

from holdfast.core.errors import KeyUnavailable
from holdfast.stores import body_keys


class Prompting:
    """A keyring that prompts whenever it is asked for an entry while it is locked."""

    locked = True
    prompts = 0

    def get_password(self, service: str, name: str) -> None:
        if self.locked:
            self.prompts += 1
            raise KeyringLocked("dismissed")


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Prompting:
    made = Prompting()
    monkeypatch.setattr(body_keys, "require_keyring", lambda: made)
    monkeypatch.setattr(body_keys, "_is_locked", lambda backend: backend.locked)
    body_keys._refused.clear()
    return made


def test_a_locked_keyring_prompts_once(keyring: Prompting) -> None:
    for _ in range(3):
        with pytest.raises(KeyUnavailable, match=r"[Uu]nlock"):
            body_keys.find_key("00")
    assert keyring.prompts == 1


def test_an_unlocked_one_is_asked_again(keyring: Prompting) -> None:
    with pytest.raises(KeyUnavailable):
        body_keys.find_key("00")
    keyring.locked = False
    assert body_keys.find_key("00") is None
    keyring.locked = True
    with pytest.raises(KeyUnavailable):
        body_keys.find_key("00")
    assert keyring.prompts == 2, "locked anew, it may prompt once more"


class Latecomer(KeyringBackend):
    """Like the Secret Service: no choice of `keyring` until its daemon runs."""

    priority = 5  # type: ignore[assignment]
    runs = False

    def get_password(self, service: str, username: str) -> None:
        """It has none."""

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which `keyring` has looked, and found none."""
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND", raising=False)
    monkeypatch.setattr(KeyringBackend, "get_viable_backends", lambda: [Latecomer] if Latecomer.runs else [])
    before = system.get_keyring()
    system.set_keyring(fail.Keyring())
    yield
    Latecomer.runs = False
    system.set_keyring(before)
    KeyringBackend._classes.discard(Latecomer)


def test_a_keyring_that_starts_later_is_found(no_keyring: None) -> None:
    """`keyring` itself looks once in the life of a process."""
    for _ in range(2):
        with pytest.raises(KeyUnavailable, match="Start one"):
            body_keys.require_keyring()
    Latecomer.runs = True
    assert isinstance(body_keys.require_keyring(), Latecomer)

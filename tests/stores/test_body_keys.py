"""A locked keyring is looked at, not asked again: each question would put a prompt before its user."""

import pytest
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

"""A keyring for tests, kept in a file that `TEST_KEYRING` names: the daemon's own process uses it by
`PYTHON_KEYRING_BACKEND=keyring_file.FileKeyring`, as it would use the system's."""

import json
import os
from pathlib import Path

import keyring.backend
from keyring.errors import KeyringLocked

LOCKED = "locked"


class FileKeyring(keyring.backend.KeyringBackend):
    priority = 5  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        return self._entries().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        _file().write_text(json.dumps({**self._entries(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        entries = self._entries()
        del entries[f"{service}/{username}"]
        _file().write_text(json.dumps(entries))

    def _entries(self) -> dict[str, str]:
        if _file().with_suffix(f".{LOCKED}").exists():
            raise KeyringLocked("locked")
        return json.loads(_file().read_text()) if _file().exists() else {}


def _file() -> Path:
    return Path(os.environ["TEST_KEYRING"])

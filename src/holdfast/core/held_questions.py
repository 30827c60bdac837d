"""The questions whose agents wait for an answer right now, and the signed links that answer one of them."""

import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

MOST_LINKS = 1_000
MOST_TRIES = 5


@dataclass
class HeldQuestion:
    """An agent's hook that waits. `key` is the key of its event."""

    key: str
    session: str
    tool: str
    digest: str
    """Of the hook's payload: two registrations of our hooks report one question twice."""
    input: Mapping[str, Any]
    """The tool's input as the agent sent it. In memory only: the log holds it redacted."""
    until: int
    blocking: bool
    """Whether the agent shows no dialog of its own meanwhile."""
    seq: int = 0
    """Of its event, once that is applied."""


@dataclass
class _Link:
    key: str
    until: int
    tries: int = 0


_NOBODYS = _Link("", 0)


class HeldQuestions:
    """Kept in the daemon's memory only: an agent could read a file, and forge a link."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, HeldQuestion] = {}
        self._links: dict[str, _Link] = {}
        self._secret = secrets.token_bytes(32)

    def add(self, question: HeldQuestion) -> None:
        with self._lock:
            self._held[question.key] = question

    def remove(self, key: str) -> None:
        with self._lock:
            self._held.pop(key, None)
            self._links = {name: link for name, link in self._links.items() if link.key != key}

    def get(self, key: str, now: int) -> HeldQuestion | None:
        with self._lock:
            question = self._held.get(key)
        return question if question and question.until > now else None

    def in_session(self, session: str) -> list[HeldQuestion]:
        with self._lock:
            return [one for one in self._held.values() if one.session == session]

    def new_link(self, key: str, until: int) -> str:
        """A link for one question, good once; the signature binds it to the question and its end."""
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._links = dict(list(self._links.items())[1 - MOST_LINKS :]) | {name: _Link(key, until)}
        return f"{name}.{self._sign(name, key, until)}"

    def look_up(self, link: str, now: int) -> str:
        """The key of the question; empty if the link is forged, used, too old, or the question is not held any more."""
        name, _, signature = link.partition(".")
        with self._lock:
            known = self._links.get(name)
            held = known is not None and known.key in self._held
        if known is None or not held or known.until <= now or known.tries >= MOST_TRIES:
            return ""
        good = hmac.compare_digest(
            self._sign(name, known.key, known.until).encode(), signature.encode("utf-8", "replace")
        )
        return known.key if good else ""

    def note_wrong_code(self, link: str) -> None:
        with self._lock:
            if known := self._links.get(link.partition(".")[0]):
                known.tries += 1

    def redeem(self, link: str, now: int) -> str:
        """The same, once."""
        key = self.look_up(link, now)
        with self._lock:
            return key if key and self._links.pop(link.partition(".")[0], _NOBODYS) is not _NOBODYS else ""

    def _sign(self, name: str, key: str, until: int) -> str:
        return hmac.new(self._secret, f"{name}\0{key}\0{until}".encode(), sha256).hexdigest()


HELD = HeldQuestions()

"""One-time codes that prove a person where the process tree cannot."""

import secrets

import msgspec

from holdfast.core.document import with_newest

# Ten minutes, in milliseconds.
CODE_MS = 10 * 60_000
MOST_TRIES, MOST_CODES = 5, 20


class PendingCode(msgspec.Struct):
    """Shown on the dashboard and typed by the person who asked."""

    act: str
    code: str
    until: int
    why: str
    tries: int = 0


class PersonCodes:
    """Kept in the daemon's memory only: an agent could read a file."""

    def __init__(self) -> None:
        self._pending: dict[str, PendingCode] = {}

    def require_code(self, act: str, why: str, now: int) -> None:
        pending = self._pending.get(act)
        # A pending code stays: asking again must not give further tries.
        if pending is None or pending.until <= now or pending.tries >= MOST_TRIES:
            code = f"{secrets.randbelow(10**6):06}"
            self._pending = with_newest(self._pending, act, PendingCode(act, code, now + CODE_MS, why), MOST_CODES)

    def redeem(self, act: str, code: str, now: int) -> bool:
        """Redeem a code once; after five wrong tries a new code is needed."""
        pending = self._pending.get(act)
        if pending is None or pending.until <= now or pending.tries >= MOST_TRIES:
            return False
        pending.tries += 1
        # Constant time: the time taken must not reveal digits.
        if not secrets.compare_digest(pending.code.encode(), code.replace(" ", "").encode("utf-8", "replace")):
            return False
        del self._pending[act]
        return True

    def pending(self, now: int) -> list[PendingCode]:
        return [one for one in self._pending.values() if one.until > now]


CODES = PersonCodes()

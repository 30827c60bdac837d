"""Browser access: a one-time link becomes a cookie, and every write needs a second token that only our pages know."""

import hmac
import secrets
import time
from hashlib import sha256

from holdfast.paths import Paths, write_atomically

LINK_LIVES_S = 600.0
MOST_LINKS = 100


class Keys:
    def __init__(self, secret: str, port: int) -> None:
        self.token, self.cookie_name = secret, f"holdfast_{port}"
        # Bound to the port: one server's cookie does not open another on the same machine.
        self.cookie = self._derived(f"cookie {port}")
        self.csrf = self._derived(f"csrf {port}")
        self._links: dict[str, float] = {}

    def _derived(self, what: str) -> str:
        return hmac.new(self.token.encode(), what.encode(), sha256).hexdigest()

    def new_link(self) -> str:
        """Valid for one use within ten minutes."""
        once = secrets.token_urlsafe(24)
        self._links = dict(list(self._living().items())[-MOST_LINKS:]) | {once: time.monotonic() + LINK_LIVES_S}
        return once

    def redeem(self, once: str) -> bool:
        self._links = self._living()
        # Compared in constant time.
        link = next((candidate for candidate in self._links if is_same_secret(candidate, once)), None)
        return bool(link and self._links.pop(link))

    def _living(self) -> dict[str, float]:
        now = time.monotonic()
        return {once: until for once, until in self._links.items() if until > now}


def is_same_secret(expected: str, received: str) -> bool:
    return hmac.compare_digest(expected.encode(), received.encode("utf-8", "replace"))


def read_or_create_token(paths: Paths) -> str:
    """Only the owner can read it, and so request a link."""
    path = paths.run / "http.token"
    if not path.exists():
        write_atomically(path, secrets.token_urlsafe(32).encode(), 0o600)
    return path.read_text().strip()

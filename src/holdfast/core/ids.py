"""Delivery keys, names of bounded length, and the short ids that people type."""

import hashlib
import os
import re
import time
from functools import lru_cache

LONGEST_NAME = 512


def delivery_key(now_ms: int | None = None) -> str:
    """32 hex digits, the first 12 from the time, so that keys are inserted nearly in order."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    return f"{now_ms & 0xFFFFFFFFFFFF:012x}{os.urandom(10).hex()}"


# Bounded, because names may be hostile; ids of active sessions are asked for at every event.
@lru_cache(256)
def bounded_name(name: str) -> str:
    """Return a name that is safe as a key: a hostile id may be 10 KB long, and two of them must still differ."""
    if len(name) <= LONGEST_NAME and "\x00" not in name and name.isprintable():
        return name
    digest = short_digest(name)
    # Leaves room for the mark and the digest.
    clean = "".join(c if c.isprintable() else "?" for c in name[: LONGEST_NAME - 40])
    return f"{clean}#{digest}"


def short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w.:@~+-]{0,127}", re.ASCII)


def is_identifier(text: str) -> bool:
    """Return whether it is shaped like an id: one short word without spaces, quotes, control or path characters."""
    return _IDENTIFIER.fullmatch(text) is not None


OWNER_MARK = "~"


def shared_session_key(session: str, agent: str) -> str:
    """The key of a session whose id belongs to another agent's session."""
    return session if session.endswith(OWNER_MARK + agent) else f"{session}{OWNER_MARK}{agent}"


def native_session_id(key: str, agent: str) -> str:
    """The id by which the agent itself, and its files, know the session."""
    return key.removesuffix(OWNER_MARK + agent) if agent else key


def session_alias(session: str) -> str:
    """The 8 characters people type, never a key (D5). Ids that begin with a time use their end."""
    # The 15th character of a UUID is its version; Codex and Pi use 7, which begins with the time.
    by_time = session.startswith(("session_", "ses_")) or (len(session) == 36 and session[14] == "7")
    return session[-8:] if by_time else session[:8]

"""Identities: delivery keys, names of bounded length, the short form people type."""

import hashlib
import os
import re
import time
from functools import lru_cache

LONGEST_NAME = 512


def delivery_key(now_ms: int | None = None) -> str:
    """32 hex digits, the first 12 of them time, so that keys are inserted nearly in order."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    return f"{now_ms & 0xFFFFFFFFFFFF:012x}{os.urandom(10).hex()}"


# A bound for names as long as they are hostile; the ids of the sessions at work are asked for at every event.
@lru_cache(256)
def bounded_name(name: str) -> str:
    """A name that is safe to use as a key: hostile ids may be 10 KB long; two of them must still differ."""
    if len(name) <= LONGEST_NAME and "\x00" not in name and name.isprintable():
        return name
    digest = short_digest(name)
    # Leaves space for the mark and the digest.
    clean = "".join(c if c.isprintable() else "?" for c in name[: LONGEST_NAME - 40])
    return f"{clean}#{digest}"


def short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w.:@~+-]{0,127}", re.ASCII)


def is_identifier(text: str) -> bool:
    """Whether it has the shape of an id: one short word without blanks, quotes, control or path characters."""
    return _IDENTIFIER.fullmatch(text) is not None


OWNER_MARK = "~"


def shared_session_key(session: str, agent: str) -> str:
    """The key of a session whose id another agent had before: both keep their own record."""
    return session if session.endswith(OWNER_MARK + agent) else f"{session}{OWNER_MARK}{agent}"


def native_session_id(key: str, agent: str) -> str:
    """The id that the agent itself knows the session by: its files have that name."""
    return key.removesuffix(OWNER_MARK + agent) if agent else key


def session_alias(session: str) -> str:
    """The 8 characters people type (D5: never a key). Ids that all begin alike are told apart by their end."""
    return session[-8:] if session.startswith("session_") else session[:8]

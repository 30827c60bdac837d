"""Moments as people type them: `2025-11-16T10:45:00Z`, `2025-11-16 10:45`, `10:45`, `2h`, `3 days ago`."""

import re
from datetime import datetime, timedelta

from holdfast.core.errors import CommandRefused
from holdfast.features.project.model import DAY, HOUR, MINUTE, SECOND

_AGO = re.compile(r"^(\d{1,9})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?$", re.IGNORECASE)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}


def moment(text: str, now: int) -> int:
    """Milliseconds. Without a zone it is the time of this machine."""
    if found := _AGO.match(text.strip()):
        return now - int(found[1]) * _UNITS[found[2][0].lower()]
    try:
        if re.fullmatch(r"\d{1,2}:\d\d(:\d\d)?", text.strip()):
            return _today(text.strip(), now)
        said = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return int(said.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise CommandRefused(
            f"{text[:60]!r} is no time", fix="Write 2025-11-16T10:45:00Z, 10:45, 2h, 3d, or an event's number."
        ) from None


def _today(clock: str, now: int) -> int:
    hour, minute, *second = (int(part) for part in clock.split(":"))
    here = datetime.fromtimestamp(now / 1000).astimezone()
    said = here.replace(hour=hour, minute=minute, second=second[0] if second else 0, microsecond=0)
    return int((said if said <= here else said - timedelta(days=1)).timestamp() * 1000)

"""Times and quantities as people type and read them."""

import re
import time
from datetime import datetime, timedelta

from holdfast.core.errors import CommandRefused

# Times as people type them: `2025-11-16T10:45:00Z`, `2025-11-16`, `10:45`, `2h`, `3 days ago`.

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
BELIEVED_AHEAD = DAY
"""How far an agent's clock may be ahead: enough for a forgotten time zone."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


_AGO = re.compile(r"^(\d{1,9})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?$", re.IGNORECASE)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}


def parse_moment(text: str, now: int) -> int:
    """Parse to ms since 1970. Without a zone it is local time."""
    text = text.strip()
    if match := _AGO.match(text):
        return max(0, now - int(match[1]) * _UNITS[match[2][0].lower()])
    try:
        if re.fullmatch(r"\d{1,2}:\d\d(:\d\d)?", text):
            return _latest_clock_time(text, now)
        return max(0, int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        fix = "Write 2025-11-16T10:45:00Z, 2025-11-16, 10:45, 2h or 3d."
        raise CommandRefused(f"{text[:60]!r} is no time", fix=fix) from None


def _latest_clock_time(clock: str, now: int) -> int:
    """The most recent moment with this clock time."""
    hour, minute, *second = (int(part) for part in clock.split(":"))
    here = datetime.fromtimestamp(now / 1000).astimezone()
    moment = here.replace(hour=hour, minute=minute, second=second[0] if second else 0, microsecond=0)
    return int((moment if moment <= here else moment - timedelta(days=1)).timestamp() * 1000)


# Quantities as people read them.


def format_bytes(count: float) -> str:
    number = float(count)
    for unit in ("B", "KB", "MB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GB"


def format_duration(ms: int) -> str:
    """Seconds below two minutes, minutes below two hours, else hours and minutes."""
    if ms < 2 * HOUR:
        return f"{ms // SECOND} s" if ms < 2 * MINUTE else f"{ms // MINUTE} min"
    hours, minutes = divmod(ms // MINUTE, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


AGO_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"))


def time_ago(at: int, now: int | None = None) -> str:
    """Never "now", because a printed line does not update."""
    passed = max(0, (now or now_ms()) - at)
    size, unit = next((one for one in AGO_UNITS if passed >= one[0]), (SECOND, "s"))
    return f"{passed // size} {unit} ago"

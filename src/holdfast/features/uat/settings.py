"""Constants, limits and settings of UAT runs."""

# Every list in a document is capped.

import base64
import hashlib
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import Meta

from holdfast.core.kinds import SESSION_ENDS, TOOL_ENDS, TURN_ENDS, UAT_KINDS
from holdfast.core.section import Section
from holdfast.features.uat.drivers.table import MEANINGS

RUN, PLAN, SESSION, CATALOGUE = "uat", "uat-plan", "uat-session", "uat-catalogue"
"""Kinds of documents: a run; the scenario as it was when the run began; a session's runs; a project's scenarios."""

ACTIVE, COMPLETED, ARCHIVED = "active", "completed", "archived"
PENDING, IN_PROGRESS, FAILED, SKIPPED = "pending", "in_progress", "failed", "skipped"
INTERRUPTED, NOT_REACHED, INCOMPLETE = "interrupted", "not_reached", "incomplete"
SETTABLE = (IN_PROGRESS, COMPLETED, FAILED, SKIPPED)
PASSED, UNKNOWN = "passed", "pending"

MOST_STEPS = 100
MOST_ATTEMPTS = 20
MOST_CHECKS = 100
MOST_SCENARIOS = 50
MOST_OPEN = 50
MOST_RECENT = 10
MOST_PROBLEMS = 20
MOST_SIGNALS = 50
MOST_RUNS = 20
LARGEST_SIGNAL = 8_000
LARGEST_OVERLAY = 64_000
LARGEST_CATALOGUE = 256_000
LONGEST_TEXT = 500
LONGEST_NAME = 100

# Points of 100 at which a run begins by itself, and at which it is suggested.
START_AT, SUGGEST_AT = 80, 60
MAX_AGE_HOURS = 24
TEMP_MINUTES = 60

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

FORMAT, VERSION = "claude-uat-session-state", "1.0.0"

ENDINGS = {
    "session.ended": "session-ended",
    "session.lost": "process-gone",
    "session.stale": "session-stale",
    "session.closed": "session-closed",
    "session.left": "session-left",
}
REASONS = {
    "last-step": "its last step was done",
    "last-step-failed": "its last step failed",
    "session-ended": "the session ended",
    "process-gone": "the agent's process was gone",
    "session-stale": "the session went silent",
    "session-closed": "the session was closed by hand",
    "session-left": "the agent went on with another session",
    "expired": "nothing happened for too long",
    "superseded": "another run began",
    "by-hand": "it was ended by hand",
    "import": "the test runner was done",
}
"""Why a run ended, in words."""
CUTS_OFF = TURN_ENDS - {"turn.ended"}
"""After these no call of the turn is still under way."""
SUBSCRIBED_KINDS = frozenset(
    (
        *UAT_KINDS,
        *ENDINGS,
        *SESSION_ENDS,
        *TURN_ENDS,
        *("prompt.submitted", "session.started", "tool.started"),
        *TOOL_ENDS,
    )
)


Score = Annotated[int, Meta(ge=1, le=101)]


Meaning = Annotated[str, Meta(pattern=f"^(?:{'|'.join(MEANINGS)})$")]


class UatSettings(Section):
    enabled: Annotated[bool, Meta(description="Off: no run begins by itself; commands still work.")] = True
    root: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=500,
            description="Where scenarios/, sessions/, screenshots/ and reports/ lie: in the project, or absolute.",
            extra={"guarded": ["uat"]},
        ),
    ] = "uat"
    mode: Annotated[str, Meta(max_length=50, description="Written into each run as its `mode`.")] = "production"
    start_at: Annotated[Score, Meta(description="A run begins by itself at this score; 101 = never.")] = START_AT
    suggest_at: Annotated[Score, Meta(description="The agent receives how to begin one at this score.")] = SUGGEST_AT
    max_age_hours: Annotated[int, Meta(ge=1, le=8760, description="A silent run ends, an ended one is archived.")] = (
        MAX_AGE_HOURS
    )
    keep_days: Annotated[
        int, Meta(ge=1, le=36500, description="`uat clean` removes files of runs older than this.")
    ] = 90
    reports: Annotated[
        tuple[Literal["html", "markdown", "junit"], ...], Meta(description="Written into reports/ when a run ends.")
    ] = ("html",)
    # A page an agent looks at can name any path as a screenshot, so only the project is believed by itself.
    screenshot_folders: Annotated[
        tuple[str, ...],
        Meta(max_length=20, description="Further folders screenshots may lie in.", extra={"guarded": True}),
    ] = ()
    drivers: Annotated[
        dict[Annotated[str, Meta(max_length=200)], Meaning],
        Meta(max_length=200, description="Further browser tools: a glob over tool names → what they do."),
    ] = {}
    health_hosts: Annotated[
        tuple[str, ...],
        Meta(max_length=50, description="Hosts beyond loopback that may be checked.", extra={"guarded": True}),
    ] = ()


DEFAULTS = UatSettings()


def run_id(at: int, seed: str) -> str:
    """S3-4: `uat-YYYYMMDD-HHMMSS-<rand>`; the random part is six bytes made from the key of the event that began it."""
    digest = base64.b64encode(hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()).decode()
    # Base64 has + and / too, which have no place in a file name.
    rand = "".join(c for c in digest if c.isalnum()).lower()[:8]
    return f"uat-{utc_datetime(at):%Y%m%d-%H%M%S}-{rand}"


def utc_datetime(at: int) -> datetime:
    """Clocks of hooks may say anything; a date must still come out."""
    # The last millisecond of the year 9999.
    return datetime.fromtimestamp(min(max(at, 0), 253_402_300_799_000) / 1000, UTC)


def format_iso(at: int | None) -> str | None:
    """S3-3: UTC with milliseconds."""
    return None if at is None else utc_datetime(at).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03}Z"


def clean_line(text: Any, limit: int = LONGEST_TEXT) -> str:
    """One line of bounded length, without colours and other control characters."""
    # Cut before cleaning: a text may be megabytes long.
    plain = _COLOURS.sub("", str(text if text is not None else "")[: limit * 4])
    words = " ".join("".join(c if c.isprintable() else " " for c in plain).split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"

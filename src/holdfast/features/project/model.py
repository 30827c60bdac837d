"""The documents of this room: their addresses, their bounds, and the small words they share."""

from datetime import UTC, datetime
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ids import bounded, delivery_key
from holdfast.core.ports import Doc, Ref

PROJECT, ACTIVITY, HABITS = "project", "project.activity", "project.habits"
LEASES = Ref("project.leases", "all")
EVERYWHERE = Ref("project.global", "all")

SCHEMA_VERSION = "4.0.0"
HISTORY = 20
LISTED_FILES = 100
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000

KINDS = {
    "project.observed": "facts about a project changed (`facts`: git, tests, trees, resolution, activity, rules …)",
    "project.look_asked": "a person asked for a fresh look at the project",
    "project.validated": "a command that the settings name as the proof of an area passed (`what`, `command`, `since`)",
    "project.turn_summed": "what a turn changed and ran, for learning (`areas`, `commands`)",
    "project.commit_seen": "a commit, and what was run before it (`commands`, `first_edit`)",
    "project.checked": "a gap rule of the user's own ran (`name`, `ok`, `rule`)",
    "project.time_passed": "a gap opened or closed only because time went by",
    "project.task_added": "a person added a task (`description`, `priority`, `done_when`)",
    "project.task_done": "a person said that a task of theirs is done (`id`)",
    "project.task_dismissed": "a person said that a task is none (`type`, `key`, `basis`, `id`, `reason`)",
    "project.override_set": "a person said which project this is (`name`; empty takes it back)",
    "project.notion_pushed": "the task list went to Notion, or could not (`status`, `pending`)",
    "project.lease_asked": "somebody wants a lease (`name`, `mode`, `owner`, `ttl_ms`, `request`)",
    "project.lease_kept": "a lease's owner is still at it (`name`, `owner`)",
    "project.lease_released": "an owner gave a lease back, or waits for it no longer (`name`, `owner`)",
    "project.lease_freed": "a lease was taken from an owner who is gone (`name`, `owner`, `why`)",
    "project.lease_changed": "who holds a lease now (`name`, `lock`)",
}


def project_ref(root: str) -> Ref:
    return Ref(PROJECT, bounded(root))


def activity_ref(root: str) -> Ref:
    return Ref(ACTIVITY, bounded(root))


def habits_ref(root: str) -> Ref:
    return Ref(HABITS, bounded(root))


def empty(root: str) -> Doc:
    """A project nobody has looked at yet. Every list and mapping in it has a bound where it is filled."""
    return {
        "project": root,
        "status": "unknown",
        "at": 0,
        "git": {},
        "results": [],
        "dismissed": {},
        "trees": {},
        "notion": {},
        "tokens": {},
        "checks": {},
        "elsewhere": {},
        "validations": {},
        "activity": {},
        "resolution": {},
        "patterns": [],
        "locks": {},
        "rules": {},
        "own": [],
        "tasks": [],
        "next_task": 1,
        "history": [],
    }


def said(kind: str, project: str, now: int, **data: Any) -> Event:
    """An event of this room's own, for a command or a job."""
    return Event(key=delivery_key(now), kind=kind, at=now, project=project, data=data)


def following(event: Event, kind: str, **data: Any) -> Event:
    """An event that follows from another in the same transaction; the engine gives it its key."""
    more = {"pid": event.data["pid"], **data} if "pid" in event.data else data
    return Event(key="", kind=kind, at=event.at, session=event.session, project=event.project, data=more)


def iso(ms: int | None) -> str | None:
    if not ms:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def phrases(text: str) -> frozenset[str]:
    """A long list of names, as one would write it in a sentence."""
    return frozenset(text.split(", "))


def number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"

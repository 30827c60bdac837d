"""Finds content that existed here and is nowhere now, and brings it back."""

from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.features.workspace.content_store import UNKEPT, path_of, text_of
from holdfast.features.workspace.git_files import known_objects, object_id
from holdfast.features.workspace.plans import Here, Plan, find_here, make_plan, steps_of
from holdfast.features.workspace.timeline import Target
from holdfast.features.workspace.watched_root import GIT

MOST_FOUND, LONGEST_ID = 200, 12


class Lost(msgspec.Struct, frozen=True):
    """A version of a file that no file has now, nor any commit."""

    id: str
    path: str
    mode: int
    at: int
    """When it was replaced or removed."""
    by: str
    """Who did that: a session; empty for a person."""
    owner: str
    gone: bool
    """Whether the file was removed, or its uncommitted lines discarded; otherwise an edit replaced this version."""
    lines: int = 0
    size: int = 0


def find_lost(call: Call, here: Here, *, every: bool) -> list[Lost]:
    """Newest first."""
    current = {seen.id for seen in here.root.files.values()}
    found: dict[str, Lost] = {}
    for step in steps_of(call, here):
        for change in step.files:
            name = change.before
            if name and name != UNKEPT and not name.startswith(GIT) and name not in current:
                gone = not change.after or bool(change.lost)
                found[name] = Lost(name, change.path, change.was, change.at, step.session, change.owner, gone)
    newest = sorted((one for one in found.values() if every or one.gone), key=lambda one: -one.at)[:MOST_FOUND]
    return _not_in_git(here, newest)


def _not_in_git(here: Here, lost: list[Lost]) -> list[Lost]:
    kept: dict[str, tuple[Lost, str]] = {}
    for one in lost:
        content = here.recorder.store.get(one.id)
        if content is not None:
            lines = content.count(b"\n") if b"\0" not in content[:8000] else 0
            sized = msgspec.structs.replace(one, lines=lines, size=len(content))
            kept[one.id] = (sized, object_id(content))
    known = known_objects(here.root.place.shared, [oid for _, oid in kept.values()]) if kept else set()
    return [one for one, oid in kept.values() if oid not in known]


def list_lost(call: Call) -> list[dict[str, Any]]:
    here = find_here(call)
    lost = find_lost(call, here, every=bool(call.args.get("all")))
    path = str(call.args.get("path") or "")
    return [
        {**msgspec.to_builtins(one), "short": one.id[:LONGEST_ID]}
        for one in lost
        if not path or one.path == path or one.path.startswith(f"{path.rstrip('/')}/")
    ]


def plan_rescue(call: Call) -> tuple[Here, Plan]:
    """By the beginning of an id, or by path: then the version that was lost last."""
    named, here = str(call.args.get("what") or ""), find_here(call)
    path, top = str(call.args.get("path") or ""), f"{here.root.root}/"
    chosen = _choose(
        find_lost(call, here, every=True), named, text_of(path.removeprefix(top)) if path.startswith(top) else named
    )
    if not chosen:
        raise CommandRefused(f"no lost version is named {named!r}", fix="List them with: holdfast rescue --all")
    as_name = str(call.args.get("to") or "")
    if as_name and len(chosen) > 1:
        raise CommandRefused("several files cannot get one name")
    wanted = [Target(as_name or one.path, one.id, one.mode) for one in chosen]
    for target in wanted:
        if target.path.startswith("/") or ".." in path_of(target.path).split("/"):
            raise CommandRefused(f"{target.path} is not in {here.name}")
    owners = {one.owner for one in chosen}
    return here, make_plan(here, f"rescue {named}", owners.pop() if len(owners) == 1 else "", wanted)


def _choose(lost: list[Lost], named: str, path: str) -> list[Lost]:
    by_id = [one for one in lost if len(named) >= 4 and one.id.startswith(named)]
    by_path = [one for one in lost if one.path == path]
    below = {one.path: one for one in reversed(lost) if one.gone and one.path.startswith(f"{path.rstrip('/')}/")}
    return by_id[:1] or by_path[:1] or list(below.values())

"""Who is satisfied on a branch: one document per branch of a repository, an entry per session in it (S2-3)."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.gates.bounded import mapped, with_newest, without
from holdfast.features.gates.refs import GONE, place

MOST_REQUIREMENTS, MOST_SESSIONS = 100, 100
SHARED = frozenset({"branch", "permanent"})
Entry = dict[str, Any]


def changed(doc: Doc | None, event: Event) -> Doc | None:
    doc = doc or _new(event)
    if event.kind == "gates.cleared":
        return _cleared(doc, event)
    if event.kind == "gates.pruned":
        return {**doc, "requirements": {}, "status": "pruned", "at": event.at}
    if event.kind in GONE:
        return _ended(doc, event)
    requirements = doc["requirements"]
    for one in event.data.get("requirements") or ():
        requirements = _with(requirements, one, event)
    return {**doc, "requirements": requirements, "status": "", "at": event.at, "project": event.project}


def _new(event: Event) -> Doc:
    repo, branch = event.data.get("repo") or "", event.data.get("branch") or ""
    return {"place": place(event), "repo": repo, "branch": branch, "project": event.project, "created": event.at,
            "requirements": {}}  # fmt: skip


def _with(requirements: dict[str, Any], one: dict[str, Any], event: Event) -> dict[str, Any]:
    name, scope = str(one["name"]), one.get("scope", "session")
    known = requirements.get(name) or {"sessions": {}}
    entry = _entry(one, event)
    if scope in SHARED or event.data.get("everyone") or not event.session:
        known = {**known, "scope": scope, "all": entry}
    else:
        sessions = with_newest(known["sessions"], event.session, entry, MOST_SESSIONS)
        known = {**known, "scope": scope, "sessions": sessions}
    return with_newest(requirements, name, known, MOST_REQUIREMENTS)


def _entry(one: dict[str, Any], event: Event) -> Entry:
    entry: Entry = {"at": event.at, "seq": event.seq, "by": event.data.get("method", "")}
    if until := one.get("until"):
        entry["until"] = until
    if event.kind == "gates.approved":
        entry["approved"] = True
    if meta := event.data.get("metadata"):
        entry["metadata"] = meta
    return entry


def _cleared(doc: Doc, event: Event) -> Doc:
    """Only the session's own entry (D7), unless everybody's is asked for."""
    named = {str(name) for name in event.data.get("requirements") or ()}
    everyone = bool(event.data.get("everyone"))

    def cut(known: dict[str, Any]) -> dict[str, Any]:
        if everyone:
            return {"scope": known.get("scope", "session"), "sessions": {}}
        return {**known, "sessions": without(known["sessions"], [event.session])}

    requirements = {name: cut(known) if name in named else known for name, known in doc["requirements"].items()}
    return {**doc, "requirements": requirements, "at": event.at}


def _ended(doc: Doc, event: Event) -> Doc | None:
    """When the session ended is what `carry_over` counts from."""
    if not any(event.session in known["sessions"] for known in doc["requirements"].values()):
        return None

    def mark(known: dict[str, Any]) -> dict[str, Any]:
        mine = known["sessions"].get(event.session)
        if mine is None:
            return known
        return {**known, "sessions": {**known["sessions"], event.session: {**mine, "ended": event.at}}}

    return {**doc, "requirements": mapped(doc["requirements"], mark)}


def own_entry(doc: Doc | None, name: str, session: str, now: int) -> Entry | None:
    known = (doc or {}).get("requirements", {}).get(name)
    entry = known["sessions"].get(session) if known else None
    return entry if _counts(entry, now) else None


def _counts(entry: Entry | None, now: int) -> bool:
    return bool(entry) and not (entry.get("until") and entry["until"] <= now)  # type: ignore[union-attr, index]


def entry_for(doc: Doc | None, name: str, session: str, now: int) -> Entry | None:
    """What counts for this session: its own entry, or the branch's. Expired ones do not (S2-15)."""
    known = (doc or {}).get("requirements", {}).get(name)
    if not known:
        return None
    for entry in (known["sessions"].get(session), known.get("all")):
        if _counts(entry, now):
            return entry
    return None


def recent_of_others(doc: Doc | None, name: str, session: str, since: int) -> tuple[str, Entry] | None:
    """The newest entry of another session that was satisfied, or ended, since then (`carry_over`)."""
    known = (doc or {}).get("requirements", {}).get(name)
    found = [
        (max(entry["at"], entry.get("ended", 0)), sid, entry)
        for sid, entry in (known["sessions"].items() if known else ())
        if sid != session and not entry.get("approved") and entry["by"] != "carry_over"
    ]
    at, sid, entry = max(found, default=(0, "", {}), key=lambda one: one[:2])
    return (sid, entry) if at and at >= since else None

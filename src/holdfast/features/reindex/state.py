"""Documents of this feature and how events change them. Pure.

The id the agent gives is the session; a new id is a new document, so no flag can stick.
"""

from collections.abc import Callable, Iterable

from holdfast.core.event import Event
from holdfast.core.ports import Doc, Ref
from holdfast.features.reindex.events import AGAIN, CONCURRENT, GOOD, NOT_READY, RUN, SKIPPED, SOURCE

SESSION, CHECKOUT = "reindex_session", "reindex_checkout"
"""One document per session (its flag), one per project (its run, its last result, its newest session)."""
MOST_CHUNKS = 3
Step = Callable[[Doc, Event], Doc]


def new_session(session: str, project: str, at: int) -> Doc:
    return {
        "session_id": session,
        "project": project,
        "shown": False,
        "first_prompt_seq": 0,
        "first_prompt_at": 0,
        "started": False,
        "branch": "",
        "switched_seq": 0,
        "edits": 0,
        "commands": 0,
        "turn": {},
        "last_reindex": None,
        "offer": None,
        "status": "waiting",
        "at": at,
    }


def new_checkout(project: str, at: int) -> Doc:
    return {
        "project": project,
        "newest": None,
        "prompts": 0,
        "run": None,
        "again": False,
        "last": None,
        "good_at": 0,
        "started_at": 0,
        "refused": None,
        "decided": None,
        "status": "new",
        "at": at,
    }


def keys(event: Event) -> Iterable[Ref]:
    if event.kind == "decision.made" and not _told(event):
        return
    if event.session:
        yield Ref(SESSION, event.session)
    if event.project and event.kind not in ("tool.finished", "decision.made", "reindex.suggested"):
        yield Ref(CHECKOUT, event.project)


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    steps = OF_SESSION if ref.kind == SESSION else OF_CHECKOUT
    step = steps.get(event.kind)
    if step is None:
        return doc
    before = doc or _new(event, ref)
    after = step(before, event)
    return doc if doc is not None and after is before else {**after, "at": event.at}


def _new(event: Event, ref: Ref) -> Doc:
    return new_session(ref.key, event.project, event.at) if ref.kind == SESSION else new_checkout(ref.key, event.at)


def facets(_ref: Ref, doc: Doc) -> tuple[str, str, int]:
    return doc.get("project", ""), doc.get("status", ""), doc.get("at", 0)


# ── a session ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _session_started(doc: Doc, event: Event) -> Doc:
    """S0-5: the same id keeps its flag, whatever `source` says."""
    return {**_on_branch(doc, event, switch=False), "started": True, "project": event.project or doc["project"]}


def _session_ended(doc: Doc, _event: Event) -> Doc:
    return {**doc, "last_reindex": None, "offer": None}


def _session_prompt(doc: Doc, event: Event) -> Doc:
    doc = _on_branch(doc, event)
    if doc["shown"]:
        return {**doc, "offer": None} if doc["offer"] else doc
    return {**doc, "shown": True, "status": "shown", "first_prompt_seq": event.seq, "first_prompt_at": event.at}


def _session_tool(doc: Doc, event: Event) -> Doc:
    doc = _on_branch(doc, event)
    if event.get("ok") is False:
        return doc
    if event.get("action") == "edit":
        return {**doc, "edits": doc["edits"] + 1}
    if event.get("action") == "shell" and not doc["commands"]:
        return {**doc, "commands": 1}
    return doc


def _session_turn(doc: Doc, event: Event) -> Doc:
    """What the turn did is kept until the next one ends: the trigger reads it after this event."""
    doc = _on_branch(doc, event)
    did = {"edits": doc["edits"], "commands": doc["commands"]}
    return (
        {**doc, "turn": did, "edits": 0, "commands": 0}
        if did != doc["turn"] or doc["edits"] or doc["commands"]
        else doc
    )


def _on_branch(doc: Doc, event: Event, switch: bool = True) -> Doc:
    branch = event.get("branch", "")
    if not branch or branch == doc["branch"]:
        return doc
    return {**doc, "branch": branch, "switched_seq": event.seq if switch and doc["branch"] else doc["switched_seq"]}


def _session_marked(doc: Doc, event: Event) -> Doc:
    shown = event.get("shown") is True
    return {**doc, "shown": shown, "status": "shown" if shown else "waiting"}


def _session_initialized(doc: Doc, _event: Event) -> Doc:
    return doc if doc["started"] else {**doc, "started": True}


def _session_finished(doc: Doc, event: Event) -> Doc:
    last = {
        "trigger": event.get("trigger"), "result": event.get("status"), "timestamp": event.at,
        "details": {"files": event.get("files", 0), "chunks": event.get("chunks", 0), "ms": event.get("ms", 0)},
    }  # fmt: skip
    return {**doc, "last_reindex": last}


def _session_suggested(doc: Doc, event: Event) -> Doc:
    """Only for the prompt it was found for; a later one has cleared the way for its own."""
    return {**doc, "offer": {"of": event.get("of", 0), "chunks": list(event.get("chunks") or ())[:MOST_CHUNKS]}}


def _session_told(doc: Doc, _event: Event) -> Doc:
    return {**doc, "offer": None} if doc["offer"] else doc


def _told(event: Event) -> bool:
    return any(context.get("source") == SOURCE for context in event.get("contexts") or ())


OF_SESSION: dict[str, Step] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "prompt.submitted": _session_prompt,
    "tool.finished": _session_tool,
    "turn.ended": _session_turn,
    "reindex.marked": _session_marked,
    "reindex.initialized": _session_initialized,
    "reindex.finished": _session_finished,
    "reindex.suggested": _session_suggested,
    "decision.made": _session_told,
}

# ── a checkout ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _initialized(doc: Doc, event: Event) -> Doc:
    return {**doc, "newest": {"session_id": event.session, "shown": event.get("shown") is True}}


def _prompted(doc: Doc, event: Event) -> Doc:
    """Counted, so that the seed's file is looked at with every prompt and put right if somebody broke it."""
    return {**_newest_shown(doc, event, True), "prompts": doc["prompts"] + 1}


def _marked(doc: Doc, event: Event) -> Doc:
    newest = doc["newest"] or {"session_id": event.session, "shown": False}
    return _newest_shown({**doc, "newest": newest}, event, event.get("shown") is True)


def _newest_shown(doc: Doc, event: Event, shown: bool) -> Doc:
    newest = doc["newest"]
    if not newest or newest["session_id"] != event.session or newest["shown"] == shown:
        return doc
    return {**doc, "newest": {**newest, "shown": shown}}


def _decided(doc: Doc, event: Event) -> Doc:
    told = {name: event.get(name) for name in ("decision", "reason", "details", "trigger", "run")}
    doc = {**doc, "decided": {**told, "timestamp": event.at, "session": event.session}}
    if event.get("decision") == RUN:
        run = {"id": event.get("run"), "trigger": event.get("trigger"), "at": event.at, "session": event.session}
        run |= {"rebuild": True} if (event.get("details") or {}).get("rebuild") else {}
        return {**doc, "run": run, "started_at": event.at, "status": "running", "again": False}
    if event.get("reason") == CONCURRENT:
        return {**doc, "again": True}
    return {**doc, "again": False} if event.get("trigger") == AGAIN else doc


def _finished(doc: Doc, event: Event) -> Doc:
    status = event.get("status")
    last = {name: event.get(name) for name in LAST} | {"at": event.at}
    refused = (
        {"why": event.get("reason"), "at": event.at} if status == SKIPPED and event.get("cause") == NOT_READY else None
    )
    mine = doc["run"] is not None and doc["run"]["id"] == event.get("run")
    return {
        **doc,
        "last": last,
        "refused": refused,
        "good_at": event.at if status in GOOD else doc["good_at"],
        "run": None if mine else doc["run"],
        "status": status if mine or doc["run"] is None else doc["status"],
    }


LAST = ("run", "trigger", "status", "reason", "branch", "files", "left_out", "added", "changed", "removed",
        "chunks", "embedded", "ms", "note", "root")  # fmt: skip


OF_CHECKOUT: dict[str, Step] = {
    "reindex.initialized": _initialized,
    "reindex.marked": _marked,
    "reindex.decided": _decided,
    "reindex.finished": _finished,
    "prompt.submitted": _prompted,
}

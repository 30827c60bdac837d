"""Sessions for people and tools: the list, one whole, who needs you. No door adds logic of its own."""

from typing import Any

from holdfast.core.feature import Call
from holdfast.core.ids import alias
from holdfast.core.ports import Doc, Reader, Ref, StateQuery
from holdfast.features.sessions import lookup, summary
from holdfast.features.sessions.model import ACTIVE, DEFAULTS, IDLE, SESSION, SUMMARY, TURN, WAITING, WATCHED, turn_key

COPIED = (
    "id", "agent", "project", "branch", "status", "reason", "detail", "title", "started_at", "at", "since", "ended_at",
    "prompts", "tools", "failed", "denied", "edits", "compactions", "restarts", "tokens", "parent", "parent_reason",
)  # fmt: skip
WHOLE = (
    "cwd", "transcript", "model", "origin", "source", "lanes", "lanes_seen", "children", "children_seen",
    "process", "running", "asks", "turn", "told", "first_seq", "seq", "events",
)  # fmt: skip
LONGEST_PAGE = 500
MOST_LIVE = 200
LIVE = (WATCHED, ACTIVE)
URGENCY = {"permission": 0, "question": 0, "failed": 1, "interrupted": 2, "stopped": 2, "notified": 2}


def row(doc: Doc, call: Call) -> dict[str, Any]:
    turn = doc["turn"]
    need = needs(doc)
    state = doc["state"]
    idle_ms = (call.settings or DEFAULTS).idle_after_seconds * 1000
    if state == WAITING and not doc["asks"] and call.now - doc["since"] > idle_ms:
        state = IDLE
    return {
        **{name: doc[name] for name in COPIED},
        "alias": alias(doc["id"]),
        "state": state,
        "needs": need if state == WAITING else None,
        "turn_n": turn["n"] if turn else 0,
        "turn_at": turn["at"] if turn else 0,
        "prompt": turn["prompt"] if turn else "",
        "doing": doing(doc),
        "lanes_open": sum(1 for lane in doc["lanes"].values() if not lane["end"]),
        "pid": (doc["process"] or {}).get("pid", 0),
    }


def needs(doc: Doc) -> dict[str, Any] | None:
    """What the user is waited for."""
    if doc["state"] != WAITING:
        return None
    if doc["asks"]:
        ask = doc["asks"][0]
        return {"what": ask["what"], "text": _tool(ask), "since": ask["at"]}
    turn = doc["turn"]
    return {"what": turn["how"], "text": turn["answer"], "since": doc["since"]}


def doing(doc: Doc) -> str:
    running = list(doc["running"].values())
    return _tool(running[-1]) if running else ""


def _tool(entry: Doc) -> str:
    return f"{entry['tool']}: {entry['about']}" if entry["tool"] and entry["about"] else entry["tool"] or entry["about"]


def sessions(call: Call) -> dict[str, Any]:
    """A page, the latest activity first. `next` is the `before` of the following one."""
    args = call.args
    limit = max(1, min(int(args.get("limit") or 50), LONGEST_PAGE))
    before = args.get("before")
    page = listed(
        call.reader,
        ("",) if args.get("all") else LIVE,
        project=str(args.get("project") or ""),
        before=(int(before[0]), str(before[1])) if before else None,
        limit=limit,
    )
    last = page[-1] if len(page) == limit else None
    return {
        "sessions": [row(doc, call) for doc in page],
        "next": [last["at"], last["id"]] if last else None,
        "now": call.now,
    }


def listed(reader: Reader, statuses: tuple[str, ...], limit: int, **only: Any) -> list[Doc]:
    """The newest of several statuses: each is a page of its own, merged."""
    queries = [StateQuery(kind=SESSION, status=status, limit=limit, **only) for status in statuses]
    found = [doc for query in queries for _, doc in reader.states(query)]
    return sorted(found, key=lambda doc: (doc["at"], doc["id"]), reverse=True)[:limit]


def who(call: Call) -> dict[str, Any]:
    """Every live session, those that need the user first, the longest waiting of them on top."""
    page = listed(call.reader, LIVE, MOST_LIVE)
    rows = sorted((row(doc, call) for doc in page), key=_urgency)
    return {"sessions": rows, "waiting": sum(1 for r in rows if r["needs"]), "now": call.now}


def _urgency(shown: dict[str, Any]) -> tuple[int, int]:
    if shown["needs"]:
        return URGENCY.get(shown["needs"]["what"], 2), shown["needs"]["since"]
    return (3 if shown["state"] == "working" else 4), -shown["at"]


def session(call: Call) -> dict[str, Any]:
    """One session whole: its facts, what it came to (unless it is asked `brief`), its latest turns."""
    doc = lookup.wanted(call)
    limit = max(1, min(int(call.args.get("turns") or 10), LONGEST_PAGE))
    return {
        **row(doc, call),
        **{name: doc[name] for name in WHOLE},
        "summary": None if call.args.get("brief") else summary_of(doc, call.reader),
        "turns": turns(doc, call.reader, limit=limit),
        "now": call.now,
    }


def summary_of(doc: Doc, reader: Reader) -> dict[str, Any]:
    made = reader.state(Ref(SUMMARY, doc["id"]))
    if made and made.get("of", 0) >= doc["seq"] and "text" in made:
        return made
    return summary.of(reader.replay(session=doc["id"]))


def turns(doc: Doc, reader: Reader, before: int = 0, limit: int = 10) -> list[dict[str, Any]]:
    """By number, which is their key: the latest, the oldest of them first."""
    last = doc["turn"]["n"] if doc["turn"] else 0
    end = min(last, before - 1) if before else last
    return [found for n in range(max(1, end - limit + 1), end + 1) if (found := turn(doc, reader, n))]


def turn(doc: Doc, reader: Reader, n: int) -> dict[str, Any] | None:
    stored = reader.state(Ref(TURN, turn_key(doc["id"], n))) or {}
    fresh: Doc = next((t for t in (doc["turn"], doc["previous"]) if t and t["n"] == n), {})
    found = {**stored, **fresh}
    return found if "first" in found else None

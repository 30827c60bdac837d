"""The tools: each one view or command of a feature, asked through the daemon. Cheap answers first, details by id."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.mcp.answer import Answer, Row, date_of, format_row, next_cursor, page_answer
from holdfast.mcp.arguments import (
    AcquireLease,
    AddMemory,
    Arguments,
    MemoryId,
    MemoryTimeline,
    Paged,
    ReleaseLease,
    SearchCode,
    SearchMemory,
    ShowRun,
    input_schema,
)  # fmt: skip
from holdfast.mcp.context import Context
from holdfast.mcp.leases import acquire, release
from holdfast.mcp.project_tools import show_state

ITEMS = {"type": "object", "properties": {"items": {"type": "array"}}}
OBJECT = {"type": "object"}
READS = {"readOnlyHint": True}
ADDS = {"readOnlyHint": False, "destructiveHint": False}


def search_memory(args: SearchMemory, context: Context) -> Answer:
    asked = {"query": args.query, "type": args.type, "limit": args.limit + 1, "offset": args.offset}
    hits = context.view("memory.search", **asked)["hits"]
    rows = [
        Row(
            hit["id"],
            date_of(hit["at"]),
            hit["status"] or "said",
            hit["type"] or hit["kind"],
            hit["text"],
            hit["session"],
        )
        for hit in hits[: args.limit]
    ]
    cursor = next_cursor(args.offset, len(rows), len(hits) > args.limit)
    return page_answer(rows, cursor, "Nothing found. Try other words.")


def show_timeline(args: MemoryTimeline, context: Context) -> Answer:
    said = context.view("memory.around", id=args.id, limit=args.limit)["said"]
    return page_answer(Row(e["id"], date_of(e["at"]), "said", e["kind"], e["text"]) for e in said)


def show_memory(args: MemoryId, context: Context) -> Answer:
    doc = context.view("memory.show", id=args.id)
    status, type_ = doc.get("status") or "said", doc.get("type") or doc["kind"]
    evidence = [Row(f"e{e['seq']}", date_of(e["at"]), "said", e["kind"], e["text"]) for e in doc["evidence"]]
    row = Row(doc["id"], date_of(doc["at"]), status, type_, doc["text"], doc["session"])
    data = {**msgspec.to_builtins(row), "by": doc.get("origin", ""), "files": doc.get("files", [])}
    data |= {"supersededBy": doc.get("superseded_by", ""), "evidence": msgspec.to_builtins(evidence)}
    by = f"\nby: {doc['origin']}" if doc.get("origin") else ""
    lines = [f"{row.id} | {row.at} | {type_}, {status}{by}\n{doc['text']}", *map(format_row, evidence)]
    return Answer("\n".join(lines), data)


def add_memory(args: AddMemory, context: Context) -> Answer:
    doc = context.command("memory.add", text=args.text, type=args.type, files=args.files, by="agent")
    row = Row(doc["id"], date_of(doc["at"]), doc["status"], doc["type"], doc["text"])
    return Answer(f"Remembered: {format_row(row)}", {**msgspec.to_builtins(row), "by": doc["origin"]})


def list_gates(args: Paged, context: Context) -> Answer:
    from holdfast.git_context import locate

    around = locate(context.caller.project)
    branch, repo = around.get("branch", ""), around.get("repo", "")
    found = context.view("gates.status", branch=branch, repo=repo, by="agent")["requirements"]
    rows = [
        Row(one["name"], date_of(one["until"]), "met" if one["ok"] else "open", one["type"], _gate_text(one))
        for one in found
    ]
    return _sliced(rows, args, "No gates: nothing has to be done first.")


def _gate_text(gate: dict[str, Any]) -> str:
    return gate["description"] if gate["ok"] else f"{gate['why'] or gate['description']} To meet it: {gate['resolve']}"


def list_tasks(args: Paged, context: Context) -> Answer:
    found = context.view("project.tasks")["tasks"]
    rows = [
        Row(str(one["key"]), _day(one["since"]), "open", one["priority"], f"{one.get('title') or ''} — {one['why']}")
        for one in found
    ]
    return _sliced(rows, args, "No open tasks are known.")


def list_leases(args: Paged, context: Context) -> Answer:
    rows = [
        Row(lease["name"], date_of(one["at"]), _holds(one, side), one["mode"], f"process {one['pid']}: {one['why']}")
        for lease in context.view("project.leases")["leases"]
        for side in ("holders", "waiters")
        for one in lease[side]
    ]
    return _sliced(rows, args, "Nobody holds anything.")


def _holds(entry: dict[str, Any], side: str) -> str:
    if entry["lost"]:
        return "lost"
    return "waiting" if side == "waiters" else "overdue" if entry["late"] else "held"


def list_runs(args: Paged, context: Context) -> Answer:
    runs = context.view("uat.list", limit=args.offset + args.limit + 1)["runs"]
    rows = [Row(run["id"], _day(run["at"]), run["outcome"] or run["status"], "uat", run["scenario"]) for run in runs]
    return _sliced(rows, args, "No UAT runs yet.")


def show_run(args: ShowRun, context: Context) -> Answer:
    run = context.view("uat.show", run=args.run)
    return Answer(msgspec.json.encode(run, enc_hook=str).decode(), run)


def search_code(args: SearchCode, context: Context) -> Answer:
    asked = {"query": args.query, "path": args.path, "limit": min(50, args.offset + args.limit + 1)}
    found = context.view("reindex.search", **asked)
    status = "current" if not found.get("stale") else "stale"
    rows = [
        Row(
            f"{hit['path']}:{hit['line']}",
            date_of(found["at"]),
            status,
            hit["kind"],
            f"{hit['symbol']} {hit['excerpt']}",
        )
        for hit in found["hits"]
    ]
    return _sliced(rows, args, "Nothing found in the code.")


def _day(at: Any) -> str:
    return date_of(at) if isinstance(at, int | float) else str(at or "")[:16]


def _sliced(rows: list[Row], args: Paged, empty: str) -> Answer:
    end = args.offset + args.limit
    return page_answer(rows[args.offset : end], next_cursor(end, 0, len(rows) > end), empty)


class Tool(msgspec.Struct, frozen=True):
    name: str
    about: str
    takes: type[Arguments]
    run: Callable[..., Answer]
    returns: dict[str, Any] = msgspec.field(default_factory=lambda: ITEMS)
    hints: dict[str, bool] = msgspec.field(default_factory=lambda: READS)

    def listed(self, hidden: frozenset[str]) -> dict[str, Any]:
        return {
            "name": self.name, "description": self.about, "inputSchema": input_schema(self.takes, hidden),
            "outputSchema": self.returns, "annotations": self.hints,
        }  # fmt: skip


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("memory_search", "What was said, decided or learned here. Search before asking the user.",
             SearchMemory, search_memory),
        Tool("memory_timeline", "What was said just before and after an id.", MemoryTimeline, show_timeline),
        Tool("memory_details", "One memory whole, with its evidence.", MemoryId, show_memory, OBJECT),
        Tool("memory_add", "Keep what later sessions must know (500 characters). Others are told once a person keeps it.",
             AddMemory, add_memory, OBJECT, ADDS),
        Tool("gates", "What must be done before which action, and how.", Paged, list_gates),
        Tool("tasks", "Open tasks of this project, most urgent first.", Paged, list_tasks),
        Tool("state", "Branch, changes, tests and blockers now.", Arguments, show_state, OBJECT),
        Tool("leases", "Shared things that sessions hold now.", Paged, list_leases),
        Tool("lease_acquire", "Hold a shared thing (database, port) while you use it.",
             AcquireLease, acquire, OBJECT, ADDS),
        Tool("lease_release", "Give a lease back.", ReleaseLease, release, OBJECT, ADDS),
        Tool("uat_runs", "Newest UAT runs.", Paged, list_runs),
        Tool("uat_show", "One UAT run: steps, assertions, problems.", ShowRun, show_run, OBJECT),
        Tool("code_search", "Places in this code, by meaning or name.", SearchCode, search_code),
    )
}  # fmt: skip

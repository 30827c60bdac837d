"""MCP tools: each asks the daemon for one view or command; answers are short, with details by id."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.core.errors import CommandRefused
from holdfast.doors.lease_client import acquire_lease, release_lease
from holdfast.doors.mcp.answers import Answer, Row, date_of, format_row, next_cursor, page_answer
from holdfast.doors.mcp.context import CallCancelled, Context

# The arguments of each tool. Limits are part of the type, and a violation is answered with the limit.

Text = Annotated[str, Meta(max_length=1000)]
LongText = Annotated[str, Meta(min_length=1, max_length=500)]
Name = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+\Z", description="without line breaks")
]
Cursor = Annotated[str, Meta(pattern=r"^\d{0,6}$", description="the nextCursor of the last answer")]
Limit = Annotated[int, Meta(ge=1, le=50)]
TOLD = ("type", "items")
"""Schema keys included in the list of tools, which every agent reads at every start. A violated limit is answered with
the limit."""
RARE = frozenset(("limit", "files", "ttl_seconds", "why", "tool", "shared", "path"))
"""Fields with a good default: accepted, but not listed."""


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`project`: another project than the connection's."""

    project: Text = ""


class Paged(Arguments, kw_only=True):
    limit: Limit = 10
    cursor: Cursor = ""

    @property
    def offset(self) -> int:
        return int(self.cursor or 0)


class SearchMemory(Paged, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    type: str = ""


class MemoryId(Arguments, kw_only=True):
    id: Name


class MemoryTimeline(MemoryId, kw_only=True):
    limit: Limit = 5


class AddMemory(Arguments, kw_only=True):
    text: LongText
    type: str = "discovery"
    files: Annotated[list[Text], Meta(max_length=20)] = []


class AcquireLease(Arguments, kw_only=True):
    name: Name
    wait_seconds: Annotated[float, Meta(ge=0, le=600)] = 0
    ttl_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 300
    shared: bool = False
    why: Annotated[str, Meta(max_length=200)] = ""
    pid: Annotated[int, Meta(ge=0)] = 0


class ReleaseLease(Arguments, kw_only=True):
    name: Name
    pid: Annotated[int, Meta(ge=0)] = 0


class ShowRun(Arguments, kw_only=True):
    run: Annotated[str, Meta(max_length=200)] = ""


class SearchCode(Paged, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    path: Text = ""


class SearchHistory(Paged, kw_only=True):
    """An error text may be long."""

    query: Annotated[str, Meta(min_length=1, max_length=100_000)]
    tool: Text = ""
    file: Text = ""
    failed: bool = False


def input_schema(arguments: type[Arguments], hidden: frozenset[str]) -> dict[str, Any]:
    """`hidden`: fields this connection does not need; they are accepted all the same."""
    _, components = msgspec.json.schema_components([arguments])
    schema = components[arguments.__name__]
    fields = {name: _short_schema(one) for name, one in schema["properties"].items() if name not in hidden | RARE}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": fields, **required}


def explain_field(arguments: type[Arguments], name: str) -> str:
    """A field's type in words: "limit takes an integer from 1 to 50"."""
    _, components = msgspec.json.schema_components([arguments])
    one = components[arguments.__name__]["properties"].get(name)
    if one is None:
        return ""
    lowest = f"above {one['exclusiveMinimum']}" if "exclusiveMinimum" in one else f"from {one.get('minimum', 0)}"
    bounds = (
        f" {lowest} to {one['maximum']}" if "maximum" in one else "",
        f" of {one.get('minLength', 0)} to {one['maxLength']} characters" if "maxLength" in one else "",
        f" of at most {one['maxItems']} entries" if "maxItems" in one else "",
        f", {one['description']}" if "description" in one else "",
    )
    return f"{name} takes {_KINDS[one['type']]}{''.join(bounds)}"


_KINDS = {
    "string": "text", "array": "a list", "boolean": "true or false", "integer": "an integer", "number": "a number",
}  # fmt: skip


def _short_schema(schema: dict[str, Any]) -> dict[str, Any]:
    short = {key: value for key, value in schema.items() if key in TOLD}
    return {**short, "items": {"type": "string"}} if "items" in short else short


# Leases as tools. The holder is a process: over stdio the parent agent, over HTTP the named one.


def acquire_lease_tool(args: AcquireLease, context: Context) -> Answer:
    """A cancelled call never keeps the lease: not while it waits, not when it was granted a moment before."""
    pid = _owner_pid(args.pid, context)
    before = _held_by(args.name, pid, context)
    how = {"exactly": bool(args.pid), "shared": args.shared, "ttl": args.ttl_seconds, "why": args.why}
    answer = acquire_lease(
        args.name, pid, args.wait_seconds, pause=_pause_with_progress(args, context), ask=context.command, **how
    )
    # A lease held before this call is not released when the call is cancelled.
    if answer["answer"] == "granted" and not before:
        context.undo = lambda: release_lease(args.name, answer["owner"])
    if context.cancelled.is_set():
        raise CallCancelled
    return Answer(_lease_sentence(args.name, answer), {**answer, "until": date_of(answer.get("until"))})


def _pause_with_progress(args: AcquireLease, context: Context) -> Any:
    waited = 0.0

    def pause(seconds: float) -> None:
        nonlocal waited
        context.wait(seconds)
        before, waited = waited, waited + seconds
        if int(before) != int(waited):
            context.report(round(waited, 1), args.wait_seconds, f"waiting for {args.name}")

    return pause


def _lease_sentence(name: str, answer: dict[str, Any]) -> str:
    if answer["answer"] == "granted":
        until = date_of(answer.get("until"))
        return f"granted: you hold {name} until {until} (token {answer['token']}). Give it back with lease_release."
    return f"{answer['answer']}: {answer.get('why') or 'others hold it'}. Try again later, or give wait_seconds."


def release_lease_tool(args: ReleaseLease, context: Context) -> Answer:
    pid = _owner_pid(args.pid, context)
    answer = context.command("project.release", lease=args.name, pid=pid, exactly=bool(args.pid))
    return Answer(f"released: {args.name}", answer)


def _held_by(name: str, pid: int, context: Context) -> bool:
    leases = context.view("project.leases")["leases"]
    return any(one["name"] == name and any(holder["pid"] == pid for holder in one["holders"]) for one in leases)


def _owner_pid(named: int, context: Context) -> int:
    if not named and not context.caller.pid:
        raise CommandRefused("say which process holds the lease", fix="Give `pid`, the agent's process id.")
    return named or context.caller.pid


# The project's state in a few lines.

KEPT = ("PROJECT", "LAST_UPDATED", "CURRENT_STATE", "WORK_CONTEXT", "RESOURCE_LOCKS")


def show_state(_args: Arguments, context: Context) -> Answer:
    answer = context.view("project.state")
    document = answer["document"]
    return Answer(
        "\n".join(_state_lines(document, _as_of(answer))), {name: document[name] for name in KEPT if name in document}
    )


def _as_of(answer: dict[str, Any]) -> str:
    """Empty if it was looked at for this answer."""
    if answer["current"]:
        return ""
    return f"as of {date_of(answer['looked_at']) or 'unknown'}; files may have changed since"


def _state_lines(document: dict[str, Any], as_of: str) -> Iterator[str]:
    now = document["CURRENT_STATE"]
    tests = now["tests"]
    yield f"project: {document['PROJECT']} | {as_of or 'as of now'}"
    yield from _git_lines(now["git"])
    counts = f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"
    yield f"tests: {tests['last_run'] or 'no run known'} | {tests['status']} | {counts}"
    yield "tasks: " + ", ".join(f"{len(entries)} {name}" for name, entries in document["TASKS"].items())
    yield from (f"blocker: {one}" for one in document["WORK_CONTEXT"].get("blockers") or ())


def _git_lines(git: dict[str, Any]) -> Iterator[str]:
    if git["branch"] or git["status"] != "unknown":
        changed = git["uncommitted_files"]["count"]
        yield f"git: {git['branch'] or 'unknown branch'} | {git['status']} | {changed} files not committed"
    else:
        yield "git: unknown (no repository here, or not checked yet)"
    last = git["last_commit"]
    if isinstance(last, dict):
        yield f"last commit: {last.get('hash') or ''} | {last.get('date') or last.get('at') or ''} | {last.get('message')}"


OBJECT = {"type": "object"}
"""A tool's result schema; its fields are omitted from the list, which every agent reads at every start."""
PAGE = {**OBJECT, "required": ["items"]}
"""The result schema of a list; `nextCursor` is set if more follow."""
NO_MORE = "Nothing more."
# In digits: the index stores line numbers in 64 bits.
LONGEST_LINE_NUMBER = 9
READS = {"readOnlyHint": True}
ADDS = {"readOnlyHint": False, "destructiveHint": False}


def search_memory(args: SearchMemory, context: Context) -> Answer:
    # One more than requested, to detect another page.
    criteria = {"query": args.query, "type": args.type, "limit": args.limit + 1, "offset": args.offset}
    answer = context.view("memory.search", **criteria)
    hits = answer["hits"]
    rows = [_memory_row(hit) for hit in hits[: args.limit]]
    cursor = next_cursor(args.offset, len(rows), len(hits) > args.limit)
    found = page_answer(rows, cursor, NO_MORE if args.offset else "Nothing found. Try other words.")
    if answer["left"]:
        found.text += f"\n({answer['left']} events are not in the index yet: search again in a minute.)"
    return found


def _memory_row(doc: dict[str, Any]) -> Row:
    status, type_ = doc.get("status") or "said", doc.get("type") or doc["kind"]
    return Row(doc["id"], date_of(doc["at"]), status, type_, doc["text"], doc["session"])


def show_timeline(args: MemoryTimeline, context: Context) -> Answer:
    statements = context.view("memory.around", id=args.id, limit=args.limit, by="agent")["said"]
    return page_answer(_said_row(one["id"], one) for one in statements)


def _said_row(id_: str, event: dict[str, Any]) -> Row:
    return Row(id_, date_of(event["at"]), "said", _kind_name(event["kind"]), event["text"])


def _kind_name(kind: str) -> str:
    """The name that `memory_search` uses."""
    names = {"prompt.submitted": "prompt", "turn.ended": "answer", "turn.answer_read": "answer"}
    return names.get(kind, "memory" if kind.startswith("memory.") else kind)


def show_memory(args: MemoryId, context: Context) -> Answer:
    doc = context.view("memory.show", id=args.id, by="agent")
    evidence = [_said_row(f"e{one['seq']}", one) for one in doc["evidence"]]
    row, origin, replaced_by = _memory_row(doc), doc.get("origin", ""), doc.get("superseded_by", "")
    data = {**msgspec.to_builtins(row), "by": origin, "files": doc.get("files", [])}
    data |= {"supersededBy": replaced_by, "evidence": msgspec.to_builtins(evidence)}
    by = f"\nby: {origin}" if origin else ""
    by += f"\nno longer holds, see: {replaced_by}" if replaced_by else ""
    lines = [f"{row.id} | {row.at} | {row.type}, {row.status}{by}\n{doc['text']}", *map(format_row, evidence)]
    return Answer("\n".join(lines), data)


def add_memory(args: AddMemory, context: Context) -> Answer:
    doc = context.command("memory.add", text=args.text, type=args.type, files=args.files, by="agent")
    row = Row(doc["id"], date_of(doc["at"]), doc["status"], doc["type"], doc["text"])
    if doc["origin"] == "user":
        confirmation = "Remembered, as your user said it"
    else:
        confirmation = "Recorded as your words; later sessions receive them once a person keeps them"
    return Answer(f"{confirmation}: {format_row(row)}", {**msgspec.to_builtins(row), "by": doc["origin"]})


def list_gates(args: Paged, context: Context) -> Answer:
    from holdfast.core.git_context import locate

    around = locate(context.caller.project)
    branch, repo = around.get("branch", ""), around.get("repo", "")
    requirements = context.view("gates.status", branch=branch, repo=repo, by="agent")["requirements"]
    return _slice_rows(map(_gate_row, requirements), args, "No gates: nothing has to be done first.")


def _gate_row(gate: dict[str, Any]) -> Row:
    if gate["ok"]:
        text, status = gate["description"], "met"
    else:
        text, status = f"{gate['why'] or gate['description']} To meet it: {gate['resolve']}", "open"
    return Row(gate["name"], date_of(gate["until"]), status, gate["type"], text)


def list_tasks(args: Paged, context: Context) -> Answer:
    answer = context.view("project.tasks")
    listed = _slice_rows(map(_task_row, answer["tasks"]), args, "No open tasks are known.")
    listed.text += f"\n({_as_of(answer)})" if _as_of(answer) else ""
    return listed


def _task_row(task: dict[str, Any]) -> Row:
    text = f"{task.get('title') or ''} — {task['why']}"
    return Row(str(task["key"]), _short_date(task["since"]), "open", task["priority"], text)


def list_leases(args: Paged, context: Context) -> Answer:
    rows = (
        _lease_row(lease["name"], side, one)
        for lease in context.view("project.leases")["leases"]
        for side in ("holders", "waiters")
        for one in lease[side]
    )
    return _slice_rows(rows, args, "No leases are held.")


def _lease_row(name: str, side: str, entry: dict[str, Any]) -> Row:
    status = "waiting" if side == "waiters" else "overdue" if entry["late"] else "held"
    text = f"process {entry['pid']}: {entry['why']}"
    return Row(name, date_of(entry["at"]), "lost" if entry["lost"] else status, entry["mode"], text)


def list_runs(args: Paged, context: Context) -> Answer:
    runs = context.view("uat.list", limit=args.offset + args.limit + 1)["runs"]
    return _slice_rows(map(_run_row, runs), args, "No UAT runs yet.")


def _run_row(run: dict[str, Any]) -> Row:
    return Row(run["id"], _short_date(run["at"]), run["outcome"] or run["status"], "uat", run["scenario"])


def show_run(args: ShowRun, context: Context) -> Answer:
    run = context.view("uat.show", run=args.run)
    return Answer(msgspec.json.encode(run, enc_hook=str).decode(), run)


def search_code(args: SearchCode, context: Context) -> Answer:
    """As on the command line, `outline PATH`, `related PATH:LINE` and `symbol NAME` are lookups."""
    match args.query.split():
        case ["outline", path]:
            rows = _outline_rows(context.view("reindex.outline", file=path))
        case ["related", place]:
            path, _, line = place.rpartition(":")
            known = path and line.isdecimal() and len(line) <= LONGEST_LINE_NUMBER
            where = {"file": path, "line": int(line)} if known else {"file": place, "line": 1}
            rows = _code_rows(context.view("reindex.related", **where, limit=args.offset + args.limit + 1))
        case ["symbol", name]:
            rows = _symbol_rows(context.view("reindex.symbol", symbol=name))
        case _:
            criteria = {"query": args.query, "path": args.path, "limit": min(50, args.offset + args.limit + 1)}
            rows = _code_rows(context.view("reindex.search", **criteria))
    return _slice_rows(rows, args, "Nothing found in the code.")


def _code_rows(answer: dict[str, Any]) -> list[Row]:
    """The block with its lines, the reason, and its neighbours, so that the file need not be read for that."""
    return [_hit_row(hit, date_of(answer["at"])) for hit in answer["hits"]]


def _hit_row(hit: dict[str, Any], at: str) -> Row:
    text = f"{hit['symbol']}{_next_to(hit)}\n{hit['excerpt']}"
    return Row(f"{hit['path']}:{hit['line']}-{hit['end']}", at, "; ".join(hit["why"][:3]), hit["kind"], text)


def _next_to(hit: dict[str, Any]) -> str:
    neighbours = [
        f"{title} {one['symbol']}:{one['line']}"
        for name, title in (("within", "in"), ("before", "after"), ("after", "then"))
        if (one := hit[name])
    ]
    return f" ({', '.join(neighbours)})" if neighbours else ""


def _outline_rows(answer: dict[str, Any]) -> list[Row]:
    return [
        Row(f"{answer['path']}:{one['line']}-{one['end']}", type=one["kind"], text=one["symbol"])
        for one in answer["definitions"]
    ]


def _symbol_rows(answer: dict[str, Any]) -> list[Row]:
    rows = [
        Row(f"{one['path']}:{one['line']}", status=title, text=one["text"])
        for title, key in (("definition", "definitions"), ("use", "uses"), ("test", "tests"))
        for one in answer[key]
    ]
    return rows + [Row(name, status="similar name") for name in answer["similar"]]


def search_history(args: SearchHistory, context: Context) -> Answer:
    """`recall`, `fix ERROR TEXT` and `how KIND` are lookups, as on the command line."""
    match args.query.split(maxsplit=1):
        case ["recall"]:
            return _recall(context)
        case ["fix", error]:
            return _fixes(error, context)
        case ["how", kind]:
            return _proven_commands(kind.strip(), context)
    criteria = {"query": args.query, "tool": args.tool, "file": args.file, "failed": args.failed}
    answer = context.view(
        "log.history", **criteria, project=context.caller.project, limit=min(100, args.offset + args.limit + 1)
    )
    rows = [
        Row(f"e{hit['seq']}", date_of(hit["at"]), "failed" if hit["failed"] else "", hit["tool"] or hit["kind"],
            hit["snippet"], hit["session"])
        for hit in answer["hits"]
    ]  # fmt: skip
    return _slice_rows(rows, args, "No results.")


def _recall(context: Context) -> Answer:
    answer = context.view("memory.recall")
    return page_answer([Row(answer["session"], text=answer["text"])] if answer["text"] else [], "", NO_MORE, whole=True)


def _fixes(error: str, context: Context) -> Answer:
    rows = [
        Row(
            f"e{one['seq']}",
            date_of(one["at"]),
            "worked" if one["worked"] else "not resolved",
            "fix",
            _fix_text(one),
            one["session"],
        )
        for one in context.view("memory.fix", text=error)["found"]
    ]
    return page_answer(rows, "", "This error is not on record here.", whole=True)


def _fix_text(one: dict[str, Any]) -> str:
    steps = [f"`{one['command']}`: {one['line']}", *(f"then {step}" for step in one["followed"])]
    return "\n".join([*steps, f"worked: `{one['worked']}`"] if one["worked"] else steps)


def _proven_commands(kind: str, context: Context) -> Answer:
    rows = [
        Row(
            one["command"],
            date_of(one["at"]),
            f"passed {one['passed']}, failed {one['failed']}",
            kind,
            f"in {one['dir']}",
        )
        for one in context.view("memory.how", kind=kind)["commands"]
    ]
    return page_answer(rows, "", f"No {kind} run that passed is known here.")


def _short_date(at: Any) -> str:
    return date_of(at) if isinstance(at, int | float) else str(at or "")[:16]


def _slice_rows(listed: Iterable[Row], args: Paged, empty: str) -> Answer:
    rows, end = list(listed), args.offset + args.limit
    return page_answer(rows[args.offset : end], next_cursor(end, 0, len(rows) > end), NO_MORE if rows else empty)


class Tool(msgspec.Struct, frozen=True):
    name: str
    about: str
    takes: type[Arguments]
    run: Callable[..., Answer]
    hints: dict[str, bool] = msgspec.field(default_factory=lambda: READS)

    def listed(self, hidden: frozenset[str]) -> dict[str, Any]:
        # A lease applies to the whole machine.
        hidden |= {"project"} if self.name.startswith("lease") else frozenset()
        return {
            "name": self.name, "description": self.about, "inputSchema": input_schema(self.takes, hidden),
            "outputSchema": PAGE if issubclass(self.takes, Paged | MemoryTimeline) else OBJECT, "annotations": self.hints,
        }  # fmt: skip


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("memory_search", "What was said and decided here.",
             SearchMemory, search_memory),
        Tool("memory_timeline", "What was said around an id.", MemoryTimeline, show_timeline),
        Tool("memory_details", "One memory with its evidence.", MemoryId, show_memory),
        Tool("memory_add", "Note for later sessions. Your user's exact words count at once, yours once kept.",
             AddMemory, add_memory, ADDS),
        Tool("gates", "What must be done first, and how.", Paged, list_gates),
        Tool("tasks", "Open tasks, most urgent first.", Paged, list_tasks),
        Tool("state", "Branch, changes, tests, blockers now.", Arguments, show_state),
        Tool("leases", "Who holds which shared thing.", Paged, list_leases),
        Tool("lease_acquire", "Hold a shared thing, as a port.",
             AcquireLease, acquire_lease_tool, ADDS),
        Tool("lease_release", "Give a lease back.", ReleaseLease, release_lease_tool, ADDS),
        Tool("uat_runs", "Newest UAT runs.", Paged, list_runs),
        Tool("uat_show", "One UAT run: steps, problems.", ShowRun, show_run),
        Tool("code_search", "Code by meaning or name; or: outline PATH, related PATH:LINE, symbol NAME.",
             SearchCode, search_code),
        Tool("history", "Past sessions; or: recall, fix ERROR, how test|lint|build.", SearchHistory, search_history),
    )
}  # fmt: skip

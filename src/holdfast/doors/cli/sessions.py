"""`holdfast session …` and `holdfast who`: every session, and which of them needs you."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from holdfast import client
from holdfast.analysis.usage.report import UNTOLD, format_cost_facts, format_count, format_known_cost
from holdfast.core.attention import KINDS
from holdfast.core.ids import session_alias
from holdfast.core.text import escape_invisible, strip_controls
from holdfast.core.times import format_duration, time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json, OfThisProject, Since, since_ms
from holdfast.doors.troubles import current_troubles

app = typer.Typer(help="Look at sessions; close, reopen or export one.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="The id, its beginning, or the 8 characters shown in lists.")]
AnyId = Annotated[
    str,
    typer.Argument(
        help="The id or its beginning. Default: the session of this terminal, else the latest of this project."
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=500)]

STATES = {"working": "green", "waiting": "bold yellow", "idle": "", "ended": "dim"}
NEEDS = {
    **KINDS,
    "interrupted": "was stopped by you",
    "stopped": "has finished its turn",
    "notified": "waits for input",
    "denied": "had its prompt denied",
}


def register(root: typer.Typer) -> None:
    root.command()(who)
    root.command()(statusline)
    root.add_typer(app, name="sessions")


def who(json: Json = False) -> None:
    """Show every live session, those that wait for you first."""
    answer = ask_who()
    render.finish_as_json(json, answer)
    for line in current_troubles():
        render.warn(line)
    show_live_sessions(answer)


def ask_who() -> dict[str, Any]:
    return {**client.ask_view("sessions.who"), "unrecorded": client.ask_view("sessions.unrecorded")}


def show_live_sessions(answer: dict[str, Any]) -> None:
    for line in unrecorded_lines(answer["unrecorded"], answer["now"]):
        render.warn(line)
    if not answer["sessions"]:
        render.out.print("No live sessions. All of them: holdfast session list --all")
        _show_survivors(answer)
        return
    table = render.plain_table("", "session", "project", "state", "since", "what")
    for row in answer["sessions"]:
        mark = Text("●" if row["needs"] else " ", style="yellow")
        table.add_row(mark, *_session_cells(row), _time_since(row, answer["now"]), _session_activity(row))
    render.out.print(table)
    render.hint(_count_line(answer))
    _show_survivors(answer)


def _show_survivors(answer: dict[str, Any]) -> None:
    for one in answer["survivors"]:
        render.warn(f"outlived session {session_alias(one['session'])}: {_survivor_text(one)}")


def unrecorded_lines(found: list[dict[str, Any]], now: int) -> Iterator[str]:
    for one in found:
        program, folder, why = (render.clean_line(one[name], 200) for name in ("program", "cwd", "why"))
        yield f"not recorded: {program} in {folder} (process {one['pid']}, since {time_ago(one['since'], now)}): {why}"


def statusline(
    session: AnyId = "",
    json: Json = False,
) -> None:
    """One line for a status bar: cost, tokens, context, open gates, waiting sessions. Reads the agent's JSON from
    stdin."""
    payload = json_from_stdin() if not session else {}
    shown = answered.view(
        json,        "sessions.statusline", id=session or payload.get("session_id") or "", latest=not payload,
        context=_part_of(payload, "context_window", "used_percentage"), reported=_part_of(payload, "cost", "total_cost_usd"),
    )  # fmt: skip
    print(" · ".join(part for part in (shown["text"], *current_troubles()[:1]) if part))


def json_from_stdin() -> dict[str, Any]:
    """What an agent pipes into its status line; empty for anything else."""
    if sys.stdin.isatty():
        return {}
    try:
        # A pipe may contain anything, so only so many bytes are read.
        payload = msgspec.json.decode(sys.stdin.buffer.read(256 << 10))
    except (msgspec.DecodeError, OSError, ValueError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _part_of(payload: dict[str, Any], *names: str) -> Any:
    value: Any = payload
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@app.command("list")
def list_sessions(
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also those that ended.")] = False,
    here: OfThisProject = False,
    limit: Limit = 50,
    before: Annotated[str, typer.Option("--before", help="The cursor of the previous page.")] = "",
    since: Since = "",
    json: Json = False,
) -> None:
    """List sessions, the latest activity first."""
    at, _, key = before.partition(":")
    cursor = [int(at), key] if at.isdigit() and key else None
    project = client.current_project() if here else ""
    asked = {"all": all_ or bool(since), "project": project, "limit": limit, "before": cursor}
    answer = answered.view(json, "sessions.list", **asked, since=since_ms(since))
    if not answer["sessions"]:
        render.out.print(
            "No sessions yet. Is everything set up? holdfast doctor"
            if all_
            else "No live sessions. Ended ones: holdfast session list --all"
        )
        return
    table = render.plain_table("session", "project", "state", "last", "turns", "tools", "tokens", "cost", "title")
    for row in answer["sessions"]:
        counts = (str(row["turn_n"]), str(row["tools"]), _count_text(row["total_tokens"]))
        table.add_row(
            *_session_cells(row),
            time_ago(row["at"], answer["now"]),
            *counts,
            format_known_cost(row["cost"], row["unpriced"]),
            render.clean_line(row["title"], 60),
        )
    render.out.print(table)
    if answer["next"]:
        words = f"holdfast session list{' --all' if all_ else ''} --before {answer['next'][0]}:{answer['next'][1]}"
        render.hint(f"older: {render.clean_line(words)}")


@app.command()
def show(
    session: AnyId = "",
    turns: Annotated[int, typer.Option("--turns", min=1, max=500, help="How many of its latest turns to show.")] = 10,
    json: Json = False,
) -> None:
    """Show one session: facts, turns and summary."""
    answer = answered.view(json, "sessions.show", id=session, turns=turns)
    for name, value in _session_facts(answer):
        render.out.print(Text(f"{name:<10}", style="dim") + Text(render.clean_line(value, 1000)))
    render.out.print()
    table = render.plain_table("turn", "when", "ended by", "tools", "failed", "tokens", "cost", "prompt")
    for turn in answer["turns"]:
        when, how = render.short_time(turn["at"]), turn["how"] or "open"
        spent = (_count_text(turn["total_tokens"]), format_known_cost(turn["cost"], turn["unpriced"]))
        counts = (str(turn["tools"]), str(turn["failed"]), *spent)
        table.add_row(
            str(turn["n"]), when, how, *counts, render.clean_line(turn["prompt"] or f"({turn['origin']})", 80)
        )
    render.out.print(table)
    render.out.print()
    for line in answer["summary"]["text"].splitlines():
        render.say(render.clean_line(line, 1000))


@app.command()
def timeline(
    session: AnyId = "",
    limit: Limit = 100,
    before: Annotated[int, typer.Option("--before", help="Only what was before this event.")] = 0,
    json: Json = False,
) -> None:
    """Show every prompt and tool call of a session, in order."""
    answer = answered.view(json, "sessions.timeline", id=session, limit=limit, before=before)
    if answer["next"]:
        render.hint(f"earlier: holdfast session timeline --before {answer['next']} …")
    turn = -1
    for entry in answer["entries"]:
        if entry["turn"] != turn:
            turn = entry["turn"]
            render.say(f"turn {turn}" if turn else "before the first prompt", "bold")
        render.out.print(timeline_line(entry))


@app.command()
def close(session: Id, json: Json = False) -> None:
    """Mark a session as ended. (If its agent continues, it is live again.)"""
    _show_change(client.run_command("sessions.close", id=session), "Closed", "It had ended already", json)


@app.command()
def reopen(session: Id, json: Json = False) -> None:
    """Mark a closed session as live again."""
    _show_change(client.run_command("sessions.reopen", id=session), "Open again", "It is live", json)


@app.command()
def recover(
    kind: Annotated[
        str, typer.Argument(help="lost, interrupted, granted, stuck, stale, orphans or pending; else all.")
    ] = "",
    json: Json = False,
) -> None:
    """Run the recovery jobs now instead of within a minute. Safe to repeat."""
    answer = answered.command(json, "sessions.recover", kind=kind)
    for name, sessions in answer.items():
        render.out.print(f"{name:<8} {render.counted(len(sessions), 'session')}")


@app.command()
def export(
    session: AnyId = "",
    format_: Annotated[str, typer.Option("--format", "-f", help="md, jsonl or html.")] = "md",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; else it is printed.")] = None,
    json: Json = False,
) -> None:
    """Export a session as Markdown, JSONL, or one self-contained HTML file."""
    pieces = _export_pieces(session, format_)
    if output:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    elif not json:
        for piece in pieces:
            print(piece, end="")
    if json:
        where = {"path": str(output)} if output else {"text": "".join(pieces)}
        render.json_line({"format": format_, **where})
    elif output:
        render.out.print(f"Written: {output}")


def _export_pieces(session: str, format_: str) -> Any:
    visible = escape_invisible if format_ == "jsonl" else strip_controls
    answer = client.ask_view("sessions.export", id=session, format=format_)
    yield visible(answer["text"])
    while answer["next"]:
        answer = client.ask_view("sessions.export", id=answer["id"], format=format_, after=answer["next"])
        yield visible(answer["text"])


def _show_change(answer: dict[str, Any], done: str, already: str, json: bool) -> None:
    render.finish_as_json(json, answer)
    render.out.print(f"{done if answer['changed'] else already}: {render.clean_line(answer['id'])}")


def _session_cells(row: dict[str, Any]) -> tuple[Text, str, Text]:
    state = row["end"] or "ended" if row["state"] == "ended" else row["state"]
    state += f", {render.counted(len(row['let_through']), 'gate')} let through" if row["let_through"] else ""
    name = Path(row["project"]).name or row["project"]
    return (
        Text(render.clean_line(row["alias"], 12), style="cyan"),
        render.clean_line(name, 24),
        Text(state, style=STATES.get(row["state"], "")),
    )


def _time_since(row: dict[str, Any], now: int) -> str:
    return time_ago(row["needs"]["since"] if row["needs"] else row["since"], now)


def _session_activity(row: dict[str, Any]) -> str:
    if row["needs"]:
        text = render.clean_line(row["needs"]["text"], 80)
        return f"{NEEDS.get(row['needs']['what'], row['needs']['what'])}{': ' + text if text else ''}"
    lanes = f"subagents: {row['lanes_open']}; " if row["lanes_open"] else ""
    return lanes + render.clean_line(row["doing"] or row["prompt"] or row["title"], 80)


def _count_line(answer: dict[str, Any]) -> str:
    live, waiting = len(answer["sessions"]), answer["waiting"]
    return f"{live} live, {waiting} {'waits' if waiting == 1 else 'wait'} for you."


def _session_facts(answer: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [(name, fact(answer)) for name, fact in FACTS]
    return [(name, value) for name, value in facts if value]


def _state_text(answer: dict[str, Any]) -> str:
    ended = f" ({answer['end']})" if answer["end"] else ""
    return f"{answer['state']}{ended}, {time_ago(answer['since'], answer['now'])}"


def _gates_text(answer: dict[str, Any]) -> str:
    let_through = f"its stop was let through with open requirements: {', '.join(answer['let_through'])}"
    opened = f"open: {', '.join(answer['gates'])}" if answer["gates"] else ""
    return "; ".join(filter(None, (opened, let_through if answer["let_through"] else ""))) or "none open"


def _survivor_text(one: dict[str, Any]) -> str:
    ports = f" on port {', '.join(map(str, one['ports']))}" if one["ports"] else ""
    return f"process {one['pid']}{ports}: {render.clean_line(one['command'], 100)}"


def _tokens_text(answer: dict[str, Any]) -> str:
    if answer["tokens"] is None:
        return "–"
    return ", ".join(f"{_count_text(n)} {name.replace('_', ' ')}" for name, n in answer["tokens"].items() if n)


def _cost_text(answer: dict[str, Any]) -> str:
    return format_cost_facts(answer["cost"], answer["reported_cost"], answer["unpriced"])


def timeline_line(entry: dict[str, Any]) -> Text:
    kind = entry["kind"]
    line = Text(f"{entry['seq']:>7}  {render.clock_time(entry['at'])}  ", style="dim")
    if entry["lane"]:
        line.append(f"[{render.clean_line(entry['lane_type'] or entry['lane'], 24)}] ", style="magenta")
    line.append(f"{render.clean_line(entry['label'])}  ", style=render.STYLES.get(kind.partition(".")[0], ""))
    if entry["tool"] and entry["label"] != entry["tool"]:
        line.append(f"{render.clean_line(entry['tool'])}: ")
    line.append(render.clean_line(entry["text"], 120))
    outcome = _call_outcome(entry)
    if outcome:
        line.append(f"  {outcome}", style="red" if entry["outcome"] in ("failed", "denied") else "yellow")
    return line


def _call_outcome(entry: dict[str, Any]) -> str:
    """How a call ended, if it did not simply succeed."""
    if entry["outcome"] == "failed" and entry["exit_code"] is not None:
        return f"failed {entry['exit_code']}"
    if entry["outcome"] == "denied" and entry["reason"]:
        return f"denied: {render.clean_line(entry['reason'], 120)}"
    return "" if entry["outcome"] == "ok" else str(entry["outcome"])


WORK = (
    ("prompts", "prompt", "prompts"), ("tools", "tool call", "tool calls"), ("failed", "failed", "failed"),
    ("denied", "denied", "denied"), ("edits", "edit", "edits"), ("compactions", "compaction", "compactions"),
)  # fmt: skip


def _count_text(n: int | None) -> str:
    return UNTOLD if n is None else format_count(n)


FACTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("session", lambda one: one["id"]),
    ("title", lambda one: one["title"]),
    ("agent", lambda one: f"{one['agent']} {one['model']}".strip()),
    ("project", lambda one: f"{one['project']}{' on ' + one['branch'] if one['branch'] else ''}"),
    ("state", _state_text),
    ("started", lambda one: f"{time_ago(one['started_at'], one['now'])} ({one['origin'] or 'unseen'})"),
    ("process", lambda one: f"{one['process']['name']} {one['process']['pid']}" if one["process"] else "not known"),
    ("left over", lambda one: "; ".join(map(_survivor_text, one["survivors"]))),
    ("work", lambda one: ", ".join(render.counted(one[name], *words) for name, *words in WORK if one[name])),
    ("duration", lambda one: format_duration(one["duration_ms"])),
    ("tokens", _tokens_text),
    ("cost", _cost_text),
    ("gates", lambda one: _gates_text(one)),
    ("pull req.", lambda one: ", ".join(one["pull_requests"])),
    ("subagents", lambda one: str(one["lanes_seen"] or "")),
    ("from", lambda one: f"{one['parent']} ({one['parent_reason']})" if one["parent"] else ""),
    ("to", lambda one: ", ".join(one["children"])),
)
"""What `session show` says first, in this order; empty ones are left out."""

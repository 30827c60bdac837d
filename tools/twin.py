"""Plays transcripts through the hooks, imports them into another state folder, and compares what both say."""

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from holdfast.core.event import Event  # noqa: E402
from holdfast.core.kinds.check_events import CheckFinished  # noqa: E402
from tests.kit import World, wait_until  # noqa: E402

Record = dict[str, Any]
Hook = tuple[str, Record]

IGNORED = frozenset(
    "at began since now started_at ended_at end_at first last seq of upto first_seq last_seq events ms duration_ms idle "
    "process processed hook pid transcript injected recent looked as_of turn_at turn_end turn_first".split()
)
"""Times and numbers of events: a replay takes place now, and derives in a moment what took hours."""
ORIGINS = frozenset("origin source imported reason detail end branch content why_unknown".split())
"""An imported session says so, and only a live one can look at its worktree."""
DEEDS = frozenset(("prompt.submitted", "tool.started", "tool.finished", "tool.failed", "permission.denied"))
UNEQUAL = re.compile(r"\.summary\.text$|\.turns\[\d+\]\.(?:tokens\b|total_tokens|cost)")
"""A text that names the duration; and what turns cost, as records of another day belong to no turn of today."""
WORDS_OF_CLAUDE = ("<", "[Request interrupted", "Caveat:", "This session is being continued")


class Compared(NamedTuple):
    equal: int
    total: int
    differing: list[str]


def claude_hooks(records: list[Record]) -> Iterator[Hook]:
    """As Claude Code fires them."""
    calls: dict[str, Record] = {}
    answer, working = "", False
    yield "SessionStart", {"source": "startup"}
    for record in records:
        parts = _parts(record)
        if record["type"] == "assistant":
            for part in parts:
                if part.get("type") == "text":
                    answer = part["text"]
                elif part.get("type") == "tool_use":
                    calls[part["id"]] = call = {
                        "tool_name": part["name"], "tool_input": part["input"], "tool_use_id": part["id"],
                    }  # fmt: skip
                    yield "PreToolUse", call
            continue
        yield from (_claude_result(record, part, calls) for part in parts if part.get("type") == "tool_result")
        text = "\n".join(part["text"] for part in parts if part.get("type") == "text")
        if not text or record.get("isMeta") or record.get("isCompactSummary") or text.startswith(WORDS_OF_CLAUDE):
            continue
        if working:
            yield "Stop", {"last_assistant_message": answer}
        answer, working = "", True
        yield "UserPromptSubmit", {"prompt": text, "prompt_id": record.get("promptId") or record["uuid"]}
    if working:
        yield "Stop", {"last_assistant_message": answer}
    yield "SessionEnd", {"reason": "other"}


def _parts(record: Record) -> list[Record]:
    content = (record.get("message") or {}).get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _claude_result(record: Record, part: Record, calls: dict[str, Record]) -> Hook:
    call = calls.get(part["tool_use_id"], {"tool_use_id": part["tool_use_id"]})
    text = part.get("content")
    if isinstance(text, list):
        text = "\n".join(str(one.get("text", "")) for one in text)
    if record.get("toolDenialKind"):
        return "PermissionDenied", {**call, "reason": text}
    if part.get("is_error"):
        return "PostToolUseFailure", {**call, "error": text, "is_interrupt": False}
    told = record.get("toolUseResult")
    return "PostToolUse", {**call, "tool_response": told if isinstance(told, dict) else text}


def codex_hooks(records: list[Record]) -> Iterator[Hook]:
    """As Codex fires them."""
    calls: dict[str, Record] = {}
    turn: Record = {}
    yield "SessionStart", {"source": "startup"}
    for kind, payload in ((record["type"], record.get("payload") or {}) for record in records):
        what = payload.get("type")
        item = payload.get("item") or {}
        if what == "task_started" or kind == "turn_context":
            turn = {"turn_id": payload.get("turn_id") or turn.get("turn_id", "")}
            turn |= {"model": payload["model"]} if payload.get("model") else {}
        elif what == "user_message" or item.get("type") == "UserMessage":
            text = payload.get("message") or "\n".join(part.get("text", "") for part in item.get("content", ()))
            yield "UserPromptSubmit", {"prompt": text, **turn}
        elif what in ("function_call", "custom_tool_call"):
            calls[payload["call_id"]] = call = {**turn, **_codex_call(payload)}
            yield "PreToolUse", call
        elif what in ("function_call_output", "custom_tool_call_output"):
            call, output = calls.get(payload["call_id"], {}), payload.get("output")
            if not str(output).startswith("Command blocked by PreToolUse hook"):
                body = str(output).partition("Output:\n")[2] if "Output:\n" in str(output) else output
                yield "PostToolUse", {**call, **turn, "tool_response": body}
        elif what == "task_complete":
            yield "Stop", {"last_assistant_message": payload.get("last_agent_message"), **turn}
        elif what == "turn_aborted":
            yield "Interrupt", turn
    yield "SessionEnd", {"reason": "other"}


def _codex_call(payload: Record) -> Record:
    """Hooks name the shell as Claude Code does."""
    arguments, name = payload.get("arguments") or payload.get("input") or "{}", payload["name"]
    try:
        given = json.loads(arguments)
    except ValueError:
        given = {"command": arguments}
    if name in ("exec_command", "shell", "shell_command"):
        name, given = "Bash", {"command": given.get("cmd") or given.get("command")}
    return {"tool_name": name, "tool_input": given, "tool_use_id": payload["call_id"]}


def read_records(transcript: Path) -> tuple[str, str, str, Iterator[Hook]]:
    """The agent, its session, the folder it worked in, and its hooks."""
    records = [json.loads(line) for line in transcript.read_text().splitlines() if line.strip()]
    if records[0]["type"] == "session_meta":
        meta = records[0]["payload"]
        return "codex", meta.get("session_id") or meta["id"], meta["cwd"], codex_hooks(records)
    messages = [one for one in records if one["type"] in ("user", "assistant") and not one.get("isSidechain")]
    return "claude-code", messages[0]["sessionId"], messages[0]["cwd"], claude_hooks(messages)


def place_transcript(world: World, agent: str, transcript: Path) -> Path:
    name = transcript.name
    if agent == "codex":
        folder = world.home / ".codex" / "sessions"
        name = name if name.startswith("rollout-") else f"rollout-{name}"
    else:
        folder = world.home / ".claude" / "projects" / "-twin"
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(transcript, folder / name))


def views_of(world: World, session: str) -> dict[str, Any]:
    events = world.events(session=session)
    return {
        "session": world.view("sessions.show", id=session),
        "timeline": world.view("sessions.rows", id=session, limit=100_000),
        "checks": Counter(_check_line(event) for event in events if event.kind == "check.finished"),
        "cost": world.view("cost.report", by="session"),
        "history": Counter(
            (event.kind, event.tool, str(event.get("command") or event.get("prompt") or ""))
            for event in events
            if event.kind in DEEDS
        ),
    }  # fmt: skip


def _check_line(event: Event) -> tuple[Any, ...]:
    data: CheckFinished = event.data
    # The folder is no repository on this machine, so a live check names it whole.
    folder = "." if data.dir == event.project else data.dir.removeprefix(f"{event.project}/")
    return data.runner, data.kind, folder, data.verdict, data.passed, data.failed, data.command


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in IGNORED | ORIGINS:
                yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for n, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{n}]")
    elif not UNEQUAL.search(path):
        yield path, value


def compare(live: Any, imported: Any) -> Compared:
    if isinstance(live, Counter):
        return _compare_lists(live, imported)
    one, other = dict(leaves(live)), dict(leaves(imported))
    names = list(one | other)
    differing = [name for name in names if one.get(name) != other.get(name)]
    lines = [f"{name}: live {one.get(name)!r:.90}, imported {other.get(name)!r:.90}" for name in differing]
    return Compared(len(names) - len(differing), len(names), lines)


def _compare_lists(live: Counter[Any], imported: Counter[Any]) -> Compared:
    lines = [*(f"only live: {one}" for one in live - imported), *(f"only imported: {one}" for one in imported - live)]
    return Compared((live & imported).total(), (live | imported).total(), lines)


def compare_twins(transcript: Path, root: Path) -> dict[str, Compared]:
    agent, session, folder, hooks = read_records(transcript)
    live, imported = World(root / "live"), World(root / "imported")
    try:
        live.start()
        common = {
            "session_id": session,
            "cwd": folder,
            "transcript_path": str(place_transcript(live, agent, transcript)),
        }
        for event, fields in hooks:
            live.reply(event, {**common, **fields}, agent=agent)
        wait_until(lambda: _is_settled(live, session), "the live session is summed up")
        imported.start()
        place_transcript(imported, agent, transcript)
        imported.cli("import", agent)
        one, other = views_of(live, session), views_of(imported, session)
        return {name: compare(one[name], other[name]) for name in one}
    finally:
        live.close()
        imported.close()


def _is_settled(world: World, session: str) -> bool:
    kinds = Counter(event.kind for event in world.events(session=session))
    return kinds["session.summarised"] > 0 or (kinds["session.ended"] > 0 and not kinds["prompt.submitted"])


def main(transcripts: list[str]) -> dict[str, list[int]]:
    sums: dict[str, list[int]] = {}
    for name in transcripts:
        with tempfile.TemporaryDirectory() as folder:
            found = compare_twins(Path(name), Path(folder))
        print(name)
        for view, (equal, total, differing) in found.items():
            sums[view] = [sums.get(view, [0, 0])[0] + equal, sums.get(view, [0, 0])[1] + total]
            print(f"  {view:<9} {equal}/{total}")
            for line in differing[:20]:
                print(f"    {line}")
    return sums


if __name__ == "__main__":
    for view, (equal, total) in main(sys.argv[1:]).items():
        print(f"{view:<9} {equal}/{total}  {100 * equal / max(1, total):.1f} %")

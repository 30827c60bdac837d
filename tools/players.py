"""Plays recorded transcripts as the agents fire their hooks: one player per format.

A player writes each record into a transcript of its own, at the time of the replay, before it fires what follows from it: jobs of
the daemon read that file as they would live.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from holdfast.agents.codex.transcript import script_call, shown_result

Record = dict[str, Any]
Hook = tuple[str, Record]

CLAUDE_OWN = (
    "<local-command-", "<bash-", "Caveat:", "<system-reminder>", "<user-prompt-submit-hook>", "<teammate-message", "Stop hook feedback:",
)  # fmt: skip
CLAUDE_INTERRUPTED = "[Request interrupted"
CLAUDE_REJECTED = ("The user doesn't want to", "The agent proposed a plan that was rejected", "User rejected")
CODEX_SHELL = ("exec_command", "shell", "shell_command", "local_shell")
CODEX_REFUSED = "Command blocked by PreToolUse hook"
MESSAGES = ("user", "assistant")


class CannotPlay(Exception):
    """Why a transcript has no hooks to fire."""


class Player(Protocol):
    agent: str
    session: str
    folder: str

    def take(self, record: Record) -> Iterator[Hook]: ...

    def end(self) -> Iterator[Hook]: ...


class Call(NamedTuple):
    fields: Record
    output: str = ""


def record_now(record: Record) -> Record:
    """With the time of the replay, so that the reader of the live transcript finds what just happened."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {**record, "timestamp": now} if "timestamp" in record else record


class ClaudePlayer:
    agent = "claude-code"

    def __init__(self, records: list[Record]) -> None:
        messages = [
            one for one in records if one.get("type") in MESSAGES and one.get("message") and one.get("sessionId")
        ]
        if not messages:
            raise CannotPlay("no message in it")
        if messages[0].get("agentId") or messages[0].get("isSidechain"):
            raise CannotPlay("a subagent's transcript")
        self.session, self.folder = messages[0]["sessionId"], messages[0]["cwd"]
        if any(one["sessionId"] != self.session for one in messages):
            raise CannotPlay("several sessions in one file: a fork or a resumed one")
        self.calls: dict[str, Record] = {}
        self.answer, self.turn = "", ""
        self.working = self.caveat = self.awaited = self.has_failed = False

    def take(self, record: Record) -> Iterator[Hook]:
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
            yield "PreCompact", {"trigger": (record.get("compactMetadata") or {}).get("trigger", "auto")}
        if record.get("type") not in MESSAGES or not record.get("message"):
            return
        self.folder = record.get("cwd") or self.folder
        take = self._assistant if record["type"] == "assistant" else self._user
        for event, fields in take(record):
            turn = {"prompt_id": self.turn} if self.turn else {}
            yield event, {"cwd": self.folder, **turn, **fields}

    def end(self) -> Iterator[Hook]:
        """A result or a prompt at the end means that the agent worked on when it was killed, or the file copied."""
        if not self.awaited:
            yield from self._stop()
        yield "SessionEnd", {"reason": "other"}

    def _assistant(self, record: Record) -> Iterator[Hook]:
        self.awaited = {part.get("type") for part in _parts(record)} != {"text"}
        self.has_failed = bool(record.get("isApiErrorMessage"))
        for part in _parts(record):
            if part.get("type") == "text":
                self.answer = part["text"]
            elif part.get("type") == "tool_use":
                call = {"tool_name": part["name"], "tool_input": part["input"], "tool_use_id": part["id"]}
                self.calls[part["id"]] = call
                yield "PreToolUse", call

    def _user(self, record: Record) -> Iterator[Hook]:
        parts = _parts(record)
        for part in parts:
            if part.get("type") == "tool_result":
                self.awaited = True
                yield from self._result(record, part)
        text = "\n".join(part["text"] for part in parts if part.get("type") == "text")
        after_caveat, self.caveat = self.caveat, bool(record.get("isMeta")) and "local commands" in text
        if text.startswith(CLAUDE_INTERRUPTED):
            self.working = False  # Claude Code fires no hook then.
        elif record.get("isCompactSummary"):
            yield "PostCompact", {"trigger": "auto", "compact_summary": text}
            yield "SessionStart", {"source": "compact"}
        elif _is_prompt(record, text, after_caveat):
            yield from self._prompt(record, text)

    def _prompt(self, record: Record, text: str) -> Iterator[Hook]:
        yield from self._stop()
        self.answer, self.working, self.awaited = "", True, True
        self.turn = record.get("promptId") or record["uuid"]
        yield "UserPromptSubmit", {"prompt": _as_typed(text), "prompt_id": self.turn}

    def _stop(self) -> Iterator[Hook]:
        if self.working and self.has_failed:
            yield "StopFailure", {"error": self.answer, "prompt_id": self.turn}
        elif self.working:
            yield "Stop", {"last_assistant_message": self.answer, "prompt_id": self.turn}
        self.working = False

    def _result(self, record: Record, part: Record) -> Iterator[Hook]:
        call = self.calls.pop(part["tool_use_id"], {"tool_use_id": part["tool_use_id"]})
        text = _text_of(part.get("content"))
        if record.get("toolDenialKind"):
            yield "PermissionDenied", {**call, "reason": text}
        elif not part.get("is_error"):
            told = record.get("toolUseResult")
            yield "PostToolUse", {**call, "tool_response": told if isinstance(told, dict) else text}
        elif not text.startswith(CLAUDE_REJECTED):  # The person said no: no hook.
            yield "PostToolUseFailure", {**call, "error": text, "is_interrupt": False}


def _is_prompt(record: Record, text: str, after_caveat: bool) -> bool:
    """Commands of Claude Code itself (`/compact`, `! ls`) and its notes fire no hook; commands of a skill do."""
    if not text or record.get("isMeta") or text.startswith(CLAUDE_OWN):
        return False
    is_command = text.lstrip().startswith("<command-")
    return not (is_command and (after_caveat or _as_typed(text) in ("/exit", "/quit")))


def _as_typed(text: str) -> str:
    """A slash command comes to the hook as it was typed."""
    name, args = _inside(text, "command-name"), _inside(text, "command-args")
    return f"{name} {args}".strip() if text.lstrip().startswith("<command-") and name else text


def _inside(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def _parts(record: Record) -> list[Record]:
    content = record["message"].get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [part for part in parts if isinstance(part, dict)]


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(one.get("text", "")) if isinstance(one, dict) else str(one) for one in content)
    return str(content or "")


class CodexPlayer:
    agent = "codex"

    def __init__(self, records: list[Record]) -> None:
        meta = next((one["payload"] for one in records if one.get("type") == "session_meta"), None)
        if meta is None:
            raise CannotPlay("no session_meta in it")
        if isinstance(meta.get("source"), dict) or meta.get("session_id", meta["id"]) != meta["id"]:
            raise CannotPlay("a subagent's rollout, which belongs to its parent's session")
        self.session, self.folder = meta["id"], meta["cwd"]
        self.calls: dict[str, Call] = {}
        self.processes: dict[str, str] = {}
        self.is_asked = False
        self.turn: Record = {}

    def take(self, record: Record) -> Iterator[Hook]:
        payload = record.get("payload") or {}
        what, item = payload.get("type"), payload.get("item") or {}
        if what == "task_started" or record["type"] == "turn_context":
            self.is_asked = self.is_asked and what != "task_started"
            self._note_turn(payload)
        elif what == "user_message" or item.get("type") == "UserMessage":
            self.is_asked = True
            text = payload.get("message") or "\n".join(part.get("text", "") for part in item.get("content", ()))
            yield "UserPromptSubmit", {"prompt": text, **self.turn}
        elif what in ("function_call", "custom_tool_call", "local_shell_call") and payload.get("call_id"):
            yield from self._begin(payload)
        elif what in ("function_call_output", "custom_tool_call_output"):
            yield from self._result(payload)
        elif what == "task_complete":
            yield "Stop", {"last_assistant_message": payload.get("last_agent_message"), **self.turn}
        elif what == "turn_aborted":
            yield "Interrupt", self.turn
        elif record["type"] == "compacted":
            yield "PostCompact", {"trigger": "auto" if self.is_asked else "manual", **self.turn}

    def end(self) -> Iterator[Hook]:
        yield "SessionEnd", {"reason": "other"}

    def _note_turn(self, payload: Record) -> None:
        self.turn = {"turn_id": payload.get("turn_id") or self.turn.get("turn_id", "")} | (
            {"model": payload["model"]} if payload.get("model") else {}
        )

    def _begin(self, payload: Record) -> Iterator[Hook]:
        """`write_stdin` has no hook at its start: it goes on with a command that has one."""
        fields = _codex_call(payload)
        self.calls[payload["call_id"]] = Call(fields)
        if fields["tool_name"] != "write_stdin":
            yield "PreToolUse", {**self.turn, **fields}

    def _result(self, payload: Record) -> Iterator[Hook]:
        """A command that runs on has its hook when a later call finds it ended."""
        output = _text_of(payload.get("output"))
        call = self.calls.pop(payload["call_id"], Call({"tool_use_id": payload["call_id"], "tool_name": ""}))
        head, _, body = output.partition("Output:\n")
        running = head.partition("Process running with session ID ")[2].split("\n")[0].strip()
        process = str(call.fields.get("tool_input", {}).get("session_id", ""))
        if call.fields["tool_name"] == "write_stdin":
            began = "" if running else self.processes.pop(process, "")
            if began in self.calls:
                yield "PostToolUse", {**self.turn, **self.calls.pop(began).fields, "tool_response": body or output}
        elif running:
            self.processes[running] = payload["call_id"]
            self.calls[payload["call_id"]] = call
        elif not output.startswith(CODEX_REFUSED):
            told = body if call.fields["tool_name"] == "Bash" and body else payload.get("output")
            if isinstance(told, str) and (shown := shown_result(told)):
                told = shown[1]  # The hook is that of the command, whatever the script prints of it.
            yield "PostToolUse", {**self.turn, **call.fields, "tool_response": told}


def _codex_call(payload: Record) -> Record:
    """Hooks name the shell as Claude Code does."""
    name, script = script_call(payload.get("name") or "shell", payload.get("input"))
    named = {**payload, "input": script}
    arguments = next((named[one] for one in ("arguments", "input", "action") if named.get(one)), "{}")
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        given = {"command": arguments}
    given = given if isinstance(given, dict) else {"command": arguments}
    if name in CODEX_SHELL:
        command = given.get("cmd") or given.get("command")
        name, given = "Bash", {"command": command[-1] if isinstance(command, list) and command else command}
    return {"tool_name": name, "tool_input": given, "tool_use_id": payload["call_id"]}


def load_player(transcript: Path) -> tuple[Player, list[Record]]:
    """The player of a transcript and its records."""
    try:
        records = [json.loads(line) for line in transcript.read_text("utf-8", "replace").splitlines() if line.strip()]
    except ValueError as error:
        raise CannotPlay(f"not one JSON object per line: {error}") from error
    if not records or not all(isinstance(one, dict) for one in records):
        raise CannotPlay("no JSON objects")
    if any(one.get("type") == "session_meta" for one in records[:5]):
        return CodexPlayer(records), records
    if any("sessionId" in one for one in records):
        return ClaudePlayer(records), records
    raise CannotPlay("neither Claude Code's nor Codex's")

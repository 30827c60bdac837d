"""What a session came to, from its events alone: no model, no tokens. The same for a session nobody ended."""

import re
from collections.abc import Iterable
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc, Ref
from holdfast.features.sessions.model import SESSION, TITLE, counted, head, said
from holdfast.handover.summary import SessionEvent, build_summary, session_event

MOST_STEPS = 300
MOST_FILES, MOST_COMMANDS, MOST_TESTS, MOST_COMMITS, MOST_OPEN = 50, 15, 15, 20, 10

_TEST = re.compile(
    r"\b(pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|unittest|behave|playwright test"
    r"|(npm|pnpm|yarn|bun|cargo|go|dotnet|mvn|gradle|gradlew|make|mix|swift|zig build|deno|just)\s+(run\s+)?test\S*)\b"
)
_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_COMMITTED = re.compile(r"^\[(?P<branch>\S+)(?: \([^)]*\))? (?P<sha>[0-9a-f]{7,40})\] (?P<subject>.*)$", re.MULTILINE)


class Summary:
    """Fed with a session's events in order; `result` is bounded whatever came."""

    def __init__(self) -> None:
        self.title = ""
        self.prompts = self.tools = self.failed = self.edits = 0
        self.first = self.last = 0
        self.files: dict[str, int] = {}
        self.commands: dict[str, dict[str, Any]] = {}
        self.commits: list[dict[str, str]] = []
        self.running: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        self.todos: list[str] = []
        self.turn_open = ""
        self.end = ""
        self.course: list[SessionEvent] = []

    def add(self, event: Event) -> None:
        if (step := session_event(event)) is not None:
            self.course.append(step)
            if len(self.course) > 2 * MOST_STEPS:
                # The first prompt stays: it is the goal.
                self.course = [self.course[0], *self.course[-MOST_STEPS:]]
        self.first = self.first or event.at
        self.last = max(self.last, event.at)
        handle = _HANDLERS.get(event.kind)
        if handle:
            handle(self, event)

    def result(self) -> Doc:
        by_edits = sorted(self.files, key=lambda path: -self.files[path])
        tests = [c for c in self.commands.values() if _TEST.search(c["command"])]
        found = {
            "title": self.title,
            "prompts": self.prompts, "tools": self.tools, "failed": self.failed, "edits": self.edits,
            "ms": max(0, self.last - self.first),
            "files": by_edits[:MOST_FILES], "files_seen": len(self.files),
            "commands": list(self.commands.values())[-MOST_COMMANDS:], "commands_seen": len(self.commands),
            "tests": tests[-MOST_TESTS:],
            "commits": self.commits[-MOST_COMMITS:],
            "open": self._left_open()[:MOST_OPEN],
            "end": self.end,
        }  # fmt: skip
        return {**found, "text": as_text(found), "outcome": build_summary(self.course).as_line()}

    def _left_open(self) -> list[str]:
        failing = [c for c in self.commands.values() if c["ok"] is False and _TEST.search(c["command"])]
        return [
            *([f"the last prompt was not finished: {self.turn_open}"] if self.turn_open else []),
            *(f"a tool call did not end: {what}" for what in self.running.values()),
            *(f"a test run failed last: {c['command']}" for c in failing),
            *(f"a task is open: {subject}" for subject in self.tasks.values()),
            *(f"a to-do is open: {todo}" for todo in self.todos),
        ]

    # ── one handler per kind ───────────────────────────────────────────────────────────────────────────────────────

    def _prompt(self, event: Event) -> None:
        prompt = event.get("prompt", "")
        if not prompt or event.get("lane"):
            return
        self.turn_open = head(prompt, 120)
        self.running.clear()
        if not event.get("synthetic"):
            self.prompts += 1
            self.title = self.title or head(prompt, TITLE)

    def _tool_started(self, event: Event) -> None:
        what = head(event.get("command") or next(iter(event.get("paths", ())), ""), 120)
        self.running[event.get("call") or f"#{event.seq}"] = f"{event.tool}: {what}" if what else event.tool

    def _tool_ended(self, event: Event) -> None:
        ok = event.get("ok") is not False
        self.tools += 1
        self.failed += not ok
        self.running.pop(event.get("call", ""), None)
        action = event.get("action")
        if action == "edit" and ok:
            self.edits += 1
            for path in event.get("paths", ()):
                self.files[path] = self.files.get(path, 0) + 1
        elif action == "shell" and event.get("command"):
            self._command(event, ok)
        elif action == "todo":
            self._todos(event)

    def _command(self, event: Event, ok: bool) -> None:
        """The same command again replaces its last outcome: what counts is how it ended."""
        command = head(event.get("command"), 160)
        code = event.get("exit_code")
        times = self.commands.pop(command, {"times": 0})["times"] + 1
        self.commands[command] = {"command": command, "ok": ok, "exit_code": code, "times": times}
        if ok and _COMMIT.search(event.get("command", "")):
            for found in _COMMITTED.finditer(event.get("output", "")):
                self.commits.append({k: head(v, 120) for k, v in found.groupdict().items()})

    def _todos(self, event: Event) -> None:
        todos = (event.get("input") or {}).get("todos")
        if isinstance(todos, list):
            self.todos = [
                head(t.get("content"), 120) for t in todos if isinstance(t, dict) and t.get("status") != "completed"
            ]

    def _decided(self, event: Event) -> None:
        if event.get("verdict") == "deny":
            self.running.pop(event.get("call", ""), None)

    def _turn_over(self, event: Event) -> None:
        if not event.get("lane"):
            self.turn_open = ""
            self.running.clear()

    def _turn_failed(self, event: Event) -> None:
        self.turn_open = self.turn_open or head(event.get("error"), 120)
        self.running.clear()

    def _task(self, event: Event) -> None:
        self.tasks[event.get("task", "")] = head(event.get("subject"), 120)

    def _task_done(self, event: Event) -> None:
        self.tasks.pop(event.get("task", ""), None)

    def _ended(self, event: Event) -> None:
        self.end = {"session.lost": "process-gone", "session.stale": "stale", "session.closed": "closed-by-user"}.get(
            event.kind, head(event.get("reason"), 40) or "exit"
        )


_HANDLERS = {
    "prompt.submitted": Summary._prompt,
    "tool.started": Summary._tool_started,
    "tool.finished": Summary._tool_ended,
    "tool.failed": Summary._tool_ended,
    "decision.made": Summary._decided,
    "turn.ended": Summary._turn_over,
    "turn.interrupted": Summary._turn_over,
    "turn.failed": Summary._turn_failed,
    "task.created": Summary._task,
    "task.completed": Summary._task_done,
    "session.ended": Summary._ended,
    "session.lost": Summary._ended,
    "session.stale": Summary._ended,
    "session.closed": Summary._ended,
}


def of(events: Iterable[Event]) -> Doc:
    summary = Summary()
    for event in events:
        summary.add(event)
    return summary.result()


def as_text(found: Doc) -> str:
    """A few lines a person or an agent reads in a second."""
    work = [counted(found["prompts"], "prompt"), counted(found["tools"], "tool call")]
    work += [f"{found['failed']} failed"] if found["failed"] else []
    work += [f"{counted(found['files_seen'], 'file')} edited", minutes(found["ms"])]
    lines = [f"{found['title'] or 'no prompt'}: {', '.join(work)}."]
    for name, values in (
        ("files", [_file_name(path) for path in found["files"][:8]]),
        ("tests", [f"{c['command']} {_outcome(c)}" for c in found["tests"][-5:]]),
        ("commits", [f"{c['sha']} {c['subject']}" for c in found["commits"][-5:]]),
        ("left open", found["open"][:5]),
    ):
        if values:
            lines.append(f"{name}: {'; '.join(values)}")
    return "\n".join(lines)


def minutes(ms: int) -> str:
    return f"{ms // 1000} s" if ms < 120_000 else f"{ms // 60_000} min"


def _file_name(path: str) -> str:
    return path.rpartition("/")[2] or path


def _outcome(command: Doc) -> str:
    if command["ok"] is not False:
        return "passed"
    return f"failed ({command['exit_code']})" if command["exit_code"] is not None else "failed"


def summarise(call: JobCall) -> list[Event]:
    """Once per end: a session that went on and ended again gets a new one."""
    doc = call.reader.state(Ref(SESSION, str(call.job.payload["session"])))
    if not doc or doc["status"] != "completed" or not (doc["prompts"] or doc["tools"]):
        return []
    if doc["summarised"] >= doc["seq"]:
        return []
    found = of(call.reader.replay(session=doc["id"]))
    return [said(doc, "session.summarised", call.now, f"{doc['seq']}.{doc['restarts']}", of=doc["seq"], **found)]

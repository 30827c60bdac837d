"""Summarises a session from its events alone, without a model."""

import re
from collections.abc import Callable, Iterable

import msgspec

from holdfast.analysis.handover.session_history import SessionHistory
from holdfast.core.checks import CheckKind, Selection, Verdict
from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds import SESSION_ENDS, ToolEndPayload, agent_events
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.session_events import CommandRun, CommitMade, SessionSummarised, ToolExitRead
from holdfast.core.ports import Reader
from holdfast.core.times import format_duration
from holdfast.features.sessions.state.call_text import about_call
from holdfast.features.sessions.state.documents import COMPLETED, SESSION, SUMMARY, Session, one_line, session_event
from holdfast.features.sessions.state.lifecycle import is_synthetic, is_within_turn, prompt_text
from holdfast.features.sessions.views.figures import Figures, figures_of, format_counted, format_work
from holdfast.features.sessions.views.timeline import CallPairing

MAX_STEPS = 300
# Entries of each list in a summary.
MAX_FILES, MAX_COMMANDS, MAX_TESTS, MAX_COMMITS, MAX_OPEN = 50, 15, 15, 20, 10
LINE, LONGEST_SHOWN = 120, 80

# `git … commit` within one command of a pipeline or chain.
_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
# What git prints: [branch (root-commit) 1a2b3c4] subject.
_COMMITTED = re.compile(r"^\[(?P<branch>\S+)(?: \([^)]*\))? (?P<sha>[0-9a-f]{7,64})\] (?P<subject>.*)$", re.MULTILINE)


class SummaryBuilder:
    """Takes a session's events in order; the result is bounded."""

    def __init__(self) -> None:
        self.title = ""
        self.files: dict[str, int] = {}
        self.commands: dict[str, CommandRun] = {}
        self._last_runs: dict[str, int] = {}
        """The event of the last end of each."""
        self.tests: dict[tuple[str, ...], CommandRun] = {}
        self._unknown_tests: dict[int, tuple[tuple[str, ...], CommandRun | None]] = {}
        """By the command's event: which run could not be judged yet, and the one before it."""
        self.commits: list[CommitMade] = []
        self.calls = CallPairing()
        self.tasks: dict[str, str] = {}
        self.todos: list[str] = []
        self.open_prompt = self._last_prompt = ""
        self.end = ""
        self.course = SessionHistory(MAX_STEPS)

    def add(self, event: Event) -> None:
        self.course.add(event)
        if event.kind not in SESSION_ENDS:  # What runs when a session ends is left open by it.
            self.calls.add(event)
        handle = _HANDLERS.get(event.kind)
        if handle:
            handle(self, event)

    def result(self, figures: Figures) -> SessionSummarised:
        by_edits = sorted(self.files, key=lambda path: -self.files[path])
        course = self.course.summary()
        summary = SessionSummarised(
            title=self.title,
            files=by_edits[:MAX_FILES],
            files_seen=len(self.files),
            commands=list(self.commands.values())[-MAX_COMMANDS:],
            commands_seen=len(self.commands),
            tests=list(self.tests.values())[-MAX_TESTS:],
            commits=self.commits[-MAX_COMMITS:],
            open=[*_let_through(figures), *self._left_open(course.refused)][:MAX_OPEN],
            end=self.end,
            outcome=course.as_line(),
        )
        return with_figures(summary, figures)

    def _left_open(self, refused: Iterable[str]) -> list[str]:
        failing = [run for run in self.tests.values() if run.verdict == Verdict.FAILED]
        return [
            *([f"the last prompt was not finished: {self.open_prompt}"] if self.open_prompt else []),
            *(f"a tool call did not end: {_describe_call(start)}" for start in self.calls.open.values()),
            *(f"a test run failed last: {run.command}" for run in failing),
            *(f"refused by a gate and not done since: {act}" for act in refused),
            *(f"a task is open: {subject}" for subject in self.tasks.values()),
            *(f"a to-do is open: {todo}" for todo in self.todos),
        ]

    # ── one handler per kind ───────────────────────────────────────────────────────────────────────────────────────

    def _prompt_submitted(self, event: Event) -> None:
        data: agent_events.PromptSubmitted = event.data
        prompt = prompt_text(data)
        # A prompt of a program opens nothing while a prompt of the user is open.
        if not prompt or data.lane or is_within_turn(data) or (is_synthetic(data) and self.open_prompt):
            return
        self.open_prompt = self._last_prompt = one_line(prompt, LINE)
        if not is_synthetic(data):
            self.title = self.title or one_line(prompt, 80)

    def _titled(self, event: Event) -> None:
        data: agent_events.SessionTitled = event.data
        self.title = one_line(data.title, 80) or self.title

    def _tool_ended(self, event: Event) -> None:
        data: ToolEndPayload = event.data
        ok = data.ok is not False
        if data.action == "edit" and ok:
            for path in data.paths:
                self.files[path] = self.files.get(path, 0) + 1
        elif data.action == "shell" and data.command:
            self._add_command(data, ok, event.seq)
        elif data.action == "todo":
            self._read_todos(data)

    def _add_command(self, data: ToolEndPayload, ok: bool, seq: int) -> None:
        """The same command again replaces its last outcome: what counts is how it ended."""
        command = one_line(data.command, 160)
        # Put in again at the end: the latest commands are kept.
        earlier = self.commands.pop(command, None)
        times = (earlier.times if earlier else 0) + 1
        self.commands[command] = CommandRun(command=command, ok=ok, exit_code=data.exit_code, times=times)
        self._last_runs[command] = seq
        if ok and _COMMIT.search(data.command):
            for match in _COMMITTED.finditer(data.output):
                self.commits.append(CommitMade(**{k: one_line(v, LINE) for k, v in match.groupdict().items()}))

    def _exit_read(self, event: Event) -> None:
        """Some hooks do not report how a command ended; the agent's own file did, a moment later."""
        data: ToolExitRead = event.data
        self._forget_unknown_test(data.of)
        command = one_line(data.command, 160)
        if command in self.commands and self._last_runs.get(command) == data.of:
            run = self.commands[command]
            self.commands[command] = msgspec.structs.replace(run, ok=data.ok is not False, exit_code=data.exit_code)

    def _forget_unknown_test(self, of: int) -> None:
        """It is judged again, now that its exit status is known."""
        if of in self._unknown_tests:
            key, earlier = self._unknown_tests.pop(of)
            self.tests.pop(key, None)
            self.tests |= {key: earlier} if earlier else {}

    def _check_finished(self, event: Event) -> None:
        """The latest run of each suite and part; a passed run of the whole suite replaces those of its parts."""
        check: CheckFinished = event.data
        if check.kind != CheckKind.TEST:
            return
        # Where the suite is; with what it was asked to run it names one part.
        suite = (check.worktree, check.dir, check.runner)
        key = (*suite, *check.operands)
        if check.verdict == Verdict.PASSED and check.selection == Selection.ALL:
            self.tests = {
                test_key: run for test_key, run in self.tests.items() if test_key[:3] != suite or test_key == key
            }
        earlier = self.tests.pop(key, None)
        if earlier and earlier.verdict == Verdict.FAILED and check.verdict == Verdict.DID_NOT_RUN:
            self.tests[key] = earlier  # `pytest --version` says nothing of what failed.
            return
        self._unknown_tests |= {check.of: (key, earlier)} if check.verdict == Verdict.UNKNOWN else {}
        self.tests[key] = _test_run(check, earlier)

    def _read_todos(self, data: ToolEndPayload) -> None:
        todos = data.input.get("todos")
        if isinstance(todos, list):
            listed = [todo for todo in todos if isinstance(todo, dict) and todo.get("status") != "completed"]
            self.todos = [one_line(todo.get("content"), LINE) for todo in listed]

    def _turn_over(self, event: Event) -> None:
        if not event.get("lane"):
            self.open_prompt = ""

    def _turn_failed(self, event: Event) -> None:
        # A turn that failed leaves its prompt open.
        self.open_prompt = self.open_prompt or one_line(event.data.error, LINE)

    def _decision_made(self, event: Event) -> None:
        data: DecisionMade = event.data
        if data.verdict == "deny" and data.of_kind == "turn.ended" and not data.lane:
            self.open_prompt = self._last_prompt  # A refused stop: it is worked on again.

    def _task_created(self, event: Event) -> None:
        self.tasks[event.data.task] = one_line(event.data.subject, LINE)

    def _task_completed(self, event: Event) -> None:
        self.tasks.pop(event.data.task, None)

    def _session_ended(self, event: Event) -> None:
        self.end = _ENDS.get(event.kind) or one_line(event.get("reason"), 40) or "exit"


_ENDS = {
    "session.lost": "process-gone", "session.stale": "stale", "session.closed": "closed-by-user", "session.left": "clear",
}  # fmt: skip
_HANDLERS: dict[str, Callable[[SummaryBuilder, Event], None]] = {
    "prompt.submitted": SummaryBuilder._prompt_submitted,
    "session.titled": SummaryBuilder._titled,
    "tool.finished": SummaryBuilder._tool_ended,
    "tool.failed": SummaryBuilder._tool_ended,
    "tool.exit_read": SummaryBuilder._exit_read,
    "turn.ended": SummaryBuilder._turn_over,
    "turn.interrupted": SummaryBuilder._turn_over,
    "turn.escaped": SummaryBuilder._turn_over,
    "turn.failed": SummaryBuilder._turn_failed,
    "decision.made": SummaryBuilder._decision_made,
    CheckFinished.KIND: SummaryBuilder._check_finished,
    "task.created": SummaryBuilder._task_created,
    "task.completed": SummaryBuilder._task_completed,
    "session.ended": SummaryBuilder._session_ended,
    **dict.fromkeys(_ENDS, SummaryBuilder._session_ended),
}


def summarise_events(events: Iterable[Event], figures: Figures) -> SessionSummarised:
    builder = SummaryBuilder()
    for event in events:
        builder.add(event)
    return builder.result(figures)


def with_figures(summary: SessionSummarised, figures: Figures) -> SessionSummarised:
    """The same figures as everywhere, also in the text."""
    counted = msgspec.structs.replace(
        summary, prompts=figures.prompts, tools=figures.calls, failed=figures.failed, denied=figures.denied,
        edits=figures.edits, ms=figures.duration_ms,
    )  # fmt: skip
    counted.text = as_text(counted, figures)
    return counted


def as_text(summary: SessionSummarised, figures: Figures) -> str:
    """A few lines a person or an agent reads in a second."""
    files = f"{format_counted(summary.files_seen, 'file')} edited"
    work = ", ".join((format_work(figures), files, format_duration(figures.duration_ms)))
    # A title may be a sentence.
    lines = [f"{summary.title.rstrip('.:') or 'no prompt'}: {work}."]
    for name, values in (
        ("files", [_file_name(path) for path in summary.files[:8]]),
        ("tests", [f"{run.command} {_run_outcome(run)}" for run in summary.tests[-5:]]),
        ("commits", [f"{commit.sha} {commit.subject}" for commit in summary.commits[-5:]]),
        ("left open", summary.open[:5]),
    ):
        if values:
            lines.append(f"{name}: {'; '.join(values)}")
    return "\n".join(lines)


def _describe_call(start: Event) -> str:
    about = one_line(about_call(start), LINE)
    return f"{start.tool}: {about}" if about else start.tool


def _file_name(path: str) -> str:
    return path.rpartition("/")[2] or path


def _let_through(figures: Figures) -> list[str]:
    """First of all: the answer of such a stop is a claim that was refused."""
    names = ", ".join(figures.let_through)
    return [one_line(f"its stop was let through with open requirements: {names}", LINE)] if names else []


def _test_run(check: CheckFinished, earlier: CommandRun | None) -> CommandRun:
    counted = ((check.passed, "passed"), (check.failed, "failed"), (check.skipped, "skipped"))
    return CommandRun(
        command=_name_of_run(check),
        ok={Verdict.PASSED.value: True, Verdict.FAILED.value: False}.get(check.verdict),
        times=(earlier.times if earlier else 0) + 1,
        verdict=check.verdict,
        counts=", ".join(f"{number} {word}" for number, word in counted if number),
    )


def _name_of_run(check: CheckFinished) -> str:
    """The command, or the runner with what it ran where the command did more than fits in a line."""
    if len(check.command) <= LONGEST_SHOWN and "\n" not in check.command:
        return one_line(check.command, LONGEST_SHOWN)
    folder = "" if check.dir in ("", ".") else f" in {check.dir}"
    return one_line(f"{' '.join((check.runner, *check.operands))}{folder}", 160)


def _run_outcome(run: CommandRun) -> str:
    """In older logs a run has no verdict: then nothing is said of how it ended."""
    label = {Verdict.DID_NOT_RUN.value: "did not run", Verdict.UNKNOWN.value: "result unknown"}.get(
        run.verdict, run.verdict
    )
    return f"{label} ({run.counts})" if run.counts else label


def summary_of(session: Session, reader: Reader, figures: Figures) -> SessionSummarised:
    """The summary made at the end, if nothing happened since; else a new one. Its figures are those of now."""
    made = SUMMARY.load(reader, session.id)
    if made and made.of >= session.seq and made.text:
        return with_figures(made, figures)
    return summarise_events(reader.replay(session=session.id), figures)


def summarise_session(call: JobCall) -> list[Event]:
    """Once per end: a session that went on and ended again gets a new one."""
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    # A session that was opened and closed has nothing to sum up.
    if not session or session.status != COMPLETED or not (session.prompts or session.tools):
        return []
    if session.summarised >= session.seq:
        return []
    figures = figures_of(session, call.reader, call.now, call.settings(session.project))
    summary = summarise_events(call.reader.replay(session=session.id), figures)
    summary.of = session.seq
    return [session_event(session, summary, call.now, f"{session.seq}.{session.restarts}")]

"""Turns events of the log into the steps that a session's summary is made of."""

import msgspec

from holdfast.analysis.handover.summary import SessionEvent, Summary, build_summary
from holdfast.core.checks import Verdict
from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload, ToolPayload
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.session_events import ToolExitRead

# Steps kept, and characters of a text.
MOST_STEPS, LONGEST_EVENT = 2_000, 4_000
# Calls whose decision may still come, which it does at once.
MOST_BEGUN = 20


class SessionHistory:
    """Fed with a session's events in order. A very long session keeps its first prompt, which is the goal, and its
    last steps."""

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        self.steps: list[SessionEvent] = []
        self._most_steps = most_steps
        self._begun: dict[int, Event] = {}

    def add(self, event: Event) -> None:
        if event.kind == "tool.started":
            self._begun = {**dict(list(self._begun.items())[1 - MOST_BEGUN :]), event.seq: event}
            return
        if isinstance(event.data, ToolExitRead):
            self._note_exit(event.data)
            return
        step = self._refused_step(event.data) if isinstance(event.data, DecisionMade) else step_of(event)
        if step is not None:
            self.steps.append(step)
            # Cut at twice the size, so that the list is not copied with every event.
            if len(self.steps) > 2 * self._most_steps:
                self.steps = [self.steps[0], *self.steps[-self._most_steps :]]

    def _note_exit(self, read: ToolExitRead) -> None:
        """The hook said only that the command ran."""
        for n in range(len(self.steps) - 1, max(-1, len(self.steps) - MOST_BEGUN - 1), -1):
            if self.steps[n].kind == "command" and self.steps[n].of == read.of:
                self.steps[n] = msgspec.structs.replace(self.steps[n], exit=read.exit_code)

    def _refused_step(self, decision: DecisionMade) -> SessionEvent | None:
        """Only what waits for a requirement is still to be done; what a rule forbids is not."""
        begun = self._begun.get(decision.of)
        waits = any(detail.get("gate") == "refused" for detail in decision.details)
        if decision.verdict != "deny" or not waits or begun is None or begun.get("lane"):
            return None
        call: ToolPayload = begun.data
        path = next(iter(call.paths), "") if call.action == "edit" else ""
        return SessionEvent("refused", command=call.command[:300], path=path[:300]) if call.command or path else None

    def summary(self) -> Summary:
        return build_summary(self.steps)


def step_of(event: Event) -> SessionEvent | None:
    """One event as a step of the summary. Commands that are checks count by their verdicts."""
    if event.get("lane"):
        return None
    if event.kind == "prompt.submitted" and not event.get("synthetic"):
        return SessionEvent("prompt", text=str(event.get("prompt") or "")[:LONGEST_EVENT])
    if event.kind in ("turn.ended", "turn.answer_read"):
        return SessionEvent("answer", text=str(event.get("message") or "")[:LONGEST_EVENT])
    if event.kind == "turn.interrupted":
        return SessionEvent("note", text="interrupted")
    if isinstance(event.data, CheckFinished):
        return _check_event(event.data)
    if event.kind in ("tool.finished", "tool.failed"):
        return _tool_event(event)
    return None


def _check_event(check: CheckFinished) -> SessionEvent:
    counted = ((check.failed, "failed"), (check.passed, "passed"), (check.skipped, "skipped"))
    counts = ", ".join(f"{number} {word}" for number, word in counted if number)
    names = "\n".join(f"FAILED {name}" for name in check.failures[:5])
    # Neither passed nor failed has no exit: `command_runs` leaves it out.
    code = {Verdict.PASSED.value: 0, Verdict.FAILED.value: 1}.get(check.verdict)
    return SessionEvent(
        "check", command=check.command[:300], exit=code, output=f"{counts}\n{names}".strip(), of=check.of
    )


def _is_judged(event: Event) -> bool:
    judgement = event.data.judgement if isinstance(event.data, ToolEndPayload) else None
    return judgement is not None and bool(judgement.checks)


def _tool_event(event: Event) -> SessionEvent | None:
    """A command without an exit code counts by whether the agent's tool reported failure."""
    if event.get("action") == "edit" and event.kind == "tool.finished":
        return SessionEvent("edit", path=str(next(iter(event.get("paths") or ()), ""))[:300])
    # The checks of a judged command follow as events of their own.
    if event.get("action") != "shell" or not event.get("command") or _is_judged(event):
        return None
    failed = event.kind == "tool.failed" or event.get("ok") is False
    exit_code = event.get("exit_code")
    code = exit_code if isinstance(exit_code, int) else int(failed)
    # The end of an output: results come last.
    output = str(event.get("error") or event.get("output") or "")[-LONGEST_EVENT:]
    return SessionEvent("command", command=str(event.get("command"))[:300], exit=code, output=output, of=event.seq)

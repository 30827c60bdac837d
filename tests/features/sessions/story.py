"""Builders for these tests: a story is a list of events as agents tell them; a house keeps them in a real store."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.job import ClaimedJob
from holdfast.core.kinds import HOOK_KINDS
from holdfast.core.ports import Doc, Ref
from holdfast.core.replay import fold_events
from holdfast.features import cost
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.settings import SessionsSettings
from holdfast.features.sessions.state.documents import SESSION
from tests.factories import NOON, a_key
from tests.harness import PROJECT, FeatureHarness

SECOND = 1000


class Story:
    """Events in order, a second apart unless told otherwise. `doc` is what the log says of a session."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = NOON

    def tell(self, kind: str, /, *, after: int = SECOND, session: str = "s-1", tool: str = "", **data: Any) -> "Story":
        self.now += after
        self.events.append(an(kind, at=self.now, session=session, tool=tool, seq=len(self.events) + 1, **data))
        return self

    def start(self, source: str = "startup", **kw: Any) -> "Story":
        return self.tell("session.started", source=source, **kw)

    def prompt(self, text: str = "Fix it", **kw: Any) -> "Story":
        return self.tell("prompt.submitted", prompt=text, **kw)

    def tool(self, call: str = "c1", tool: str = "Bash", *, ok: bool = True, **kw: Any) -> "Story":
        given = {"tool": tool, "call": call, "action": "shell", "command": f"run {call}", **kw}
        return self.tell("tool.started", **given).tell("tool.finished" if ok else "tool.failed", ok=ok, **given)

    def stop(self, message: str = "Done.", **kw: Any) -> "Story":
        return self.tell("turn.ended", message=message, **kw)

    def end(self, reason: str = "prompt_input_exit", **kw: Any) -> "Story":
        return self.tell("session.ended", reason=reason, **kw)

    def doc(self, session: str = "s-1") -> Doc:
        return self.docs()[SESSION.ref(session)]

    def docs(self) -> dict[Ref, Doc]:
        """As plain data."""
        return {ref: msgspec.to_builtins(doc) for ref, doc in fold_events(FEATURE, self.events).items()}


def an(kind: str, /, *, at: int = NOON, session: str = "s-1", tool: str = "", seq: int = 0, **data: Any) -> Event:
    agent = "claude-code" if kind in HOOK_KINDS else ""
    return Event(
        key=a_key(), kind=kind, at=at, session=session, project=PROJECT, agent=agent, tool=tool, data=data, seq=seq
    )


class House(FeatureHarness):
    """The feature on a real store, with what it costs beside it."""

    feature, features, settings_type = FEATURE, (FEATURE, cost.FEATURE), SessionsSettings

    def take(self, events: Story | Iterable[Event]) -> None:
        super().take(events.events if isinstance(events, Story) else events)

    def hook(self, kind: str, **data: Any) -> None:
        self.take([an(kind, at=self.clock.tick(SECOND), **data)])

    def doc(self, session: str = "s-1") -> Doc:
        found = self.reader.state(SESSION.ref(session))
        assert found is not None, session
        return found

    def run(self, kind: str, **payload: Any) -> list[Event]:
        """One job, as the worker runs it: its events are what it found."""
        job = ClaimedJob(id=1, kind=kind, dedupe="", attempts=1, payload=payload)
        found = list(FEATURE.jobs[kind](self.job_call(job)))
        self.take(found)
        return found

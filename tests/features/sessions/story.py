"""Builders for these tests: a story is a list of events as agents tell them; a house keeps them in a real store."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import Call, JobCall
from holdfast.core.job import ClaimedJob
from holdfast.core.kinds import HOOK_KINDS
from holdfast.core.ports import Doc, Ref
from holdfast.core.replay import Rebuild, fold_events
from holdfast.features import cost
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.settings import SessionsSettings
from holdfast.features.sessions.state.documents import SESSION
from holdfast.stores import open_store
from tests.factories import NOON, AClock, a_key, an_engine

SECOND = 1000
PROJECT = "/home/ada/engine"


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


class House:
    """The feature on a real SQLite store. Its jobs run when they are told to."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.store = open_store(f"sqlite:///{folder / 'holdfast.db'}")
        self.clock = AClock()
        self.settings = SessionsSettings.of(settings)
        self.engine = an_engine(
            self.store, FEATURE, cost.FEATURE, clock=self.clock, settings=lambda _project: {"sessions": self.settings}
        )
        self.reader = self.store.reader()
        self._folder = folder

    def take(self, events: Story | Iterable[Event]) -> None:
        self.engine.handle(list(events.events if isinstance(events, Story) else events))

    def hook(self, kind: str, **data: Any) -> None:
        self.take([an(kind, at=self.clock.tick(SECOND), **data)])

    def doc(self, session: str = "s-1") -> Doc:
        found = self.reader.state(SESSION.ref(session))
        assert found is not None, session
        return found

    def run(self, kind: str, **payload: Any) -> list[Event]:
        """One job, as the worker runs it: its events are what it found."""
        job = ClaimedJob(id=1, kind=kind, dedupe="", attempts=1, payload=payload)
        call = JobCall(
            job=job, reader=self.reader, settings=lambda _project: self.settings, now=self.clock(),
            state_dir=self._folder, cancelled=lambda: False, run=_no_program, put=_no_program,
        )  # fmt: skip
        found = list(FEATURE.jobs[kind](call))
        self.take(found)
        return found

    def waiting(self) -> list[str]:
        return [job["kind"] for job in self.reader.jobs()]

    def call(self, session: str = "", **args: Any) -> Call:
        return Call(
            args=args, reader=self.reader, settings=self.settings, now=self.clock(), session=session, project=PROJECT
        )

    def view(self, name: str, **args: Any) -> Any:
        return FEATURE.views[name](self.call(**args))

    def command(self, name: str, **args: Any) -> Any:
        ask = FEATURE.commands[name](self.call(**args))
        self.take(ask.events)
        return ask.answer(self.reader) if callable(ask.answer) else ask.answer

    def replayed(self) -> list[str]:
        """What differs between the documents and the log: nothing, ever (P5)."""
        rebuild = Rebuild([FEATURE, cost.FEATURE], self.reader)
        rebuild.read()
        return rebuild.differences()

    def close(self) -> None:
        self.reader.close()
        self.store.close()


def _no_program(argv: Any, **_: Mapping[str, Any]) -> Any:
    raise AssertionError(f"this feature runs no program and writes no file: {argv}")

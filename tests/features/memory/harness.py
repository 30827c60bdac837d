"""The memory feature on a real SQLite store, told what agents tell; its views and commands as the daemon calls them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.core.feature import Call, JobCall
from holdfast.core.job import ClaimedJob
from holdfast.core.kinds import HOOK_KINDS
from holdfast.core.ports import Doc, Ref
from holdfast.core.replay import Rebuild
from holdfast.core.state import FeatureState, HotDocuments, WorkingSet
from holdfast.daemon.files import put_file
from holdfast.features.memory import FEATURE, catalogue, jobs, policy
from holdfast.features.memory.catalogue import open_catalogue
from holdfast.features.memory.settings import MemorySettings
from holdfast.features.sessions import FEATURE as SESSIONS
from holdfast.stores import open_store
from tests.factories import AClock, a_key, an_engine

SECOND = 1000
PROJECT = "/home/ada/engine"
SESSION_DOCUMENTS = replace(SESSIONS, enqueue=None, jobs={})
"""What the sessions feature knows is quoted by memory; its jobs are not run here."""


class MemoryHarness:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.store = open_store(f"sqlite:///{folder / 'holdfast.db'}")
        self.clock = AClock()
        self.settings = MemorySettings.of(settings)
        self.engine = an_engine(
            self.store, SESSION_DOCUMENTS, FEATURE, clock=self.clock, settings=lambda _p: {"memory": self.settings}
        )
        self.reader = self.store.reader()
        self._folder = folder
        self._calls = 0

    # ── as an agent ────────────────────────────────────────────────────────────────────────────────────────────────

    def hook(self, kind: str, *, session: str = "s-1", project: str = PROJECT, tool: str = "", **data: Any) -> Event:
        agent = "claude-code" if kind in HOOK_KINDS or kind == "decision.made" else ""
        at = self.clock.tick(SECOND)
        about = {"session": session, "project": project, "agent": agent, "tool": tool}
        event = Event(key=a_key(), kind=kind, at=at, data=data, **about)
        self.engine.handle([event])
        return event

    def ask(self, kind: str, *, session: str = "s-1", project: str = PROJECT, **data: Any) -> list[str]:
        """Told, and what the agent is told back. The marks are set as the engine sets them."""
        event = self.hook(kind, session=session, project=project, **data)
        decision = FEATURE.decide(self.state(), event, self.settings) if FEATURE.decide else None
        checked = [now for c in decision.contexts if (now := c.checked(os.path.lexists))] if decision else []
        contexts = [{"source": c.source, "text": c.text, "tokens": 0} for c in checked]
        if contexts:
            made = {"contexts": contexts, "of_kind": kind, "verdict": "none"}
            self.hook("decision.made", session=session, project=project, **made)
        return [f"{c['source']}\n{c['text']}" for c in contexts]

    def prompt(self, text: str, **kw: Any) -> list[str]:
        return self.ask("prompt.submitted", prompt=text, **kw)

    def ran(self, command: str, *, ok: bool = True, output: str = "", **kw: Any) -> None:
        self._calls += 1
        data = {"call": f"c{self._calls}", "action": "shell", "command": command, "ok": ok, **kw}
        data |= {"output": output} if ok else {"error": output}
        self.hook("tool.finished" if ok else "tool.failed", tool="Bash", **data)

    def edited(self, *paths: str, **kw: Any) -> None:
        self._calls += 1
        self.hook("tool.finished", tool="Edit", call=f"c{self._calls}", action="edit", paths=list(paths), ok=True, **kw)

    def stop(self, message: str = "Done.", **kw: Any) -> None:
        self.hook("turn.ended", message=message, **kw)

    def turn(self, prompt: str, message: str = "Done.", **kw: Any) -> None:
        self.prompt(prompt, **kw)
        self.stop(message, **kw)

    # ── as a person ────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, session: str = "", project: str = PROJECT, **args: Any) -> Call:
        return Call(
            args=args, reader=self.reader, settings=self.settings, now=self.clock.tick(SECOND), session=session,
            project=project, state_dir=self._folder,
        )  # fmt: skip

    def view(self, name: str, **args: Any) -> Any:
        return FEATURE.views[name](self.call(**args))

    def command(self, name: str, **args: Any) -> Any:
        ask = FEATURE.commands[name](self.call(**args))
        self.engine.handle(list(ask.events))
        return ask.answer(self.reader) if callable(ask.answer) else ask.answer

    # ── as the daemon's worker ─────────────────────────────────────────────────────────────────────────────────────────

    def work(self, run: Any = None, *, cut_off: bool = False) -> int:
        """Every job that is due, with its events and its end in one transaction; `cut_off` loses what it did."""
        done = 0
        while claimed := self._claimed():
            events = list(FEATURE.jobs[claimed.kind](self._job_call(claimed, run)))
            if not cut_off:
                self.engine.handle(events, also=lambda store, job=claimed.id: store.finish(job, "w"))
            done += 1
        return done

    def _claimed(self) -> ClaimedJob | None:
        with self.store.transaction():
            found = self.store.claim("w", self.clock(), 1000, 1, tuple(FEATURE.jobs))
        return found[0] if found else None

    def _job_call(self, job: ClaimedJob, run: Any) -> JobCall:
        return JobCall(
            job=job, reader=self.reader, settings=lambda _p: self.settings, now=self.clock(), state_dir=self._folder,
            cancelled=lambda: False, run=run, put=put_file,
        )  # fmt: skip

    def keep_index(self, *, always: bool = True) -> Path:
        """As the daemon's schedule has it done; `always`: however little there is."""
        job = ClaimedJob(id=0, kind=policy.KEEP_INDEX, dedupe="", attempts=1, payload={})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "WORTH", 0 if always else jobs.WORTH)
            self.engine.handle(list(FEATURE.jobs[policy.KEEP_INDEX](self._job_call(job, None))))
        return catalogue.index_path(self._folder)

    def restarted(self) -> None:
        """What lives in the daemon's memory is gone."""
        open_catalogue.cache_clear()

    # ── what there is ──────────────────────────────────────────────────────────────────────────────────────────────

    def memories(self, type_: str = "", status: str = "active") -> list[Doc]:
        found = self.view("listed", status=status, limit=100)["observations"]
        return [doc for doc in found if not type_ or doc["type"] == type_]

    def doc(self, ref: Ref) -> Any:
        """The typed document."""
        raw = self.reader.document(ref)
        return None if raw is None else self.engine.document_types[ref.kind].decode(raw)

    def state(self) -> FeatureState:
        return FeatureState(WorkingSet(self.store, HotDocuments(), self.engine.document_types))

    def replayed(self) -> list[str]:
        """What differs between the documents and the log: nothing, ever (P5)."""
        rebuild = Rebuild([FEATURE], self.reader)
        rebuild.read()
        return rebuild.differences()

    def close(self) -> None:
        self.reader.close()
        self.store.close()

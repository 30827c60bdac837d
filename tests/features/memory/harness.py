"""The memory feature on a real SQLite store, told what agents tell; its views and commands as the daemon calls them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.decision import Decision
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.job import ClaimedJob
from holdfast.core.kinds import HOOK_KINDS
from holdfast.core.ports import Doc
from holdfast.daemon.files import put_file
from holdfast.features.memory import FEATURE, jobs, policy
from holdfast.features.memory.index import index_file
from holdfast.features.memory.index.catalogue import open_catalogue
from holdfast.features.memory.settings import MemorySettings
from holdfast.features.sessions import FEATURE as SESSIONS
from tests.factories import a_key
from tests.harness import PROJECT, FeatureHarness

SECOND = 1000
SESSION_DOCUMENTS = replace(SESSIONS, enqueue=None, jobs={})
"""What the sessions feature knows is quoted by memory; its jobs are not run here."""


class MemoryHarness(FeatureHarness):
    feature, features, settings_type = FEATURE, (SESSION_DOCUMENTS, FEATURE), MemorySettings

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self._calls = 0

    # ── as an agent ────────────────────────────────────────────────────────────────────────────────────────────────

    def hook(self, kind: str, *, session: str = "s-1", project: str = PROJECT, tool: str = "", **data: Any) -> Event:
        agent = "claude-code" if kind in HOOK_KINDS or kind == "decision.made" else ""
        at = self.clock.tick(SECOND)
        about = {"session": session, "project": project, "agent": agent, "tool": tool}
        event = Event(key=a_key(), kind=kind, at=at, data=data, **about)
        self.engine.handle([event])
        return event

    def _decide(self, event: Event) -> Decision | None:
        if FEATURE.decide is None or not FEATURE.can_decide(event.kind, self.settings):
            return None
        return FEATURE.decide(self.state(), event, self.settings)

    def ask(self, kind: str, *, session: str = "s-1", project: str = PROJECT, **data: Any) -> list[str]:
        """Told, and what the agent is told back. The marks are set as the engine sets them."""
        event = self.hook(kind, session=session, project=project, **data)
        decision = self._decide(event)
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
        self.clock.tick(SECOND)
        return replace(super().call(session, **args), project=project)

    # ── as the daemon's worker ─────────────────────────────────────────────────────────────────────────────────────────

    def work(self, run: Any = None, *, cut_off: bool = False) -> int:
        """Every job that is due, with its events and its end in one transaction; `cut_off` loses what it did."""
        done = 0
        while claimed := self._claimed():
            events = list(FEATURE.jobs[claimed.kind](self.job_call(claimed, run, put_file)))
            if not cut_off:
                self.engine.handle(events, also=lambda store, job=claimed.id: store.finish(job, "w"))
            done += 1
        return done

    def _claimed(self) -> ClaimedJob | None:
        with self.store.transaction():
            found = self.store.claim("w", self.clock(), 1000, 1, tuple(FEATURE.jobs))
        return found[0] if found else None

    def keep_index(self, *, always: bool = True) -> Path:
        """As the daemon's schedule has it done; `always`: however little there is."""
        job = ClaimedJob(id=0, kind=policy.KEEP_INDEX, dedupe="", attempts=1, payload={})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "WORTH", 0 if always else jobs.WORTH)
            self.engine.handle(list(FEATURE.jobs[policy.KEEP_INDEX](self.job_call(job, None, put_file))))
        return index_file.index_path(self.folder)

    def restarted(self) -> None:
        """What lives in the daemon's memory is gone."""
        open_catalogue.cache_clear()

    # ── what there is ──────────────────────────────────────────────────────────────────────────────────────────────

    def memories(self, type_: str = "", status: str = "active") -> list[Doc]:
        found = self.view("listed", status=status, limit=100)["observations"]
        return [doc for doc in found if not type_ or doc["type"] == type_]

"""The feature on a real engine and a real store, without a daemon: events in, documents out."""

from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.times import HOUR
from holdfast.features.project import FEATURE
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.settings import ProjectSettings
from holdfast.features.project.state import PROJECT, Project, Task
from tests.factories import NOON, a_key
from tests.harness import PROJECT as ROOT
from tests.harness import FeatureHarness


class Stage(FeatureHarness):
    feature, settings_type = FEATURE, ProjectSettings

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.now = NOON
        self.pending: list[Event] = []
        self.at_once = 1
        """Events in one transaction: more of them where there are very many."""

    def say(self, kind: str, /, *, session: str = "", tool: str = "", project: str = ROOT, **data: Any) -> Event:
        """An event, a second after the one before."""
        self.now += 1000
        event = Event(key=a_key(), kind=kind, at=self.now, session=session, project=project, tool=tool, data=data)
        self.pending.append(event)
        if len(self.pending) >= self.at_once:
            self.engine.handle(self.pending)
            self.pending = []
        return event

    def observe(self, **facts: Any) -> None:
        self.say("project.observed", facts=facts)

    def git(self, **facts: Any) -> None:
        self.observe(git={**msgspec.to_builtins(self.doc.git), "status": "clean", "count": 0, "files": [], **facts})

    def edit(self, path: str, session: str = "s-1", **data: Any) -> None:
        self.say("tool.finished", session=session, tool="Edit", action="edit", paths=[f"{ROOT}/{path}"], **data)

    def run(self, command: str, output: str = "", code: int = 0, session: str = "s-1", **data: Any) -> None:
        kind = "tool.finished" if code == 0 else "tool.failed"
        fields = {"action": "shell", "command": command, "output": output, "exit_code": code, **data}
        self.say(kind, session=session, tool="Bash", **fields)

    def check(self, verdict: str, runner: str = "pytest", folder: str = ".", **data: Any) -> Event:
        """What the feature checks says of a run: whole, of tests, on main, unless told otherwise."""
        fields = {"kind": "test", "runner": runner, "dir": folder, "selection": "all", "verdict": verdict}
        fields |= {"worktree": ROOT, "branch": "main", "command": runner, "why": "exit status 1", "content": {}}
        content = {"content": {"": data.pop("content")}} if "content" in data else {}
        return self.say("check.finished", session="s-1", **{**fields, **data, **content})

    def commit(self, head: str = "c2", **data: Any) -> None:
        fields = {"verb": "commit", "worktree": ROOT, "commits": [head]}
        refs = {"before": {"head": "c1", "branch": "main"}, "after": {"head": head, "branch": "main"}}
        self.say("git.acted", session="s-1", **{**fields, **refs, **data})

    def found_out(self, ran: Event, code: int) -> None:
        """What the sessions feature then reads from the transcript."""
        told = {"action": "shell", "command": ran.data["command"], "ok": code == 0, "exit_code": code, "of": 1}
        self.engine.handle([msgspec.structs.replace(ran, key=a_key(), kind="tool.exit_read", data=told)])

    def wait(self, hours: float) -> None:
        """Time goes by, and somebody notices."""
        self.now += int(hours * HOUR)
        self.say("project.time_passed")

    @property
    def doc(self) -> Project:
        reader = self.store.reader()
        try:
            return PROJECT.load(reader, ROOT) or Project(project=ROOT)
        finally:
            reader.close()

    @property
    def document(self) -> dict[str, Any]:
        return project_document(self.doc, self.now)

    def gaps(self) -> dict[str, Task]:
        return {task.type: task for task in self.doc.tasks}

    def tasks(self, type_: str) -> list[str]:
        return [task.description for task in self.doc.tasks if task.type == type_]

    def history(self) -> list[str]:
        return [line.summary for line in self.doc.history]

    def completed(self) -> list[str]:
        return [line.task_id for line in self.doc.history if line.change_type == "task_completed"]

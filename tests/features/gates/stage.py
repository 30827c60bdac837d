"""A session and its gates without processes: the feature's pure functions in the engine's order, on a clock of ours."""

import itertools
from typing import Any

from holdfast.core.decision import NOTHING, Decision
from holdfast.core.event import Event
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.views import Simulation
from tests.factories import NOON

PROJECT, REPO = "/home/ada/engine", "/home/ada/engine/.git"


def rules(**requirements: dict[str, Any]) -> GateSettings:
    return GateSettings.of({"requirements": requirements})


class Stage:
    """Every event taken is kept in `log`, so that it can be replayed."""

    def __init__(self, settings: GateSettings | None = None, **requirements: dict[str, Any]) -> None:
        self.settings = settings or rules(**requirements)
        self.simulation = Simulation(self.settings)
        self.log: list[Event] = []
        self.now, self.branch = NOON, "feature/test"
        self._seq = itertools.count(1)

    def take(
        self, kind: str, /, session: str = "s-1", *, tool: str = "", agent: str = "claude-code", **data: Any
    ) -> Decision:
        seq = next(self._seq)
        data = {"branch": self.branch, "repo": REPO, **data}
        event = Event(key=f"k{seq}", seq=seq, kind=kind, at=self.now, session=session, project=PROJECT, agent=agent,
                      tool=tool, data=data)  # fmt: skip
        self.log.append(event)
        return self.simulation.apply_event(event) or NOTHING

    def later(self, seconds: float) -> "Stage":
        self.now += int(seconds * 1000)
        return self

    def start(self, session: str = "s-1", **data: Any) -> Decision:
        return self.take("session.started", session, source="startup", **data)

    def edit(self, path: str = "src/a.py", session: str = "s-1", **data: Any) -> Decision:
        """Asked for; done as well if nothing refuses it."""
        given = {"action": "edit", "paths": [path if path.startswith("/") else f"{PROJECT}/{path}"], **data}
        told = self.take("tool.started", session, tool="Edit", **given)
        if told.verdict != "deny":
            self.take("tool.finished", session, tool="Edit", ok=True, **given)
        return told

    def run(self, command: str, code: int | None = 0, session: str = "s-1", **data: Any) -> Decision:
        given = {"action": "shell", "command": command, **data}
        told = self.take("tool.started", session, tool="Bash", **given)
        if told.verdict != "deny":
            ended = {"exit_code": code} if code is not None else {}
            kind = "tool.failed" if code else "tool.finished"
            self.take(kind, session, tool="Bash", ok=not code, **ended, **given)
        return told

    def found_out(self, ran: Event, code: int) -> Decision:
        """The exit code of an earlier command, as the sessions feature reads it from a transcript."""
        told = {name: ran.data[name] for name in ("action", "command", "branch", "repo")}
        seq = next(self._seq)
        event = Event(key=f"k{seq}", seq=seq, kind="tool.exit_read", at=ran.at, session=ran.session, project=PROJECT,
                      agent=ran.agent, tool=ran.tool, data={**told, "ok": code == 0, "exit_code": code, "of": ran.seq})  # fmt: skip
        self.log.append(event)
        return self.simulation.apply_event(event) or NOTHING

    def skill(self, name: str, session: str = "s-1", ok: bool = True) -> Decision:
        told = self.take("tool.started", session, tool="Skill", action="skill", skill=name)
        self.take("tool.finished" if ok else "tool.failed", session, tool="Skill", action="skill", skill=name, ok=ok)
        return told

    def stop(self, session: str = "s-1", **data: Any) -> Decision:
        return self.take("turn.ended", session, **{"message": "Done.", **data})

    def prompt(self, session: str = "s-1", **data: Any) -> Decision:
        return self.take("prompt.submitted", session, prompt="go on", **data)

    def end(self, session: str = "s-1") -> Decision:
        return self.take("session.ended", session, reason="exit")

    def say(self, kind: str, session: str = "s-1", **data: Any) -> Decision:
        """What a command or a job reports."""
        return self.take(kind, session, agent="", **data)


def names(told: Decision) -> list[str]:
    """The requirements a refusal is about."""
    return [one["name"] for detail in told.details for one in detail.get("requirements", ())]

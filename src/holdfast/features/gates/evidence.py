"""Is it proven? Recorded facts against what a requirement asks for; nobody's word counts."""

import fnmatch
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.core.ports import Doc
from holdfast.features.gates.facts import SOMEWHERE
from holdfast.features.gates.globs import any_matches
from holdfast.features.gates.rules import Rule
from holdfast.features.gates.shell import proven, single_blanks

if TYPE_CHECKING:
    from holdfast.features.gates.check import Here
    from holdfast.features.gates.model import Evidence

Fact = list[Any]
"""[seq, at, …]"""


class Asked:
    """One question, with everything it is asked about. `used`: the event that used up what was proven before."""

    def __init__(self, rule: Rule, facts: Doc, here: "Here", used: int = 0) -> None:
        self.rule, self.facts, self.project, self.now = rule, facts, here.project, here.now
        self.session = "" if rule.scope in ("branch", "permanent") else here.session
        self.branch, self.used = here.branch, used

    def missing(self) -> str:
        """What is not proven, in words; empty when all of it is."""
        return next((why for one in self.rule.spec.evidence if (why := self._missing(one))), "")

    def latest(self) -> list[dict[str, Any]]:
        """For each part of it the newest fact: its event, its time, and whether it went well."""
        found = [self._newest(one)[1] for one in self.rule.spec.evidence]
        return [{"seq": fact[0], "at": fact[1], "ok": bool(fact[2])} for fact in found if fact]

    def _newest(self, one: "Evidence") -> tuple[str, Fact | None]:
        what, facts = self._found(one)
        return what, max(facts, default=None, key=lambda fact: fact[0])

    def _missing(self, one: "Evidence") -> str:
        what, newest = self._newest(one)
        if newest is None or newest[0] <= self.used:
            return f"no {what} is on record"
        if newest[2] == 0:
            return f"the last {what} failed"
        if one.within and self.now - newest[1] > one.within * 1000:
            return f"the last {what} is older than {one.within} s"
        changed = self._changed(one.after_edit, newest[0])
        return f"{changed} changed after the last {what}" if changed else ""

    def _found(self, one: "Evidence") -> tuple[str, list[Fact]]:
        """(in words, the facts as [seq, at, whether it went well])"""
        if one.command:
            return f"`{' or '.join(one.command)}` that passed", self._commands(one.command)
        if one.skill:
            return f"run of {_skills(one.skill)}", self._skills(one.skill)
        if one.commit:
            return "commit", self._commits()
        run = self.facts.get("uat", {}).get(one.uat)
        return f"UAT run of {one.uat}", [run[:3]] if run else []

    def _commands(self, globs: tuple[str, ...]) -> list[Fact]:
        ran = self.facts.get("ran", {})
        return [fact[:3] for command, fact in ran.items() if self._theirs(fact, 3) and runs(command, fact[2], globs)]

    def _skills(self, names: tuple[str, ...]) -> list[Fact]:
        wanted = {name.lstrip("/").rpartition(":")[2] for name in names}
        found = self.facts.get("skills", {}).items()
        return [[*fact[:2], 1] for name, fact in found if name.rpartition(":")[2] in wanted and self._theirs(fact, 2)]

    def _commits(self) -> list[Fact]:
        made = self.facts.get("commits", {}).items()
        return [[*fact[:2], 1] for sid, fact in made if sid == self.session or (not self.session and self._here(fact))]

    def _here(self, fact: Fact) -> bool:
        return fact[-1] == self.branch

    def _theirs(self, fact: Fact, place: int) -> bool:
        """By this session, or, for what the whole branch shares, on this branch."""
        return fact[place] == self.session if self.session else self._here(fact)

    def _changed(self, globs: tuple[str, ...], since: int) -> str:
        for path, seq in reversed(self.facts.get("edits", {}).items()):
            if seq > since and (path == SOMEWHERE or any_matches(globs, path, self.project)):
                return "a file" if path == SOMEWHERE else path.removeprefix(f"{self.project}/")
        if self.facts.get("floor", 0) > since:
            return "too much"
        touched = self.facts.get("touched", {}).get(self.rule.name, -1)
        return "a file it covers" if touched >= since else ""


@lru_cache(8_000)
def runs(command: str, passed: int, globs: tuple[str, ...]) -> bool:
    """What passed must be proven by the exit code; what failed counts as failed wherever it is in the line."""
    parts = proven(command) if passed else proven(command) or (command,)
    return any(fnmatch.fnmatchcase(part, single_blanks(glob)) for glob in globs for part in parts)


def _skills(names: tuple[str, ...]) -> str:
    return " or ".join(f"/{name.lstrip('/')}" for name in names)

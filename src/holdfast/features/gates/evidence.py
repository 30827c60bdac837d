"""Is it proven? Recorded runs against what a requirement asks for; nobody's word counts."""

import fnmatch
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.core.fingerprint import content_key
from holdfast.core.ids import alias
from holdfast.core.ports import Doc
from holdfast.core.shell.acts import BLANK
from holdfast.core.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.features.gates.facts import SOMEWHERE, is_real_run, reading_of
from holdfast.features.gates.globs import any_matches
from holdfast.features.gates.rules import Rule

if TYPE_CHECKING:
    from holdfast.features.gates.check import Here
    from holdfast.features.gates.model import Evidence

Fact = list[Any]
"""[seq, at, went well, session, branch, content]"""
EVERYTHING = ("**",)
_TEST_FILE = re.compile(r"(?:^|/)tests?/|(?:^|/)test_[^/]*$|[._]test\.|[._]spec\.|(?:^|/)specs?/")


class Asked:
    """One question, with everything it is asked about. `used`: the event that used up what was proven before."""

    def __init__(self, rule: Rule, facts: Doc, here: "Here", used: int = 0) -> None:
        self.rule, self.facts, self.project, self.now = rule, facts, here.project, here.now
        self.session = "" if rule.scope in ("branch", "permanent") else here.session
        self.asking, self.branch, self.used, self.content = here.session, here.branch, used, here.content

    def missing(self) -> str:
        """What is not proven, in words; empty when all of it is."""
        return next((why for one in self.rule.spec.evidence if (why := self._missing(one))), "")

    def proven(self) -> str:
        """In words: `proven`, and whose run it was where it was another session's."""
        whose = [fact[3] for one in self.rule.spec.evidence if (fact := self._proof(one))]
        theirs = sorted({alias(sid) for sid in whose if sid and sid != self.asking})
        return f"proven by session {', '.join(theirs)}" if theirs else "proven"

    def proved_other_content(self) -> bool:
        runs = [fact for one in self.rule.spec.evidence for fact in self._candidates(one) if not self._is_same_content(one, fact)]
        return any(fact[2] > 0 and fact[3] == self.asking and _content(fact) for fact in runs)

    def changed_tests(self) -> list[str]:
        """Tests that were edited before the run that proves it: whether they still test the same, a person can say."""
        proofs = [fact for one in self.rule.spec.evidence if (fact := self._proof(one))]
        edits = self.facts.get("edits", {}).items()
        return [path.removeprefix(f"{self.project}/") for path, seq in edits if _TEST_FILE.search(path) and any(seq < p[0] for p in proofs)]

    def latest(self) -> list[dict[str, Any]]:
        """For each part of it the newest fact: its event, its time, and whether it went well."""
        found = [self._newest(one) for one in self.rule.spec.evidence]
        return [{"seq": fact[0], "at": fact[1], "ok": bool(fact[2])} for fact in found if fact]

    def _missing(self, one: "Evidence") -> str:
        if self._proof(one):
            return ""
        what, newest = _described(one), self._newest(one)
        if newest is None or newest[0] <= self.used:
            return f"no {what} is on record"
        if newest[2] == 0:
            return f"the last {what} failed"
        if newest[2] < 0:
            return f"the last {what} proves nothing: {newest[6] if len(newest) > 6 else 'how it ended is not known'}"
        if self._is_too_old(one, newest):
            return f"the last {what} is older than {one.within} s"
        return f"{self._change(one, newest)} changed after the last {what}" if self._knows(one, newest) else self._unknown(what)

    def _unknown(self, what: str) -> str:
        return f"whether something changed since the last {what} is unknown"

    def _proof(self, one: "Evidence") -> Fact | None:
        """The newest run that counts. On the very same content anybody's does."""
        found = [fact for fact in self._candidates(one) if fact[2] > 0 and fact[0] > self.used and not self._is_too_old(one, fact)]
        same = [fact for fact in found if self._is_same_content(one, fact)]
        own = [fact for fact in found if self._is_ours(fact) and not _content(fact) and not self._change(one, fact)]
        if self.content and any(map(_content, found)):
            own = []
        return max(same + own, default=None, key=lambda fact: fact[0])

    def _newest(self, one: "Evidence") -> Fact | None:
        found = self._candidates(one)
        ours = [fact for fact in found if self._is_ours(fact)]
        return max(ours or found, default=None, key=lambda fact: fact[0])

    def _is_too_old(self, one: "Evidence", fact: Fact) -> bool:
        return bool(one.within) and self.now - fact[1] > one.within * 1000

    def _is_same_content(self, one: "Evidence", fact: Fact) -> bool:
        key = _key(one)
        return bool(self.content.get(key)) and _content(fact).get(key) == self.content[key]

    def _knows(self, one: "Evidence", fact: Fact) -> bool:
        """Whether the contents can be compared, or neither was ever looked at and edits tell."""
        key = _key(one)
        return bool(self.content.get(key)) == bool(_content(fact).get(key)) or not _content(fact)

    def _candidates(self, one: "Evidence") -> list[Fact]:
        if one.command:
            ran = self.facts.get("ran", {})
            return [fact for command, fact in ran.items() if matches(command, one.command)]
        if one.skill:
            return self._skills(one.skill)
        if one.commit:
            return self._commits()
        run = self.facts.get("uat", {}).get(one.uat)
        return [[*run[:3], self.asking, self.branch, {}]] if run else []

    def _skills(self, names: tuple[str, ...]) -> list[Fact]:
        wanted = {name.lstrip("/").rpartition(":")[2] for name in names}
        found = self.facts.get("skills", {}).items()
        return [[*fact[:2], 1, *fact[2:4], {}] for name, fact in found if name.rpartition(":")[2] in wanted]

    def _commits(self) -> list[Fact]:
        made = self.facts.get("commits", {}).items()
        return [[*fact[:2], 1, sid, fact[-1], {}] for sid, fact in made]

    def _is_ours(self, fact: Fact) -> bool:
        """By this session, or, for what the whole branch shares, on this branch."""
        return bool(fact[3] == self.session if self.session else fact[4] == self.branch)

    def _change(self, one: "Evidence", fact: Fact) -> str:
        """What was edited after that run, as far as tool calls told."""
        since = fact[0]
        for path, seq in reversed(self.facts.get("edits", {}).items()):
            if seq > since and (path == SOMEWHERE or any_matches(one.after_edit, path, self.project)):
                return "a file" if path == SOMEWHERE else str(path.removeprefix(f"{self.project}/"))
        if self.facts.get("floor", 0) > since:
            return "too much"
        touched = self.facts.get("touched", {}).get(self.rule.name, -1)
        if touched >= since or (self.content and _content(fact)):
            return "a file it covers"
        return ""


def _key(one: "Evidence") -> str:
    return "" if one.after_edit == EVERYTHING else content_key(one.after_edit)


def _content(fact: Fact) -> dict[str, str]:
    return fact[5] if len(fact) > 5 and isinstance(fact[5], dict) else {}


def _described(one: "Evidence") -> str:
    if one.command:
        return f"`{' or '.join(one.command)}` that passed"
    if one.skill:
        return "run of " + " or ".join(f"/{name.lstrip('/')}" for name in one.skill)
    return "commit" if one.commit else f"UAT run of {one.uat}"


@lru_cache(8_000)
def matches(command: str, globs: tuple[str, ...]) -> bool:
    """A command as it was typed, and by its program's bare name."""
    name, _, rest = command.partition(" ")
    bare = f"{name.rpartition('/')[2]} {rest}".strip()
    texts = {command.replace(BLANK, " "), bare.replace(BLANK, " ")}
    return any(fnmatch.fnmatchcase(text, " ".join(glob.split())) for glob in globs for text in texts)


# ── a command that brings its own proof ──────────────────────────────────────────────────────────────────────────────


def proves_itself(rule: Rule, command: str) -> bool:
    """`pytest && git commit`: what it asks for is reached only where the proof passed in the same line, and nothing it
    covers is written there. A line that is the proof itself is never refused for want of it."""
    analysis = analyse_command(command)
    if analysis.problem:
        return False
    return all(one.command and _is_guarded(rule, one, analysis) for one in rule.spec.evidence)


def _is_guarded(rule: Rule, one: "Evidence", analysis: Analysis) -> bool:
    proofs = [c.invocation.index for c in analysis.commands if _is_proof(c, one)]
    acts = [c.invocation.index for c in analysis.commands if rule.is_about(reading_of(c))]
    if not proofs:
        return False
    if not acts:
        return all(_passed(path.ran, path.assumed, proofs) for path in analysis.paths if _may_succeed(path))
    reached = [path for path in analysis.paths if any(index in path.ran for index in acts)]
    return all(_passed(path.ran, path.assumed, proofs) for path in reached) and not any(path.outputs.keys() - {"terminal"} for path in reached)


def _is_proof(command: ShellCommand, one: "Evidence") -> bool:
    invocation = command.invocation
    real = command.ran is not Ran.NO and not invocation.tampered and not invocation.shadowed and not invocation.background
    return real and is_real_run(command.words) and matches(reading_of(command), one.command)


def _passed(ran: dict[int, bool], assumed: dict[int, int], proofs: list[int]) -> bool:
    return any(index in ran and assumed.get(index) == 0 for index in proofs)


def _may_succeed(path: Any) -> bool:
    status = path.status
    if status.kind == "of":
        path.assumed.setdefault(status.invocation, 0)
        return bool(path.assumed[status.invocation] == 0)
    return not (status.kind == "code" and status.code != 0)

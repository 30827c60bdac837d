"""Whether the runs on record prove what a requirement asks for: the same content, and what the requirement covers."""

import re
from typing import TYPE_CHECKING

import msgspec

from holdfast.analysis.shell.written_files import WHOLE_TREE
from holdfast.core.checks import (
    UNKNOWN_FOLDER,
    all_within,
    are_folders,
    chosen_targets,
    folders_meet,
    is_untested,
    looks_at,
    reaches_globs,
    reaches_path,
    touches_globs,
)
from holdfast.core.fingerprint import content_key
from holdfast.core.globs import any_matches
from holdfast.core.ids import session_alias
from holdfast.features.gates.evidence import SOMEWHERE, Facts, RunFact, command_matches
from holdfast.features.gates.kinds.evidence import Evidence, command_to_run, evidence_of
from holdfast.features.gates.rules.triggers import Rule

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import RequestContext

replace = msgspec.structs.replace
EVERYTHING = ("**",)
_REPORT = re.compile(r"\.(?:txt|log|xml|json|html|out|csv|tap|lcov|info)$|/[^./]+$")
"""Reports that people write next to a run; no source."""
_TEST_FILE = re.compile(r"(?:^|/)tests?/|(?:^|/)test_[^/]*$|[._]test\.|[._]spec\.|(?:^|/)specs?/")


_THAT_PASSED = " that passed"
_RERUNS_FAILED = frozenset(("--lf", "--last-failed", "--onlyFailures", "--only-failures", "--last-run"))


class ProofQuestion:
    """One question, with everything it is asked about. `used`: the event that used up what was proven before;
    `content_at`: when the content was last known."""

    def __init__(self, rule: Rule, facts: Facts, context: "RequestContext", used: int = 0, content_at: int = 0) -> None:
        self.content_at = content_at
        self.rule, self.facts, self.project, self.now = rule, facts, context.project, context.now
        self.session = "" if rule.scope in ("branch", "permanent") else context.session
        self.asking, self.branch, self.used, self.content = context.session, context.branch, used, context.content
        self._evidence = evidence_of(rule.spec)
        self._found: dict[Evidence, list[RunFact]] = {}

    def missing(self) -> str:
        """What is not proven, as text; empty if all is."""
        return next((why for one in self._evidence if (why := self._missing(one))), "")

    def proven(self) -> str:
        """`proven`, with the session if it was another one."""
        proofs = [fact for one in self._evidence if (fact := self._proof(one))]
        theirs = sorted({session_alias(one.session) for one in proofs if one.session and one.session != self.asking})
        proven = f"proven by session {', '.join(theirs)}" if theirs else "proven"
        bent = list(dict.fromkeys(bend for one in proofs for bend in one.bent))
        return f"{proven}, but look at what may have bent the run: {'; '.join(bent)}" if bent else proven

    def proved_other_content(self) -> bool:
        every = ((one, fact) for one in self._evidence for fact in self._candidates(one))
        runs = [fact for one, fact in every if not self._is_same_content(one, fact)]
        return any(fact.passed and fact.session == self.asking and fact.content for fact in runs)

    def changed_tests(self) -> list[str]:
        """Tests edited before the run that proves it, for a person to review."""
        proofs = [fact for one in self._evidence if (fact := self._proof(one))]
        return [
            path.removeprefix(f"{self.project}/")
            for path, seq in self.facts.edits.items()
            if _TEST_FILE.search(path) and any(seq <= proof.seq for proof in proofs)
        ]

    def latest(self) -> list[RunFact]:
        """The newest fact for each evidence."""
        return [fact for one in self._evidence if (fact := self._newest(one))]

    def _missing(self, one: Evidence) -> str:
        if self._proof(one):
            return ""
        what, newest = _describe_evidence(one), self._newest(one)
        if newest is None or newest.seq <= self.used:
            return f"no {what} is on record"
        return self._why_not(one, newest, what) or self._why_changed(one, newest, what)

    def _why_not(self, one: Evidence, newest: RunFact, what: str) -> str:
        """Why the run itself does not count."""
        run = what.removesuffix(_THAT_PASSED)
        if newest.outcome == 0:
            return f"the last {run} failed"
        if newest.outcome < 0:
            return f"the last {run} proves nothing: {newest.why or 'how it ended is not known'}"
        if one.whole and _is_part(one, newest):
            return f"the last {run} ran only {_selected(newest)}; the whole suite is required"
        if newest.tests_before:
            return (
                f"the last {run} ran {newest.tests} of the {newest.tests_before} tests that ran when it was last green"
            )
        if one.strict and newest.bent:
            return f"the last {run} does not count: {'; '.join(newest.bent)}"
        if changed := self._undone(one, newest):
            return f"{changed} was changed after the last {what}, in the same command"
        if self._is_too_old(one, newest):
            return f"the last {what} is older than {one.within} s"
        if newest.dir == UNKNOWN_FOLDER:
            return f"it is unknown where the last {run} ran: run it from the root, or with the folder written out"
        if where := self._unreached(one, newest):
            return f"the last {run} ran in {' and '.join(newest.reach)} and says nothing of {where}"
        return ""

    def _why_changed(self, one: Evidence, newest: RunFact, what: str) -> str:
        run = what.removesuffix(_THAT_PASSED)
        if self._is_still_so(one, newest) and (failed := self._unhealed(one, newest)):
            return f"{_selection_text(failed)} failed on the same files, and the last {run} does not include it"
        if self._knows(one, newest):
            return f"{self._change(one, newest)} changed after the last {what}"
        return self._unknown(what)

    def _unknown(self, what: str) -> str:
        ago = max(0, self.now - self.content_at) // 1000
        since = f", since {ago} s ago" if self.content_at else ""
        return f"whether something changed since the last {what} is unknown{since}: the files could not be read in time"

    def _proof(self, one: Evidence) -> RunFact | None:
        """The newest run that counts. On the same content any session's run does."""
        candidates = [fact for fact in self._candidates(one) if self._counts(one, fact)]
        # Edits tell only where no content was compared.
        compared = bool(self.content) and any(fact.content for fact in candidates)
        proofs = [
            fact
            for fact in candidates
            if not self._edited_since(one, fact)
            and (self._is_same_content(one, fact) or (not compared and self._is_own_and_current(one, fact)))
        ]
        return max(proofs, default=None, key=lambda fact: fact.seq)

    def _edited_since(self, one: Evidence, fact: RunFact) -> str:
        """A covered file that a tool call edited after the run: what is on record outweighs an unchanged fingerprint."""
        edits = ((path, seq) for path, seq in self.facts.edits.items() if seq > fact.seq and path != SOMEWHERE)
        return next((path for path, _ in edits if self._is_covered_code(one, path)), "")

    def _is_own_and_current(self, one: Evidence, fact: RunFact) -> bool:
        return self._is_ours(fact) and not fact.content and not self._change(one, fact)

    def _counts(self, one: Evidence, fact: RunFact) -> bool:
        used = fact.seq <= self.used or self._is_too_old(one, fact) or (one.whole and _is_part(one, fact))
        unsure = (
            (one.strict and fact.bent)
            or fact.tests_before
            or fact.dir == UNKNOWN_FOLDER
            or self._undone(one, fact)
            or self._unreached(one, fact)
        )
        return fact.passed and not used and not unsure and not self._unhealed(one, fact)

    def _newest(self, one: Evidence) -> RunFact | None:
        candidates = self._candidates(one)
        ours = [fact for fact in candidates if self._is_ours(fact)]
        return max(ours or candidates, default=None, key=lambda fact: fact.seq)

    def _is_too_old(self, one: Evidence, fact: RunFact) -> bool:
        return bool(one.within) and self.now - fact.at > one.within * 1000

    def _undone(self, one: Evidence, fact: RunFact) -> str:
        """A file it covers that the very command changed after the run: `echo fix >> f; pytest; git checkout f`."""
        if WHOLE_TREE in fact.changed_after:
            return "the worktree"
        undone = (name for name in fact.changed_after if self._is_undone(one, fact, name))
        return next(undone, "").removeprefix(f"{self.project}/").removeprefix("./")

    def _is_undone(self, one: Evidence, fact: RunFact, name: str) -> bool:
        path = name if name.startswith("/") else f"{self.project}/{name.removeprefix('./')}"
        if not path.startswith(f"{self.project}/") or _REPORT.search(path):
            return False
        # A test that was swapped for the run undoes it too, whatever files the rule covers.
        return name in fact.put_back or any_matches(one.after_edit, path, self.project)

    def _unreached(self, one: Evidence, fact: RunFact) -> str:
        """What the rule covers but the run does not: folders, or files edited there."""
        if not fact.reach or reaches_globs(fact.reach, one.after_edit):
            return ""
        if not touches_globs(fact.reach, one.after_edit):
            return ", ".join(one.after_edit)
        # It ran in a part of what is covered: the edits elsewhere need a run of their own.
        covered = ((path, seq) for path, seq in self.facts.edits.items() if self._is_covered_code(one, path))
        inside = ((path.removeprefix(f"{self.project}/"), seq) for path, seq in covered)
        return next((path for path, seq in inside if not self._is_reached(one, path, seq)), "")

    def _is_covered_code(self, one: Evidence, path: str) -> bool:
        inside = path.removeprefix(f"{self.project}/")
        return not is_untested(inside) and any_matches(one.after_edit, path, self.project)

    def _is_reached(self, one: Evidence, path: str, seq: int) -> bool:
        """Whether a run that passed since the edit reaches the file."""
        passed = (run for run in self._candidates(one) if run.passed and run.seq > seq)
        return any(not run.reach or reaches_path(run.reach, path) for run in passed)

    def _unhealed(self, one: Evidence, fact: RunFact) -> RunFact | None:
        """A failure on the same content that neither this run nor a later one includes: `pytest` fails, `pytest
        tests/test_a.py` passes."""
        runs = self._candidates(one)
        for failed in runs:
            if failed.outcome != 0 or not self._is_still_so(one, failed) or not _overlap(fact, failed):
                continue
            if not any(run.passed and run.seq > failed.seq and _includes(run, failed) for run in runs):
                return failed
        return None

    def _is_still_so(self, one: Evidence, fact: RunFact) -> bool:
        """Whether nothing it covers changed since that run, as far as is known."""
        if fact.content and self.content:
            return self._is_same_content(one, fact)
        return not self._change(one, fact)

    def _is_same_content(self, one: Evidence, fact: RunFact) -> bool:
        key = globs_key(one.after_edit)
        return bool(self.content.get(key)) and fact.content.get(key) == self.content[key]

    def _knows(self, one: Evidence, fact: RunFact) -> bool:
        """Whether the contents can be compared, or neither was ever looked at and edits tell."""
        key = globs_key(one.after_edit)
        return bool(self.content.get(key)) == bool(fact.content.get(key)) or not fact.content

    def _candidates(self, one: Evidence) -> list[RunFact]:
        found = self._found.get(one)
        if found is None:
            found = self._found[one] = self._find_candidates(one)
        return found

    def _find_candidates(self, one: Evidence) -> list[RunFact]:
        if one.command:
            ran = ((name.partition("\n")[0], fact) for name, fact in self.facts.ran.items())
            return [fact for command, fact in ran if command_matches(command, one.command)]
        if one.check:
            return [fact for fact in self.facts.ran.values() if _is_about(fact, one)]
        if one.skill:
            return self._skills(one.skill)
        if one.commit:
            return [*self.facts.commits.values()]
        run = self.facts.uat.get(one.uat)
        return [replace(run, session=self.asking, branch=self.branch)] if run else []

    def _skills(self, names: tuple[str, ...]) -> list[RunFact]:
        skill_names = {name.lstrip("/").rpartition(":")[2] for name in names}
        return [fact for name, fact in self.facts.skills.items() if name.rpartition(":")[2] in skill_names]

    def _is_ours(self, fact: RunFact) -> bool:
        """By this session, or, for what the whole branch shares, on this branch."""
        return fact.session == self.session if self.session else fact.branch == self.branch

    def _change(self, one: Evidence, fact: RunFact) -> str:
        """What was edited after that run, according to tool calls."""
        since = fact.seq
        for path, seq in reversed(self.facts.edits.items()):
            if seq > since and (path == SOMEWHERE or any_matches(one.after_edit, path, self.project)):
                return "a file" if path == SOMEWHERE else path.removeprefix(f"{self.project}/")
        if self.facts.floor > since:
            return "too much"
        touched = self.facts.touched.get(self.rule.name, -1)
        if touched >= since or (self.content and fact.content):
            return "a file it covers"
        return ""


def _overlap(one: RunFact, other: RunFact) -> bool:
    return not one.reach or not other.reach or any(folders_meet(a, b) for a in one.reach for b in other.reach)


def _includes(run: RunFact, failed: RunFact) -> bool:
    """Whether the run included everything that failed."""
    if _RERUNS_FAILED.intersection(run.operands) or (run.dir, run.operands) == (failed.dir, failed.operands):
        return True
    if not run.operands:
        return not run.reach or all(reaches_path(run.reach, folder) for folder in failed.reach)
    chosen = chosen_targets(run.operands) if run.dir == failed.dir else []
    return any(all_within(targets, chosen) for targets in (failed.failures, chosen_targets(failed.operands)))


def _is_about(fact: RunFact, one: Evidence) -> bool:
    """A check of the kind that is asked for, by a tool for such files, at a place that has some of them."""
    known = fact.check == one.check and (not fact.reach or touches_globs(fact.reach, one.after_edit))
    named = [glob for glob in one.after_edit if "." in glob.rpartition("/")[2]]
    return known and (not named or any(looks_at(fact.runner, glob, tests=one.check == "test") for glob in named))


def _is_part(one: Evidence, fact: RunFact) -> bool:
    """Whether it leaves out some of what is asked for: `pytest web` at the root is the whole suite of `web`."""
    return fact.partial and not (are_folders(fact.dir, fact.operands) and reaches_globs(fact.reach, one.after_edit))


def _selected(fact: RunFact) -> str:
    return " ".join(fact.operands[:3]) + (" …" if len(fact.operands) > 3 else "") or "a part"


def _selection_text(fact: RunFact) -> str:
    return f"a run of {' '.join(fact.operands)}" if fact.operands else "a run of all tests"


def globs_key(globs: tuple[str, ...]) -> str:
    """Under which the content of these files is kept; all files are kept under the empty name."""
    return "" if globs == EVERYTHING else content_key(globs)


def _describe_evidence(one: Evidence) -> str:
    if one.is_run:
        return f"`{command_to_run(one)}`{_THAT_PASSED}"
    if one.skill:
        return "run of " + " or ".join(f"/{name.lstrip('/')}" for name in one.skill)
    return "commit" if one.commit else f"UAT run of {one.uat}"

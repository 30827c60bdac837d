"""Checks one requirement for one session at one place: the same answer for hooks, views and simulation."""

from dataclasses import dataclass, field
from functools import cached_property

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.features.gates.events import EVERYWHERE, branch_key, branch_of, repo_or_project, spending_key
from holdfast.features.gates.evidence import NO_FACTS, Facts
from holdfast.features.gates.kinds.base import BASES, Finding, satisfied_by
from holdfast.features.gates.rules.proof import ProofQuestion
from holdfast.features.gates.rules.triggers import Rule, switched_branch
from holdfast.features.gates.state import BRANCHES, FACTS_OF, PAUSES, SESSIONS, SPENDINGS, GateSession
from holdfast.features.gates.state.branches import BranchState, Entry
from holdfast.features.gates.state.spending import Cells


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Which session asks, and where."""

    session: str
    project: str
    worktree: str
    branch: str
    now: int
    content: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the worktree by what they cover; empty if it was not read."""
    ends_on: str = ""
    """The branch the command itself switches to: `git checkout main && echo 1 > src/app.py`."""

    lands_on: tuple[str, ...] = ()
    """Branches whose files it writes although the session is on another one."""

    @classmethod
    def of(cls, event: Event) -> "RequestContext":
        content = event.data.content if isinstance(event.data, HookPayload) else {}
        place = repo_or_project(event)
        lands_on = tuple(event.data.lands_on) if isinstance(event.data, ToolPayload) else ()
        branch, ends_on = branch_of(event), switched_branch(event)
        return cls(event.session, event.project, place, branch, event.at, content, ends_on, lands_on)


class Checker:
    """Checks requirements against the state, reading each document once."""

    def __init__(self, state: State, context: RequestContext) -> None:
        self.state, self.context = state, context

    def check(self, rule: Rule) -> Finding:
        return rule.kind.check(self, rule)

    def paused(self) -> bool:
        context = self.context
        # Any one of the three pauses is enough.
        for where in (EVERYWHERE, context.worktree, f"session:{context.session}"):
            pause = PAUSES.get(self.state, where)
            if pause is not None and pause.holds(context.now):
                return True
        return False

    @cached_property
    def session(self) -> GateSession:
        return SESSIONS.get(self.state, self.context.session) or GateSession(session=self.context.session)

    @cached_property
    def facts(self) -> Facts:
        return FACTS_OF.get(self.state, self.context.project) or NO_FACTS

    @cached_property
    def branch(self) -> BranchState:
        context = self.context
        return BRANCHES.get(self.state, branch_key(context.worktree, context.branch)) or BranchState(
            place=context.worktree
        )

    def spending(self, per: str) -> Cells:
        """What was spent in this turn or session, or in this project."""
        context = self.context
        of, name = ("session", context.session) if per in ("turn", "session") else ("project", context.project)
        spending = SPENDINGS.get(self.state, spending_key(of, name))
        return spending.part(per, context.now) if spending else []

    def entry(self, rule: Rule) -> Entry | None:
        context = self.context
        entry = self.branch.entry_for(rule.name, context.session, context.now)
        # On the base branch itself there is no other base to look at.
        if entry or rule.scope != "session" or context.branch in BASES:
            return entry
        # Planned on main, then branched off: the session's plan goes with it. What main shares does not.
        planned = (base.own_entry(rule.name, context.session, context.now) for base in self._bases)
        return next(filter(None, planned), None)

    @cached_property
    def _bases(self) -> list[BranchState]:
        found = (BRANCHES.get(self.state, branch_key(self.context.worktree, base)) for base in BASES)
        return [base for base in found if base]

    def approved(self, rule: Rule) -> Finding | None:
        entry = self.entry(rule)
        return Finding(rule, True, satisfied_by(entry)) if entry and entry.approved else None

    def proof_question(self, rule: Rule) -> ProofQuestion:
        # Only a rule for single use is used up; the others keep what was proven.
        used = self.session.used.get(rule.name, 0) if rule.scope == "single_use" else 0
        return ProofQuestion(rule, self.facts, self.context, used, self.session.content_at)

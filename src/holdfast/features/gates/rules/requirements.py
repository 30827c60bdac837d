"""Is a requirement satisfied, and if not, why not, what resolves it, and how that is said. One answer for hooks, views and simulation."""

import fnmatch
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.core.checks import tested_folder, touches_globs
from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.globs import any_matches
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.core.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.core.shell.syntax import UNKNOWN
from holdfast.features.gates.events import EVERYWHERE, branch_key, branch_of, repo_or_project, spending_key
from holdfast.features.gates.evidence import (
    NO_FACTS,
    Facts,
    RunFact,
    command_matches,
    is_real_run,
    reach_in,
    reading_of,
)
from holdfast.features.gates.rules.proof import ProofQuestion
from holdfast.features.gates.rules.triggers import Rule, acts_of, switched_branch, written_paths
from holdfast.features.gates.state import (
    BRANCHES,
    FACTS_OF,
    PAUSES,
    SESSIONS,
    SPENDINGS,
    GateSession,
    OpenRequirement,
    live_sessions,
)
from holdfast.features.gates.state.branches import BranchState, Entry
from holdfast.features.gates.state.spending import Cells, money_of, price_table, tokens_of

if TYPE_CHECKING:
    from holdfast.features.gates.settings import Evidence, GateSettings, Requirement

BASES = ("main", "master")
PERSON_CAN = "a person can approve it"
"""Said to agents: the command that lifts a refusal is not theirs to run."""


@dataclass(frozen=True, slots=True)
class Here:
    """Who asks, and where they stand."""

    session: str
    project: str
    worktree: str
    branch: str
    now: int
    content: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the worktree at that moment, by what they cover; empty: not looked at."""
    ends_on: str = ""
    """The branch that the command itself switches to: `git checkout main && echo 1 > src/app.py`."""

    @classmethod
    def of(cls, event: Event) -> "Here":
        content = event.data.content if isinstance(event.data, HookPayload) else {}
        place = repo_or_project(event)
        return cls(event.session, event.project, place, branch_of(event), event.at, content, switched_branch(event))


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    ok: bool
    why: str
    amount: int = 0
    """Changed lines of a branch, or percent of a budget."""

    def as_open(self) -> OpenRequirement:
        return OpenRequirement(
            name=self.rule.name, type=self.rule.type, why=self.why, resolve=resolution_text(self.rule)
        )


def resolution_text(rule: Rule) -> str:
    """What a person does about it, in the fewest words."""
    by_hand = f"holdfast gate satisfy {rule.name}" if by_hand_too(rule) else ""
    way = first_choice(rule).replace(PERSON_CAN, f"holdfast gate approve {rule.name}")
    return " or ".join(filter(None, (way, by_hand))) or "change the settings"


def first_choice(rule: Rule) -> str:
    """Without what can be done by hand; empty when there is nothing else."""
    return kind_of(rule).way_out(rule)


def by_hand_too(rule: Rule) -> bool:
    return rule.spec.manual and rule.spec.agent_may_satisfy and kind_of(rule).is_a_thing_to_do


def _evidence_text(one: "Evidence") -> str:
    if one.command:
        return f"run `{one.command[0]}` so that it passes"
    if one.skill:
        return f"run /{one.skill[0].lstrip('/')}"
    return "commit your work" if one.commit else f"let the UAT scenario {one.uat} pass"


class Checker:
    """Looks documents up once, however many rules ask."""

    def __init__(self, state: State, here: Here) -> None:
        self.state, self.here = state, here

    def check(self, rule: Rule) -> Finding:
        return kind_of(rule).check(self, rule)

    def paused(self) -> bool:
        here = self.here
        # Any one of the three pauses is enough.
        for where in (EVERYWHERE, here.worktree, f"session:{here.session}"):
            pause = PAUSES.get(self.state, where)
            if pause is not None and pause.holds(here.now):
                return True
        return False

    @cached_property
    def session(self) -> GateSession:
        return SESSIONS.get(self.state, self.here.session) or GateSession(session=self.here.session)

    @cached_property
    def facts(self) -> Facts:
        return FACTS_OF.get(self.state, self.here.project) or NO_FACTS

    @cached_property
    def branch(self) -> BranchState:
        here = self.here
        return BRANCHES.get(self.state, branch_key(here.worktree, here.branch)) or BranchState(place=here.worktree)

    def spending(self, per: str) -> Cells:
        """What was spent in this turn or session, or in this project."""
        here = self.here
        of, name = ("session", here.session) if per in ("turn", "session") else ("project", here.project)
        spending = SPENDINGS.get(self.state, spending_key(of, name))
        return spending.part(per, here.now) if spending else []

    def entry(self, rule: Rule) -> Entry | None:
        here = self.here
        entry = self.branch.entry_for(rule.name, here.session, here.now)
        # On the base branch itself there is no other base to look at.
        if entry or rule.scope != "session" or here.branch in BASES:
            return entry
        # Planned on main, then branched off: the session's plan goes with it. What main shares does not.
        planned = (base.own_entry(rule.name, here.session, here.now) for base in self._bases)
        return next(filter(None, planned), None)

    @cached_property
    def _bases(self) -> list[BranchState]:
        found = (BRANCHES.get(self.state, branch_key(self.here.worktree, base)) for base in BASES)
        return [base for base in found if base]

    def proved_other_content(self, rule: Rule) -> bool:
        """Whether this session showed a green run of something else than what it leaves."""
        return self.proof_question(rule).proved_other_content()

    def is_let_through(self, rule: Rule) -> bool:
        """Satisfied, proven or approved: whatever was done was allowed."""
        return kind_of(rule).lets_through(self, rule)

    def approved(self, rule: Rule) -> Finding | None:
        entry = self.entry(rule)
        return Finding(rule, True, satisfied_by(entry)) if entry and entry.approved else None

    def changed_tests(self, rule: Rule) -> list[str]:
        return self.proof_question(rule).changed_tests() if kind_of(rule).is_proven else []

    def facts_for(self, rule: Rule) -> list[RunFact]:
        """The latest fact for each thing it asks for, whether it counts or not."""
        return self.proof_question(rule).latest() if kind_of(rule).is_proven else []

    def proof_question(self, rule: Rule) -> ProofQuestion:
        # Only a rule for single use is used up; the others keep what was proven.
        used = self.session.used.get(rule.name, 0) if rule.scope == "single_use" else 0
        return ProofQuestion(rule, self.facts, self.here, used, self.session.content_at)


def satisfied_by(entry: Entry) -> str:
    if entry.by == "agent":
        return "said by the agent"
    return f"{'approved' if entry.approved else 'satisfied'} by {entry.by or 'hand'}"


class RequirementKind:
    """One kind of requirement with all that differs between kinds. A new kind is one class here, in `KINDS`."""

    name: ClassVar[str]
    is_a_thing_to_do: ClassVar[bool] = False
    """A skill or a word can satisfy it; else it is a condition, or proven by facts."""
    is_proven: ClassVar[bool] = False
    is_measured: ClassVar[bool] = False
    always_at_stop: ClassVar[bool] = False
    """Asked for at the end of a turn whatever its scope."""

    def check_settings(self, spec: "Requirement") -> None:
        """Raises ValueError where something is missing that it needs."""

    warn_step: ClassVar[int] = 50
    """By how much `Finding.amount` must have grown before it is warned about once more."""

    def asked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        """(at the tool, at the end of the turn) where the settings do not say."""
        return True, True

    def warn_from(self, rule: Rule) -> int:
        return rule.spec.thresholds.warn

    def warning(self, finding: "Finding") -> str:
        return f"{finding.rule.name}: {finding.why}; refused from {finding.rule.spec.thresholds.block} on."

    def check(self, checker: Checker, rule: Rule) -> Finding:
        raise NotImplementedError

    def lets_through(self, checker: Checker, rule: Rule) -> bool:
        """Whether what it is about was allowed, asked afterwards."""
        return self.check(checker, rule).ok

    def way_out(self, rule: Rule) -> str:
        return PERSON_CAN

    def why_not_by_hand(self, rule: Rule) -> str:
        """Empty where `holdfast gate satisfy` may satisfy it."""
        return f"{rule.name} is a condition, not a thing to do"


class Blocking(RequirementKind):
    name = "blocking"
    is_a_thing_to_do = True

    def check(self, checker: Checker, rule: Rule) -> Finding:
        entry = checker.entry(rule)
        return Finding(rule, bool(entry), satisfied_by(entry) if entry else "not satisfied")

    def way_out(self, rule: Rule) -> str:
        named = (*rule.spec.auto_resolve_skill, *rule.spec.satisfied_by_skill)
        skills = dict.fromkeys(f"/{skill.lstrip('/')}" for skill in named)
        return " or ".join(skills) if skills or by_hand_too(rule) else PERSON_CAN

    def why_not_by_hand(self, rule: Rule) -> str:
        return "" if rule.spec.manual else f"{rule.name} is not satisfied by hand"


class StopOnly(Blocking):
    name = "stop_only"
    always_at_stop = True

    def asked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return False, True


class ProvenByEvidence(RequirementKind):
    name = "evidence"
    is_proven = True
    always_at_stop = True

    def check_settings(self, spec: "Requirement") -> None:
        if not spec.evidence:
            raise ValueError("type evidence needs `evidence:`, e.g. {command: 'pytest*', after_edit: 'src/**'}")

    def asked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        """Proof about an edit cannot be there before the edit: it is asked for when the turn ends. A command can wait."""
        patterns = spec.command_pattern or any(not isinstance(t, str) and t.command_pattern for t in spec.trigger_tools)
        return bool(patterns), not patterns

    def check(self, checker: Checker, rule: Rule) -> Finding:
        evidence = checker.proof_question(rule)
        why = evidence.missing()
        return checker.approved(rule) or Finding(rule, False, why) if why else Finding(rule, True, evidence.proven())

    def way_out(self, rule: Rule) -> str:
        return " and ".join(_evidence_text(one) for one in rule.spec.evidence)

    def why_not_by_hand(self, rule: Rule) -> str:
        return f"{rule.name} is satisfied by recorded facts only"


class Guard(RequirementKind):
    """A condition of the moment: evaluated each time, never stored."""

    name = "guard"

    def check_settings(self, spec: "Requirement") -> None:
        if not spec.guard_type:
            raise ValueError("type guard needs `guard_type:` protected_branch or single_session")

    def asked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def check(self, checker: Checker, rule: Rule) -> Finding:
        why = self._protected(checker, rule) if rule.spec.guard_type == "protected_branch" else self._others(checker)
        return checker.approved(rule) or Finding(rule, False, why) if why else Finding(rule, True, "holds")

    def lets_through(self, checker: Checker, rule: Rule) -> bool:
        return checker.approved(rule) is not None

    def way_out(self, rule: Rule) -> str:
        return f"git switch -c NAME, or {PERSON_CAN}" if rule.spec.guard_type == "protected_branch" else PERSON_CAN

    def _protected(self, checker: Checker, rule: Rule) -> str:
        for branch in filter(None, (checker.here.branch, checker.here.ends_on)):
            if any(fnmatch.fnmatchcase(branch, glob) for glob in rule.spec.protected_branches):
                return f"this is the protected branch {branch}"
        return ""

    def _others(self, checker: Checker) -> str:
        here = checker.here
        others = live_sessions(checker.state).others(here.session, here.project)
        return f"another session works here: {', '.join(sorted(others)[:3])}" if others else ""


class BranchSize(RequirementKind):
    name = "dynamic"
    is_measured = True

    def asked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def check(self, checker: Checker, rule: Rule) -> Finding:
        size = checker.facts.sizes.get(checker.here.branch)
        if not size:
            return Finding(rule, True, "not measured yet")
        lines, limit = size.lines, rule.spec.thresholds.block
        why = f"{lines} changed lines since {size.base or 'the base'}"
        if lines >= limit:
            return checker.approved(rule) or Finding(rule, False, f"{why} (limit {limit})", lines)
        return Finding(rule, True, why, lines)


_SPANS = {
    "turn": "in this turn",
    "session": "in this session",
    "day": "today (UTC)",
    "project": "in this project",
}


class Budget(RequirementKind):
    """Tokens or money for a turn, a session, a day or a project. What a model without a price cost stays unknown."""

    name = "budget"
    warn_step = 10

    def check_settings(self, spec: "Requirement") -> None:
        if not spec.tokens and not spec.usd:
            raise ValueError("type budget needs `tokens:` or `usd:`")

    def asked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def warn_from(self, rule: Rule) -> int:
        return int(rule.spec.warn_at * 100)

    def check(self, checker: Checker, rule: Rule) -> Finding:
        spec, cells = rule.spec, checker.spending(rule.spec.per)
        parts = [self._tokens(spec, cells)] if spec.tokens else []
        parts += [self._money(spec, cells)] if spec.usd else []
        # Of tokens and money the one that is used up further decides.
        percent, why = max(parts)
        if percent >= 100:
            return checker.approved(rule) or Finding(rule, False, f"the budget is used up: {why}", percent)
        return Finding(rule, True, why, percent)

    def _tokens(self, spec: "Requirement", cells: Cells) -> tuple[int, str]:
        used = tokens_of(cells)
        return used * 100 // spec.tokens, f"{used:,} of {spec.tokens:,} tokens {_SPANS[spec.per]}"

    def _money(self, spec: "Requirement", cells: Cells) -> tuple[int, str]:
        money = money_of(cells, price_table())
        used = money.micros / 1_000_000
        more = f", and what {', '.join(money.unknown[:3])} cost is unknown" if money.unknown else ""
        return int(used * 100 / spec.usd), f"${used:.2f} of ${spec.usd:.2f} {_SPANS[spec.per]}{more}"

    def warning(self, finding: Finding) -> str:
        return f"{finding.rule.name}: {finding.why}; tool calls are refused when it is used up."


KINDS: dict[str, RequirementKind] = {
    kind.name: kind for kind in (Blocking(), StopOnly(), ProvenByEvidence(), Guard(), BranchSize(), Budget())
}


def kind_of(rule: Rule) -> RequirementKind:
    return KINDS[rule.type]


def triggered_rules(settings: "GateSettings", event: Event) -> list[Rule]:
    """Asked several times of each call: by what looks, by what follows and by what is decided. It is worked out once."""
    last = settings.index.last
    # By the identity of the payload: the event itself is made anew when it gets its number.
    if last[0] is not event.data:
        last = settings.index.last = (event.data, _find_triggered_rules(settings, event))
    return last[1]


def _find_triggered_rules(settings: "GateSettings", event: Event) -> list[Rule]:
    rules = settings.index.triggered_by(event)
    if not rules or _is_exempt(settings, event):
        return []
    return [rule for rule in rules if not _is_resolution(rule, event)]


def _is_exempt(settings: "GateSettings", event: Event) -> bool:
    """Writing the plan, and asking the gate itself."""
    data = event.data
    if isinstance(data, ToolPayload) and data.action == "edit":
        # Both names: a link must not make another file look like a plan.
        paths = (*data.paths, *data.written)
        return bool(paths) and all(any_matches(settings.plan_files, path, event.project) for path in paths)
    if written := written_paths(event):
        # A command that writes a plan and starts a program as well is not exempt.
        return (
            all(any_matches(settings.plan_files, path, event.project) for path in written)
            and not acts_of(event).readings
        )
    readings = acts_of(event).readings
    # The blank behind it keeps `holdfast gatekeeper` out.
    return bool(readings) and all(f"{one} ".startswith("holdfast gate ") for one in readings)


def _is_resolution(rule: Rule, event: Event) -> bool:
    """The very thing the requirement asks for: its skill, or the command that would be its proof."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return False
    if data.skill:
        return rule.resolved_by(data.skill)
    return bool(data.command) and kind_of(rule).is_proven and proves_itself(rule, event, data)


# ── a command that brings its own proof ──────────────────────────────────────────────────────────────────────────────


def proves_itself(rule: Rule, event: Event, data: ToolPayload) -> bool:
    """`pytest && git commit`: what it asks for is reached only where the proof passed in the same line, and nothing it
    covers is written there. A line that is the proof itself is never refused for want of it."""
    analysis = analyse_command(data.command, cwd=data.cwd or event.project)
    if analysis.problem:
        return False
    return all(one.command and _is_guarded(rule, one, analysis, event.project) for one in rule.spec.evidence)


def _is_guarded(rule: Rule, one: "Evidence", analysis: Analysis, project: str) -> bool:
    acts = [c.invocation.index for c in analysis.commands if rule.is_about(reading_of(c))]
    proofs = [
        c.invocation.index
        for c in analysis.commands
        if _is_proof(c, one) and (not acts or _ran_where_it_counts(c, one, project))
    ]
    if not proofs:
        return False
    if not acts:
        # Without the act in the line, every way on which it may succeed must have passed the proof.
        return all(_proof_passed(path.ran, path.assumed, proofs) for path in analysis.paths if _may_succeed(path))
    reached = [path for path in analysis.paths if any(index in path.ran for index in acts)]
    # Nothing may be written on a way that reaches the act: it would not be what was proven.
    return all(_proof_passed(path.ran, path.assumed, proofs) for path in reached) and not any(
        path.outputs.keys() - {"terminal"} for path in reached
    )


def _is_proof(command: ShellCommand, one: "Evidence") -> bool:
    invocation = command.invocation
    real = (
        command.ran is not Ran.NO and not invocation.tampered and not invocation.shadowed and not invocation.background
    )
    return real and is_real_run(command.words) and command_matches(reading_of(command), one.command)


def _ran_where_it_counts(command: ShellCommand, one: "Evidence", project: str) -> bool:
    """`cd docs && pytest && git commit` proves nothing of `src/**`."""
    folder = command.invocation.cwd
    return UNKNOWN in folder or touches_globs(reach_in(project, "", [tested_folder(folder)]), one.after_edit)


def _proof_passed(ran: dict[int, bool], assumed: dict[int, int], proofs: list[int]) -> bool:
    return any(index in ran and assumed.get(index) == 0 for index in proofs)


def _may_succeed(path: Any) -> bool:
    status = path.status
    if status.kind == "of":
        # Unless something else is assumed, the last program is taken to succeed.
        path.assumed.setdefault(status.invocation, 0)
        return bool(path.assumed[status.invocation] == 0)
    return not (status.kind == "code" and status.code != 0)

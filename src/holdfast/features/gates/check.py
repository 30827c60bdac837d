"""Is a requirement satisfied, and if not, why not and what resolves it? One answer for hooks, views and replay."""

from dataclasses import dataclass, field
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.kinds import HookPayload
from holdfast.features.gates import branches, registry
from holdfast.features.gates.evidence import Asked
from holdfast.features.gates.refs import BRANCH, EVERYWHERE, FACTS, LIVE, PAUSE, REGISTRY, SESSION, branch_key, place
from holdfast.features.gates.rules import Rule

BASES = ("main", "master")
PERSON_CAN = "a person can approve it"
"""Said to agents: the command that lifts a refusal is not theirs to run."""


@dataclass(frozen=True, slots=True)
class Here:
    """Who asks, and where they stand."""

    session: str
    project: str
    place: str
    branch: str
    now: int
    content: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the worktree at that moment, by what they cover; empty: not looked at."""

    @classmethod
    def of(cls, event: Event) -> "Here":
        content = event.data.content if isinstance(event.data, HookPayload) else {}
        return cls(event.session, event.project, place(event), event.data.get("branch") or "", event.at, content)


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    ok: bool
    why: str
    lines: int = 0

    def as_detail(self) -> dict[str, Any]:
        return {"name": self.rule.name, "type": self.rule.type, "why": self.why, "resolve": resolve(self.rule)}


def resolve(rule: Rule) -> str:
    """What a person does about it, in the fewest words."""
    by_hand = f"holdfast gate satisfy {rule.name}" if by_hand_too(rule) else ""
    way = first_choice(rule).replace(PERSON_CAN, f"holdfast gate approve {rule.name}")
    return " or ".join(filter(None, (way, by_hand))) or "change the settings"


def first_choice(rule: Rule) -> str:
    """Without what can be done by hand; empty when there is nothing else."""
    spec = rule.spec
    if rule.type == "evidence":
        return " and ".join(_fact(one) for one in spec.evidence)
    if rule.type == "guard" and spec.guard_type == "protected_branch":
        return f"git switch -c NAME, or {PERSON_CAN}"
    if rule.type in ("dynamic", "guard"):
        return PERSON_CAN
    skills = [f"/{skill.lstrip('/')}" for skill in (*spec.auto_resolve_skill, *spec.satisfied_by_skill)]
    if not skills and not by_hand_too(rule):
        return PERSON_CAN
    return " or ".join(dict.fromkeys(skills))


def by_hand_too(rule: Rule) -> bool:
    return rule.spec.manual and rule.spec.agent_may_satisfy and rule.type in ("blocking", "stop_only")


def _fact(one: Any) -> str:
    if one.command:
        return f"run `{one.command[0]}` so that it passes"
    if one.skill:
        return f"run /{one.skill[0].lstrip('/')}"
    return "commit your work" if one.commit else f"let the UAT scenario {one.uat} pass"


class Checker:
    """Looks documents up once, however many rules ask."""

    def __init__(self, state: State, here: Here) -> None:
        self.state, self.here = state, here
        self._seen: dict[str, Any] = {}

    def find(self, rule: Rule) -> Finding:
        return FINDERS[rule.type](self, rule)

    def paused(self) -> bool:
        here = self.here
        for where in (EVERYWHERE, here.place, f"session:{here.session}"):
            doc = self.state.get(PAUSE, where)
            if doc is not None and rests(doc, here.now):
                return True
        return False

    @property
    def session(self) -> dict[str, Any]:
        return self._doc(SESSION, self.here.session)

    @property
    def facts(self) -> dict[str, Any]:
        return self._doc(FACTS, self.here.project)

    @property
    def branch(self) -> dict[str, Any]:
        return self._doc(BRANCH, branch_key(self.here.place, self.here.branch))

    def _doc(self, kind: str, key: str) -> dict[str, Any]:
        if kind not in self._seen:
            self._seen[kind] = self.state.get(kind, key) or {}
        return self._seen[kind]

    def entry(self, rule: Rule) -> dict[str, Any] | None:
        here = self.here
        found = branches.entry_for(self.branch, rule.name, here.session, here.now)
        if found or rule.scope != "session" or here.branch in BASES:
            return found
        return next(filter(None, (self._from_base(rule, base) for base in BASES)), None)

    def _from_base(self, rule: Rule, base: str) -> dict[str, Any] | None:
        """Planned on main, then branched off: the session's plan goes with it. What main shares does not."""
        doc = self.state.get(BRANCH, branch_key(self.here.place, base))
        return branches.own_entry(doc, rule.name, self.here.session, self.here.now)

    def proved_other_content(self, rule: Rule) -> bool:
        """Whether this session showed a green run of something else than what it leaves."""
        return self._asked(rule).proved_other_content()

    def is_let_through(self, rule: Rule) -> bool:
        """Satisfied, proven or approved: whatever was done was allowed."""
        if rule.type == "guard":
            return self._approved(rule) is not None
        return self.find(rule).ok

    def _stored(self, rule: Rule) -> Finding:
        entry = self.entry(rule)
        return Finding(rule, bool(entry), _by(entry) if entry else "not satisfied")

    def _approved(self, rule: Rule) -> Finding | None:
        entry = self.entry(rule)
        return Finding(rule, True, _by(entry)) if entry and entry.get("approved") else None

    def changed_tests(self, rule: Rule) -> list[str]:
        return self._asked(rule).changed_tests() if rule.type == "evidence" else []

    def facts_for(self, rule: Rule) -> list[dict[str, Any]]:
        """The latest fact for each thing it asks for, whether it counts or not."""
        return self._asked(rule).latest() if rule.type == "evidence" else []

    def _asked(self, rule: Rule) -> Asked:
        used = self.session.get("used", {}).get(rule.name, 0) if rule.scope == "single_use" else 0
        return Asked(rule, self.facts, self.here, used)

    def _proven(self, rule: Rule) -> Finding:
        asked = self._asked(rule)
        why = asked.missing()
        return self._approved(rule) or Finding(rule, False, why) if why else Finding(rule, True, asked.proven())

    def _guarded(self, rule: Rule) -> Finding:
        """A condition of the moment: evaluated each time, never stored."""
        why = self._on_protected(rule) if rule.spec.guard_type == "protected_branch" else self._not_alone()
        return self._approved(rule) or Finding(rule, False, why) if why else Finding(rule, True, "holds")

    def _on_protected(self, rule: Rule) -> str:
        branch = self.here.branch
        return f"this is the protected branch {branch}" if branch and branch in rule.spec.protected_branches else ""

    def _not_alone(self) -> str:
        others = registry.others(self.state.get(LIVE, REGISTRY.key), self.here.session, self.here.project)
        return f"another session works here: {', '.join(sorted(others)[:3])}" if others else ""

    def _sized(self, rule: Rule) -> Finding:
        size = self.facts.get("sizes", {}).get(self.here.branch)
        if not size:
            return Finding(rule, True, "not measured yet")
        lines, limit = size["lines"], rule.spec.thresholds.block
        why = f"{lines} changed lines since {size['base'] or 'the base'}"
        if lines >= limit:
            return self._approved(rule) or Finding(rule, False, f"{why} (limit {limit})", lines)
        return Finding(rule, True, why, lines)


def rests(doc: dict[str, Any], now: int) -> bool:
    return doc["status"] == "paused" and (not doc["until"] or now < doc["until"])


def _by(entry: dict[str, Any]) -> str:
    if entry["by"] == "agent":
        return "said by the agent"
    return f"{'approved' if entry.get('approved') else 'satisfied'} by {entry['by'] or 'hand'}"


FINDERS = {
    "blocking": Checker._stored,
    "stop_only": Checker._stored,
    "evidence": Checker._proven,
    "guard": Checker._guarded,
    "dynamic": Checker._sized,
}

"""Kind `evidence`: only recorded facts (a run that passed, a skill, a commit, a UAT scenario) satisfy it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.core.section import ALONE
from holdfast.features.gates.fields import Glob, Globs, Part, Seconds, Skills, Words
from holdfast.features.gates.kinds.base import Finding, RequirementKind, settings_of

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement


class Evidence(Part):
    """One recorded fact. It counts only if nothing it covers (`after_edit`) changed since."""

    command: Annotated[
        tuple[Glob, ...], Meta(max_length=20, description="Globs; one such command must have exited 0."), ALONE
    ] = ()
    check: Annotated[
        Literal["", "test", "lint", "types", "build"],
        Meta(description="A check of this kind passed that covers the files, whichever command ran it."),
    ] = ""
    skill: Annotated[Skills, Meta(description="One of these skills ran.")] = ()
    commit: Annotated[bool, Meta(description="A commit was made.")] = False
    uat: Annotated[Words, Meta(description="This UAT scenario passed.")] = ""
    after_edit: Annotated[Globs, Meta(description="The files the fact covers.")] = ("**",)
    whole: Annotated[bool, Meta(description="Only a run of the whole suite counts, not a part of it.")] = False
    strict: Annotated[
        bool, Meta(description="A run does not count if its configuration, plugins or program changed in the session.")
    ] = False
    run: Annotated[Words, Meta(description="The command to suggest, with its folder; default: the first glob.")] = ""
    within: Annotated[Seconds, Meta(description="Seconds for which it counts; 0 = until something changes.")] = 0

    def __post_init__(self) -> None:
        if sum(map(bool, (self.command, self.check, self.skill, self.commit, self.uat))) != 1:
            raise ValueError("name exactly one of command, check, skill, commit, uat")

    @property
    def is_run(self) -> bool:
        """Whether a run proves it, which is about content."""
        return bool(self.command or self.check)


class EvidenceSettings(Part):
    evidence: Annotated[tuple[Evidence, ...], Meta(max_length=10), ALONE] = ()


def evidence_of(spec: "Requirement") -> tuple[Evidence, ...]:
    return settings_of(EvidenceSettings, spec).evidence


def asks_for_as_much(was: Iterable[Evidence], now: Iterable[Evidence]) -> bool:
    """Every earlier fact is still asked for, perhaps with `whole` or `strict` on top."""
    wanted = list(now)
    return all(any(_is_as_strict(before, one) for one in wanted) for before in was)


def _is_as_strict(was: Evidence, now: Evidence) -> bool:
    return (
        now.whole >= was.whole and now.strict >= was.strict and was == replace(now, whole=was.whole, strict=was.strict)
    )


def covered_globs(rules: Iterable["Rule"]) -> list[tuple[str, ...]]:
    """What the evidence of each rule covers."""
    return [one.after_edit for rule in rules for one in evidence_of(rule.spec)]


class ProvenByEvidence(RequirementKind):
    name = "evidence"
    summary = "Only recorded facts satisfy it (`evidence`)."
    settings = EvidenceSettings
    comparisons = {"evidence": asks_for_as_much}
    is_proven = True
    always_at_stop = True

    def check_settings(self, spec: "Requirement") -> None:
        if not evidence_of(spec):
            raise ValueError("type evidence needs `evidence:`, e.g. {command: 'pytest*', after_edit: 'src/**'}")

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        """An edit cannot be proven before it is made, so it is checked at the end of the turn; a command can wait."""
        patterns = spec.command_pattern or any(not isinstance(t, str) and t.command_pattern for t in spec.trigger_tools)
        return bool(patterns), not patterns

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        question = checker.proof_question(rule)
        why = question.missing()
        return checker.approved(rule) or Finding(rule, False, why) if why else Finding(rule, True, question.proven())

    def remedy(self, rule: "Rule") -> str:
        return " and ".join(_fact_remedy(one) for one in evidence_of(rule.spec))

    def why_not_by_hand(self, rule: "Rule") -> str:
        return f"{rule.name} is satisfied by recorded facts only"


def command_to_run(one: Evidence) -> str:
    """The command that a person or an agent would type."""
    return one.run or (one.command[0].replace("*", " ").strip() if one.command else f"a {one.check} run")


def _fact_remedy(one: Evidence) -> str:
    if one.is_run:
        return f"run `{command_to_run(one)}` so that it passes"
    if one.skill:
        return f"run /{one.skill[0].lstrip('/')}"
    return "commit your work" if one.commit else f"let the UAT scenario {one.uat} pass"


KIND = ProvenByEvidence()

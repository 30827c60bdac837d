"""The settings of the gates: requirements in the seed's own YAML, each of them checked as a whole."""

import re
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from holdfast.features.gates.builtin import BUILT_IN
from holdfast.features.gates.rules import Index, Rule, compiled

Type = Literal["blocking", "dynamic", "guard", "stop_only", "evidence"]
Scope = Literal["session", "branch", "single_use", "permanent"]
Check = Literal["tool", "stop", "both"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Glob = Annotated[str, Field(min_length=1, max_length=300)]
Words = Annotated[str, Field(max_length=200)]
WHOLE: Any = {"whole": True}
YEAR = 366 * 86_400


def a_list(value: Any) -> Any:
    """`paths: src/**` is `paths: [src/**]`: people write both."""
    return [value] if isinstance(value, str | dict) else value


def a_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=WHOLE)


class Trigger(Part):
    """A tool, and for a shell the command it is about to run, or the paths it is about to touch."""

    tool: Words = Field("Bash", description="A tool's name, or what it does: edit, shell, mcp …")
    command_pattern: str = Field("", max_length=1000, json_schema_extra={"guarded": "pattern"})
    paths: tuple[Glob, ...] = Field((), max_length=50)

    _listed = field_validator("paths", mode="before")(a_list)
    _compiles = field_validator("command_pattern")(a_pattern)


class Evidence(Part):
    """One recorded fact. It counts only if nothing it covers (`after_edit`) changed since."""

    command: tuple[Glob, ...] = Field((), max_length=20, description="Globs; one such command must have exited 0.")
    skill: tuple[Words, ...] = Field((), max_length=20, description="One of these skills ran.")
    commit: bool = Field(False, description="A commit was made.")
    uat: Words = Field("", description="This UAT scenario passed.")
    after_edit: tuple[Glob, ...] = Field(("**",), max_length=50, description="What the fact is about.")
    within: int = Field(0, ge=0, le=YEAR, description="Seconds for which it counts; 0 = until something changes.")

    _listed = field_validator("command", "skill", "after_edit", mode="before")(a_list)

    @model_validator(mode="after")
    def _one_fact(self) -> "Evidence":
        if sum(map(bool, (self.command, self.skill, self.commit, self.uat))) != 1:
            raise ValueError("name exactly one of command, skill, commit, uat")
        return self


class Thresholds(Part):
    warn: int = Field(250, ge=1)
    block: int = Field(400, ge=1)


class Requirement(Part):
    enabled: bool = True
    type: Type = "blocking"
    scope: Scope = "session"
    description: str = Field("", max_length=2000)
    message: str = Field("", max_length=5000, description="Shown when it refuses.")
    blocking_message: str = Field("", max_length=5000)
    checklist: tuple[str, ...] = Field((), max_length=50)
    trigger_tools: tuple[Words | Trigger, ...] = Field(("edit",), max_length=50)
    command_pattern: str = Field("", max_length=1000, json_schema_extra={"guarded": "pattern"})
    paths: tuple[Glob, ...] = Field((), max_length=50, description="Only these files trigger it.")
    except_paths: tuple[Glob, ...] = Field((), max_length=50, description="These files never trigger it.")
    auto_resolve_skill: tuple[Words, ...] = Field((), max_length=20)
    satisfied_by_skill: tuple[Words, ...] = Field((), max_length=20)
    manual: bool = Field(True, description="`holdfast gate satisfy` may satisfy it.")
    check: Check | None = Field(None, description="Where it refuses: at the tool, at the end of the turn, or both.")
    ttl: int = Field(0, ge=0, le=YEAR, description="Seconds for which it stays satisfied; 0 = as its scope says.")
    evidence: tuple[Evidence, ...] = Field((), max_length=10)
    carry_over: int = Field(0, ge=0, le=YEAR, description="Seconds: what the last session satisfied holds so long.")
    guard_type: Literal["", "protected_branch", "single_session"] = ""
    protected_branches: tuple[Words, ...] = Field(("main", "master"), max_length=50)
    thresholds: Thresholds = Thresholds()
    base: Words = Field("", description="The branch that sizes are measured from; empty = main or master.")
    calculator: Words = "branch_size_calculator"
    cache_ttl: int = Field(60, ge=1, le=YEAR)
    approval_ttl: int = Field(3600, ge=1, le=YEAR)

    _listed = field_validator(
        "trigger_tools", "paths", "except_paths", "auto_resolve_skill", "satisfied_by_skill", "evidence",
        "protected_branches", mode="before",
    )(a_list)  # fmt: skip
    _compiles = field_validator("command_pattern")(a_pattern)

    @field_validator("carry_over", mode="before")
    @classmethod
    def _window(cls, value: Any) -> Any:
        return {True: 300, False: 0}.get(value, value) if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _complete(self) -> "Requirement":
        if self.type == "evidence" and not self.evidence:
            raise ValueError("type evidence needs `evidence:`, e.g. {command: 'pytest*', after_edit: 'src/**'}")
        if self.type == "guard" and not self.guard_type:
            raise ValueError("type guard needs `guard_type:` protected_branch or single_session")
        return self


class SessionStart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    inject_context: bool = True


class Stop(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    verify_requirements: bool = True
    verify_scopes: tuple[Scope, ...] = ("session",)
    max_refusals: int = Field(3, ge=1, le=8, description="Refusals in a row without progress; then it lets go.")


class SessionEnd(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    clear_session_state: bool = False


class Hooks(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    session_start: SessionStart = SessionStart()
    stop: Stop = Stop()
    session_end: SessionEnd = SessionEnd()


class GateSettings(BaseModel):
    """No requirement, no gate: with nothing written anywhere nothing is ever refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str | float = "1.0"
    enabled: bool = True
    inherit: bool = Field(True, description="false: what the layers below say is left out.")
    requirements: dict[Name, Requirement] = Field({}, max_length=200)
    hooks: Hooks = Hooks()
    plan_files: tuple[Glob, ...] = Field(("**/.claude/plans/**", "**/*.plan.md"), description="Never refused.")
    agents_may_approve: bool = Field(
        False, description="`gate approve` also from an agent's own shell.", json_schema_extra={"guarded": [False]}
    )
    files: bool = Field(True, description="Write the seed's files (~/.claude/sessions.json, .git/requirements/).")
    logging: dict[str, Any] = {}

    _notices: tuple[str, ...] = PrivateAttr(())

    @field_validator("requirements", mode="before")
    @classmethod
    def _with_what_is_built_in(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: {**BUILT_IN.get(name, {}), **given} if isinstance(given, dict) else given
                for name, given in value.items()}  # fmt: skip

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Made once per settings file, not once per hook."""
        if not self.enabled:
            return ()
        return tuple(compiled(name, one) for name, one in self.requirements.items() if one.enabled)

    @cached_property
    def index(self) -> Index:
        return Index(self.rules)

    @cached_property
    def by_name(self) -> dict[str, Rule]:
        return {rule.name: rule for rule in self.rules}

    @property
    def notices(self) -> tuple[str, ...]:
        return self._notices

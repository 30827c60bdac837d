"""The settings of the gates: requirements in the seed's own YAML, each of them checked as a whole."""

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from holdfast.core.data_files import load_data
from holdfast.core.section import ALONE, After, Before, Section
from holdfast.features.gates.fields import YEAR_S, Glob, Globs, Part, Seconds, Skills, Spec, Words
from holdfast.features.gates.kinds import KINDS
from holdfast.features.gates.rules.in_force import digest_of, keep_strict
from holdfast.features.gates.rules.triggers import Index, Rule, compile_rule


class _Presets(msgspec.Struct, frozen=True):
    """`presets.toml`: requirements by name, and sets of them."""

    built_in: dict[str, Spec]
    presets: dict[str, dict[str, Spec]]


@cache
def presets() -> _Presets:
    return load_data(__file__, "presets", _Presets)


if TYPE_CHECKING:
    Type = str
else:
    Type = Literal[tuple(KINDS)]
Scope = Literal["session", "branch", "single_use", "permanent"]
Check = Literal["tool", "stop", "both"]
# Names of the original framework, which `_translate_names` replaces.
OTHER_NAMES = frozenset(("threshold", "calculation_cache_ttl", "branches", "auto_satisfy", "stop_only"))
# Attached to settings without being a field, so copies would lose it.
KEPT = ("notices", "changed_at", "user", "foreign")
NAME_RULE = "must be 1 to 64 letters, digits, `_`, `.` or `-`"
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$", extra={"says": NAME_RULE})]
Message = Annotated[str, Meta(max_length=5000)]


def check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


def _carry_over_seconds(value: Any) -> Any:
    """`carry_over: true` means five minutes."""
    return (300 if value else 0) if isinstance(value, bool) else value


def _complete_requirements(requirements: Any) -> Any:
    """With what is built in under that name, and with what goes without saying."""
    if not isinstance(requirements, dict):
        return requirements
    return {
        name: _complete({**presets().built_in.get(name, {}), **spec}) if isinstance(spec, dict) else spec
        for name, spec in requirements.items()
    }


def _complete(spec: Spec) -> Spec:
    kind = KINDS.get(str(spec.get("type", "blocking")))
    spec = _translate_names(kind.complete_settings(spec) if kind else spec)
    # A command pattern alone applies to the shell.
    return {"trigger_tools": ["shell"], **spec} if spec.get("command_pattern") else spec


def _translate_names(spec: Spec) -> Spec:
    """Replace the original framework's names that all kinds share."""
    translated = {name: value for name, value in spec.items() if name not in OTHER_NAMES}
    if isinstance(auto := spec.get("auto_satisfy"), dict) and auto.get("on_skill_complete"):
        translated.setdefault("satisfied_by_skill", auto["on_skill_complete"])
    if spec.get("stop_only"):
        translated.setdefault("check", "stop")
    return translated


CommandPattern = Annotated[str, Meta(max_length=1000, extra={"guarded": "pattern"}), After(check_pattern)]


class Trigger(Part):
    """A tool, and for a shell the command it is about to run, or the paths it is about to touch."""

    tool: Annotated[Words, Meta(description="A tool's name, or what it does: edit, shell, mcp …")] = "Bash"
    command_pattern: CommandPattern = ""
    paths: Globs = ()


class Requirement(Part):
    enabled: bool = True
    type: Type = "blocking"
    scope: Scope = "session"
    description: Annotated[str, Meta(max_length=2000)] = ""
    message: Annotated[Message, Meta(description="Shown when it refuses.")] = ""
    blocking_message: Message = ""
    checklist: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    trigger_tools: Annotated[tuple[Words | Trigger, ...], Meta(max_length=50), ALONE] = ("edit",)
    command_pattern: CommandPattern = ""
    paths: Annotated[Globs, Meta(description="Only these files trigger it.")] = ()
    except_paths: Annotated[Globs, Meta(description="These files never trigger it.")] = ()
    auto_resolve_skill: Skills = ()
    satisfied_by_skill: Skills = ()
    manual: Annotated[bool, Meta(description="`holdfast gate satisfy` may satisfy it.")] = True
    agent_may_satisfy: Annotated[
        bool, Meta(description="`holdfast gate satisfy` counts from an agent too, marked as said by the agent.")
    ] = True
    check: Annotated[
        Check | None, Meta(description="Where it refuses: at the tool, at the end of the turn, or both.")
    ] = None
    ttl: Annotated[Seconds, Meta(description="Seconds for which it stays satisfied; 0 = as its scope says.")] = 0
    carry_over: Annotated[
        Seconds,
        Meta(description="Seconds: what the last session satisfied holds so long."),
        Before(_carry_over_seconds),
    ] = 0
    auto_satisfy: Annotated[
        dict[str, Any], Meta(description="`on_skill_complete`: the original framework's name of satisfied_by_skill.")
    ] = {}
    stop_only: Annotated[bool, Meta(description="Its name of check: stop.")] = False
    deprecated: bool = False
    deprecated_message: Message = ""
    approval_ttl: Annotated[int, Meta(ge=1, le=YEAR_S)] = 3600
    when_unsure: Annotated[
        Literal["allow", "deny"], Meta(description="What a hook does that cannot reach the daemon.")
    ] = "allow"

    def __post_init__(self) -> None:
        KINDS[self.type].check_settings(self)


def _with_kind_fields() -> Any:
    """`Requirement` with the fields of every kind: a settings file writes all of them in one place."""
    fields = [
        (field.name, field.type, msgspec.field(default=field.default))
        for kind in {kind.settings: kind for kind in KINDS.values()}.values()
        for field in msgspec.structs.fields(kind.settings)
    ]
    return msgspec.defstruct(
        "Requirement",
        fields,
        bases=(Requirement,),
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        dict=True,
    )


if TYPE_CHECKING:
    AnyRequirement = Requirement
else:
    AnyRequirement = _with_kind_fields()


class Open(Section, forbid_unknown_fields=False):
    """The seed has more settings here than we have a use for; they are no mistakes."""


class SessionStart(Open):
    inject_context: bool = True


class Stop(Open):
    verify_requirements: bool = True
    verify_scopes: tuple[Scope, ...] = ("session",)
    max_refusals: Annotated[
        int, Meta(ge=1, le=8, description="Refusals in a row without progress; the next stop is allowed.")
    ] = 3


class SessionEnd(Open):
    clear_session_state: bool = False


class Hooks(Open):
    session_start: SessionStart = SessionStart()
    stop: Stop = Stop()
    session_end: SessionEnd = SessionEnd()


class GateSettings(Section):
    """No requirement, no gate: with nothing written anywhere nothing is ever refused."""

    version: str | float = "1.0"
    enabled: bool = True
    inherit: Annotated[bool, Meta(description="false: what the layers below say is left out.")] = True
    requirements: Annotated[dict[Name, AnyRequirement], Meta(max_length=200), Before(_complete_requirements)] = {}
    hooks: Hooks = Hooks()
    plan_files: Annotated[tuple[Glob, ...], Meta(description="Never refused.")] = (
        "**/.claude/plans/**",
        "**/*.plan.md",
    )
    agents_may_approve: Annotated[
        bool, Meta(description="`gate approve` also from an agent's own shell.", extra={"guarded": [False]})
    ] = False
    code_without_terminal: Annotated[
        bool, Meta(description="A person without a terminal types the code that the dashboard shows.")
    ] = False
    files: Annotated[
        bool, Meta(description="Write the files that older scripts read (~/.claude/sessions.json, .git/requirements/).")
    ] = True
    logging: dict[str, Any] = {}

    @property
    def changed_at(self) -> int:
        """When the files it was made from were last changed, in ms; 0 where that is not known."""
        return int(self.__dict__.get("changed_at", 0))

    @property
    def user(self) -> "GateSettings":
        """What the user's own files say; all of it where no project has a say."""
        settings = self.__dict__.get("user")
        return settings if isinstance(settings, GateSettings) else self

    @property
    def foreign(self) -> frozenset[str]:
        """Requirements whose text comes from a project that nobody trusted."""
        return frozenset(self.__dict__.get("foreign", ()))

    @property
    def waiting(self) -> tuple[str, ...]:
        """What the settings on disk would loosen: it waits for a person."""
        return tuple(self.__dict__.get("waiting", ()))

    @cached_property
    def digest(self) -> str:
        return digest_of(self)

    @cached_property
    def protected_branches(self) -> tuple[str, ...]:
        protected = (branch for rule in self.rules for branch in rule.kind.protected_branches(rule.spec))
        return tuple(dict.fromkeys(protected))

    def within(self, base: "GateSettings", foreign: bool) -> "GateSettings":
        """With the user's own rules known. A foreign project can ask for more than those, never for less."""
        if not foreign:
            self.__dict__["user"] = base
            return self
        settings, differences = keep_strict(base, self)
        # A copy: the notices below belong to this project and not to the shared settings.
        if settings is self:
            settings = msgspec.structs.replace(self)
        messages = [f"The project's settings cannot loosen your rules: {text}." for text in differences]
        settings.__dict__["notices"] = (*self.notices, *messages)
        settings.__dict__["user"] = base
        settings.__dict__["foreign"] = frozenset(
            name for name, one in settings.requirements.items() if base.requirements.get(name) != one
        )
        return settings

    def in_force(self, *accepted: "GateSettings") -> "tuple[GateSettings, list[str]]":
        """With what was in force before wherever this would loosen it."""
        settings, differences = self, list[str]()
        for before in accepted:
            settings, more = keep_strict(before, settings)
            differences += more
        if settings is not self:
            settings.__dict__.update({name: self.__dict__[name] for name in KEPT if name in self.__dict__})
        return settings, list(dict.fromkeys(differences))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Made once per settings file, not once per hook."""
        if not self.enabled:
            return ()
        return tuple(
            compile_rule(name, one, KINDS[one.type], name in self.foreign)
            for name, one in self.requirements.items()
            if one.enabled
        )

    @cached_property
    def index(self) -> Index:
        return Index(self.rules)

    @cached_property
    def by_name(self) -> dict[str, Rule]:
        return {rule.name: rule for rule in self.rules}

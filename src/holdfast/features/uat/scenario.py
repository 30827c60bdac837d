"""What a scenario says: the shape of the YAML files under `uat/scenarios/`, and their published JSON Schema."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.core.section import Before, Section
from holdfast.features.uat.judge import CONDITIONS, conditions
from holdfast.features.uat.model import LONGEST_NAME, LONGEST_TEXT, MOST_CHECKS, MOST_STEPS

SCHEMA_TITLE = "A UAT scenario of Holdfast"
LONGEST_WAIT_MS = 86_400_000


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME), Before(_stripped)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Number = Annotated[int, Meta(ge=1, le=MOST_STEPS)]
Milliseconds = Annotated[int, Meta(ge=1, le=LONGEST_WAIT_MS)]
Status = Annotated[int, Meta(ge=100, le=599)]
ExitCode = Annotated[int, Meta(ge=0, le=255)]
Fields = Annotated[dict[str, Any], Meta(max_length=20)]


class Step(Section):
    action: Annotated[Name, Meta(description="What is done, e.g. navigate, fill, click, verify, screenshot, shell.")]
    description: Annotated[Text, Meta(description="For people.")] = ""
    tool: Annotated[Text, Meta(description="A glob over tool names; several with |. Default: by the action.")] = ""
    arguments: Annotated[Fields, Meta(description="What the call's arguments must be: texts are globs.")] = {}
    expected_ms: Annotated[
        Milliseconds | None, Meta(description="How long it should take; a report names slower ones.")
    ] = None
    calls: Annotated[int, Meta(ge=1, le=100, description="So many successful calls make the step.")] = 1
    public: Annotated[bool, Meta(description="Values typed in this step are no secrets and may be kept.")] = False


class Condition(Section):
    """Everything named here must hold for one and the same tool result."""

    contains: Annotated[Text | None, Meta(description="This text is in the result.")] = None
    not_contains: Annotated[Text | None, Meta(description="This text is not in the result.")] = None
    url: Annotated[
        Text | None, Meta(description="A glob over the page's address, or its path when it begins with /.")
    ] = None
    title: Annotated[Text | None, Meta(description="A glob over the page's title.")] = None
    status: Annotated[Status | None, Meta(description="The HTTP status.")] = None
    exit_code: Annotated[ExitCode | None, Meta(description="The exit code of a shell command.")] = None
    max_ms: Annotated[Milliseconds | None, Meta(description="The call took at most this long.")] = None
    no_errors: Annotated[bool | None, Meta(description="The tool reported no console or network error.")] = None
    fields: Annotated[Fields | None, Meta(description="a.b.c: value, in a JSON result.")] = None


class Assertion(Condition):
    description: Annotated[Text, Meta(description="What is true when it holds.")] = ""
    step: Annotated[Number | None, Meta(description="Judged on this step's results; without it on any.")] = None

    def __post_init__(self) -> None:
        if not conditions(self.plain()):
            raise ValueError(f"an assertion needs one of: {', '.join(CONDITIONS)}")


class HealthCheck(Condition):
    type: Annotated[Name, Meta(description="page_load: judged on a step's result; http: a request of our own.")] = (
        "page_load"
    )
    step: Annotated[Number | None, Meta(description="Made when this step ended; without it at the start.")] = None
    path: Annotated[Text | None, Meta(description="http: below base_url.")] = None


class Scenario(Section, kw_only=True):
    name: Name
    description: Text = ""
    base_url: Annotated[Text, Meta(description="The address of what is tested.")] = ""
    estimated_ms: Annotated[Milliseconds | None, Meta(description="Default: the sum of the steps' expected_ms.")] = None
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=MOST_STEPS)]
    assertions: Annotated[tuple[Assertion, ...], Meta(max_length=MOST_CHECKS)] = ()
    health_checks: Annotated[tuple[HealthCheck, ...], Meta(max_length=MOST_CHECKS)] = ()


def misplaced(scenario: Scenario) -> list[tuple[tuple[Any, ...], str]]:
    """(place, what is wrong): parts that name a step the scenario does not have."""
    steps = len(scenario.steps)
    parts: dict[str, tuple[Any, ...]] = {"assertions": scenario.assertions, "health_checks": scenario.health_checks}
    return [
        ((what, number, "step"), f"there is no step {part.step}, only {steps}")
        for what, listed in parts.items()
        for number, part in enumerate(listed)
        if part.step and part.step > steps
    ]


def plan_of(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a run keeps it: plain, bounded, without what was not said."""
    plan = scenario.plain(none=False)
    plan["estimated_ms"] = scenario.estimated_ms or sum(s.expected_ms or 0 for s in scenario.steps)
    return plan


def schema() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([Scenario], ref_template="#/$defs/{name}")
    whole = parts.pop(Scenario.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": SCHEMA_TITLE,
        "$defs": parts,
    }

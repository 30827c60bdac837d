"""What a scenario says: the shape of the YAML files under `uat/scenarios/`, and their published JSON Schema."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from holdfast.features.uat.judge import CONDITIONS, conditions
from holdfast.features.uat.model import LONGEST_NAME, LONGEST_TEXT, MOST_CHECKS, MOST_STEPS

SCHEMA_TITLE = "A UAT scenario of Holdfast"
LONGEST_WAIT_MS = 86_400_000

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Number = Annotated[int, Field(ge=1, le=MOST_STEPS)]
Milliseconds = Annotated[int, Field(ge=1, le=LONGEST_WAIT_MS)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Step(_Part):
    action: Name = Field(description="What is done, e.g. navigate, fill, click, verify, screenshot, shell.")
    description: Text = Field("", description="For people.")
    tool: Text = Field("", description="A glob over tool names; several with |. Default: by the action.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, max_length=20, description="What the call's arguments must be: texts are globs."
    )
    expected_ms: Milliseconds | None = Field(None, description="How long it should take; a report names slower ones.")
    calls: int = Field(1, ge=1, le=100, description="So many successful calls make the step.")


class Condition(_Part):
    """Everything named here must hold for one and the same tool result."""

    contains: Text | None = Field(None, description="This text is in the result.")
    not_contains: Text | None = Field(None, description="This text is not in the result.")
    url: Text | None = Field(None, description="A glob over the page's address, or its path when it begins with /.")
    title: Text | None = Field(None, description="A glob over the page's title.")
    status: int | None = Field(None, ge=100, le=599, description="The HTTP status.")
    exit_code: int | None = Field(None, ge=0, le=255, description="The exit code of a shell command.")
    max_ms: Milliseconds | None = Field(None, description="The call took at most this long.")
    no_errors: bool | None = Field(None, description="The tool reported no console or network error.")
    fields: dict[str, Any] | None = Field(None, max_length=20, description="a.b.c: value, in a JSON result.")


class Assertion(Condition):
    description: Text = Field("", description="What is true when it holds.")
    step: Number | None = Field(None, description="Judged on this step's results; without it on any.")

    @model_validator(mode="after")
    def _says_something(self) -> "Assertion":
        if not conditions(self.model_dump()):
            raise ValueError(f"an assertion needs one of: {', '.join(CONDITIONS)}")
        return self


class HealthCheck(Condition):
    type: Name = Field("page_load", description="page_load: judged on a step's result; http: a request of our own.")
    step: Number | None = Field(None, description="Made when this step ended; without it at the start.")
    path: Text | None = Field(None, description="http: below base_url.")


class Scenario(_Part):
    name: Name
    description: Text = ""
    base_url: Text = Field("", description="The address of what is tested.")
    estimated_ms: Milliseconds | None = Field(None, description="Default: the sum of the steps' expected_ms.")
    steps: tuple[Step, ...] = Field(min_length=1, max_length=MOST_STEPS)
    assertions: tuple[Assertion, ...] = Field((), max_length=MOST_CHECKS)
    health_checks: tuple[HealthCheck, ...] = Field((), max_length=MOST_CHECKS)


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
    plan = scenario.model_dump(mode="json", exclude_none=True)
    plan["estimated_ms"] = scenario.estimated_ms or sum(s.expected_ms or 0 for s in scenario.steps)
    return plan


def schema() -> dict[str, Any]:
    made = Scenario.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": SCHEMA_TITLE}

"""What a scenario says: the shape of the YAML files under `uat/scenarios/`, and their published JSON Schema."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from holdfast.core.section import Before, Section
from holdfast.core.times import DAY
from holdfast.features.uat.drivers.assertions import CONDITIONS, conditions_of
from holdfast.features.uat.settings import LONGEST_NAME, LONGEST_TEXT, MOST_CHECKS, MOST_STEPS

SCHEMA_TITLE = "A UAT scenario of Holdfast"
LONGEST_WAIT_MS = DAY


def _strip_text(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME), Before(_strip_text)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Number = Annotated[int, Meta(ge=1, le=MOST_STEPS)]
Milliseconds = Annotated[int, Meta(ge=1, le=LONGEST_WAIT_MS)]
Status = Annotated[int, Meta(ge=100, le=599)]
Count = Annotated[int, Meta(ge=0, le=1000)]
ExitCode = Annotated[int, Meta(ge=0, le=255)]
Fields = Annotated[dict[str, Any], Meta(max_length=20)]


Variables = Annotated[
    dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][\w-]*$")], str | int | float | bool], Meta(max_length=50)
]
Tag = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.:-]{0,49}$")]


class Step(Section):
    action: Annotated[
        str,
        Meta(max_length=LONGEST_NAME, description="What is done: navigate, fill, click, verify, screenshot, shell…"),
    ] = ""
    use: Annotated[Text, Meta(description="Instead of an action: the steps of shared/NAME.yaml come here.")] = ""
    with_: Annotated[Variables, Meta(description="Variables for the shared steps.")] = msgspec.field(
        default_factory=dict, name="with"
    )
    description: Annotated[Text, Meta(description="For people.")] = ""
    tool: Annotated[Text, Meta(description="A glob over tool names; several with |. Default: by the action.")] = ""
    arguments: Annotated[Fields, Meta(description="What the call's arguments must be: texts are globs.")] = {}
    expected_ms: Annotated[
        Milliseconds | None, Meta(description="How long it should take; a report names slower ones.")
    ] = None
    budget_ms: Annotated[Milliseconds | None, Meta(description="A step that takes longer has failed.")] = None
    calls: Annotated[int, Meta(ge=1, le=100, description="So many successful calls make the step.")] = 1
    public: Annotated[bool, Meta(description="Values typed in this step are no secrets and may be kept.")] = False

    def __post_init__(self) -> None:
        if bool(self.action.strip()) == bool(self.use):
            raise ValueError("a step needs `action`, or `use` with the name of shared steps")


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
    clean_console: Annotated[bool | None, Meta(description="The page wrote no error to its console.")] = None
    max_violations: Annotated[
        Count | None, Meta(description="axe found at most so many violations; judged where it ran.")
    ] = None


class Assertion(Condition):
    description: Annotated[Text, Meta(description="What is true when it holds.")] = ""
    step: Annotated[Number | None, Meta(description="Judged on this step's results; without it on any.")] = None

    def __post_init__(self) -> None:
        if not conditions_of(self):
            raise ValueError(f"an assertion needs one of: {', '.join(CONDITIONS)}")


class HealthCheck(Condition):
    type: Annotated[Name, Meta(description="page_load: judged on a step's result; http: a request of our own.")] = (
        "page_load"
    )
    step: Annotated[Number | None, Meta(description="Made when this step ended; without it at the start.")] = None
    path: Annotated[Text | None, Meta(description="http: below base_url.")] = None


class Precondition(Section):
    """What must be true before: sent to the agent, and asked of the server where there is a `path`."""

    description: Text = ""
    path: Annotated[Text | None, Meta(description="Asked at the start, below base_url; only on this machine.")] = None
    status: Annotated[Status | None, Meta(description="The HTTP status it must have.")] = None
    contains: Annotated[Text | None, Meta(description="This text is in the answer.")] = None


class Accessibility(Section):
    max_violations: Annotated[int, Meta(ge=0, le=1000, description="Violations that axe may find.")] = 0
    impact: Annotated[
        Literal["minor", "moderate", "serious", "critical"], Meta(description="Less than this is not counted.")
    ] = "serious"


class Scenario(Section, kw_only=True):
    name: Name
    description: Text = ""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=20, description="For `uat run TAG` and the suite page.")] = ()
    variables: Annotated[Variables, Meta(description="{{name}} in any text below is replaced by the value.")] = {}
    secrets: Annotated[
        dict[str, Annotated[str, Meta(pattern=r"^[A-Za-z_]\w*$")]],
        Meta(
            max_length=20,
            description="{{secret:name}} is replaced by this environment variable; its value is never read.",
        ),
    ] = {}
    data: Annotated[
        tuple[Variables, ...], Meta(max_length=50, description="A table: the steps are done once for each row.")
    ] = ()
    preconditions: Annotated[tuple[Precondition, ...], Meta(max_length=20)] = ()
    console: Annotated[Literal["any", "clean"], Meta(description="clean: an error on the console fails the run.")] = (
        "any"
    )
    accessibility: Annotated[
        Accessibility | None, Meta(description="axe must have run, and found no more than this.")
    ] = None
    budget_ms: Annotated[Milliseconds | None, Meta(description="A run that takes longer has failed.")] = None
    base_url: Annotated[Text, Meta(description="The address under test.")] = ""
    estimated_ms: Annotated[Milliseconds | None, Meta(description="Default: the sum of the steps' expected_ms.")] = None
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=MOST_STEPS)]
    assertions: Annotated[tuple[Assertion, ...], Meta(max_length=MOST_CHECKS)] = ()
    health_checks: Annotated[tuple[HealthCheck, ...], Meta(max_length=MOST_CHECKS)] = ()


def scenario_schema() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([Scenario], ref_template="#/$defs/{name}")
    whole = parts.pop(Scenario.__name__)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "title": SCHEMA_TITLE, "$defs": parts}

"""Kinds of the feature `uat`: scenarios of a project, runs of them, and the proof that a run leaves."""

from typing import Any

import msgspec

from holdfast.core.kinds.base import JsonObject, Payload, Record, event_kind


class UatPayload(Payload):
    uat: str = ""
    """The run."""
    of: int = 0
    """The event it was derived from."""
    imported: str = ""


class UatProblem(Record):
    """A console message or a failed request, as the driver reported it."""

    type: str = ""
    level: str = ""
    message: str = ""


class JudgedAssertion(Record):
    """What one tool result says about an assertion of the scenario."""

    index: int = 0
    met: bool = False
    broken: bool = False
    """It can no longer hold in this attempt."""
    untold: bool = False
    """The driver did not say what it asks for: what was found before still counts."""
    actual: str = ""


class JudgedCheck(Record):
    index: int | None = None
    type: str = ""
    result: str = ""
    data: Any = None


class UatCallFields(UatPayload):
    n: int = 0
    """The number of the call in its run."""
    call: str = ""
    """The agent's own id of the call."""
    tool: str = ""
    step: int = 0
    matched: bool = True
    """The call does the step; else it only happened during it."""
    address: str = ""


class PlannedStep(Record):
    action: str = ""
    description: str = ""
    tool: str = ""
    """A glob over tool names; empty: by the action."""
    arguments: JsonObject = {}
    expected_ms: int | None = None
    budget_ms: int | None = None
    calls: int = 1
    public: bool = False
    """What is typed in it is no secret."""


class Conditions(Record, kw_only=True):
    """What is to hold of one tool result; a condition that is None was not asked for."""

    contains: str | None = None
    not_contains: str | None = None
    url: str | None = None
    title: str | None = None
    status: int | None = None
    exit_code: int | None = None
    max_ms: int | None = None
    no_errors: bool | None = None
    fields: JsonObject | None = None
    clean_console: bool | None = None
    max_violations: int | None = None
    impact: str = ""
    """Of axe's violations only those at least this bad are counted."""


class PlannedAssertion(Conditions):
    description: str = ""
    step: int | None = None
    budget_ms: int | None = None
    """Of the whole run's time."""


class PlannedCheck(Conditions):
    type: str = ""
    step: int | None = None
    path: str | None = None
    precondition: bool = False
    description: str = ""


class Plan(Record, kw_only=True):
    """A scenario ready to be run: shared steps put in, data rows unrolled, variables replaced."""

    name: str = ""
    description: str = ""
    base_url: str = ""
    file: str = ""
    tags: list[str] = []
    preconditions: list[str] = []
    estimated_ms: int = 0
    steps: list[PlannedStep] = []
    assertions: list[PlannedAssertion] = []
    health_checks: list[PlannedCheck] = []


@event_kind("uat.scenarios")
class ScenariosRead(Payload):
    """The scenario files of a project were read."""

    scenarios: dict[str, Plan] = {}
    problems: list[str] = []


@event_kind("uat.suggested")
class RunSuggested(Payload):
    """A prompt looks like UAT, not surely enough to begin by itself."""

    scenario: str = ""
    score: int = 0
    reasons: list[str] = []
    of: int = 0


class FirstCall(Record):
    """The call by which a run was noticed."""

    n: int = 0
    call: str = ""
    tool: str = ""
    step: int = 0
    matched: bool = True
    address: str = ""


@event_kind("uat.started")
class RunStarted(UatPayload):
    """A UAT run began."""

    plan: Plan = msgspec.field(default_factory=Plan)
    """The scenario as it was then."""
    mode: str = ""
    root: str = ""
    message: str = ""
    confidence: int = 0
    reasons: list[str] = []
    auto: bool = False
    first: FirstCall | None = None
    source: str = ""
    """Which test runner's results it was imported from."""
    digest: str = ""
    """Of the file it was imported from: the same file is imported once."""
    environment: dict[str, str] = {}


@event_kind("uat.told")
class CallTold(UatPayload):
    """A hook reported a tool call that Holdfast did not see."""

    call: JsonObject = {}


@event_kind("uat.call_started")
class CallStarted(UatCallFields):
    """A tool call of a run began."""

    parameters: Any = None


@event_kind("uat.call_ended")
class CallEnded(UatCallFields):
    """A tool call of a run ended."""

    parameters: Any = None
    result: Any = None
    ms: int = 0
    began: int = 0
    ok: bool = False
    interrupted: bool = False
    error: str = ""
    expected: str = ""
    received: str = ""
    url: str = ""
    title: str = ""
    driver: str = ""
    meaning: str = ""
    """What the driver's tool does: navigate, click, screenshot…"""
    problems: list[UatProblem] = []
    assertions: list[JudgedAssertion] = []
    health: list[JudgedCheck] = []
    shots: list[str] = []
    logs: list[tuple[str, int, int]] = []
    traces: list[str] = []
    page: str = ""
    """What the page showed, as the driver's accessibility snapshot, without what was typed."""
    cwd: str = ""
    framework: bool = False
    returning: str = ""
    """crash, restart or back: the next call may belong to an earlier step."""


@event_kind("uat.step")
class StepSet(UatPayload):
    """A step was set by hand or by a hook."""

    step: int = 0
    status: str = ""
    cwd: str = ""


@event_kind("uat.asserted")
class AssertionTold(UatPayload):
    """An assertion was judged by hand or by a hook."""

    description: str = ""
    result: str = ""
    expected: str = ""
    actual: str = ""
    step: int = 0
    index: int | None = None


@event_kind("uat.checked")
class HealthChecked(UatPayload):
    """A health check was made."""

    type: str = ""
    result: str = ""
    data: Any = None
    step: int = 0
    index: int | None = None
    precondition: bool = False


@event_kind("uat.shot")
class ScreenshotKept(UatPayload):
    """A screenshot was copied, or could not be."""

    n: int = 0
    step: int = 0
    action: str = ""
    name: str = ""
    path: str = ""
    size: int = 0
    success: bool = False
    problem: str = ""


@event_kind("uat.problem")
class ProblemNoted(UatPayload):
    """An error or a warning was noted in a run."""

    level: str = ""
    type: str = ""
    message: str = ""
    step: int = 0
    n: int = 0
    tool: str = ""


@event_kind("uat.signal")
class SignalLeft(UatPayload):
    """One hook left another a message."""

    name: str = ""
    data: Any = None


@event_kind("uat.patched")
class RunPatched(UatPayload):
    """A hook merged something into a run's document."""

    patch: JsonObject = {}


@event_kind("uat.ended")
class RunEnded(UatPayload):
    """A run is over."""

    reason: str = ""
    scenario: str = ""
    outcome: str = ""
    flaky: bool = False
    cwd: str = ""


@event_kind("uat.asked")
class WorkAsked(UatPayload):
    """A person asked for something that touches the disk."""

    what: str = ""
    with_: str = msgspec.field(default="", name="with")
    formats: list[str] = []
    days: int | None = None
    dry: bool = False
    name: str = ""
    base_url: str = ""
    path: str = ""
    text: str = ""


class WrittenReport(Record):
    name: str = ""
    path: str = ""
    format: str = ""
    timestamp: str | None = None


@event_kind("uat.reported")
class ReportsWritten(UatPayload):
    """Reports of a run were written."""

    reports: list[WrittenReport] = []


class PicturePair(Record):
    """Two screenshots at the same place of two runs."""

    step: int = 0
    number: int = 0
    before: str = ""
    after: str = ""
    share: float | None = None
    """Of the pixels that differ; None where that is not known."""
    note: str = ""
    difference: str = ""
    """The picture of what differs."""


@event_kind("uat.compared")
class RunsCompared(UatPayload):
    """The screenshots of two runs were compared."""

    with_: str = msgspec.field(default="", name="with")
    pairs: list[PicturePair] = []
    report: str = ""


@event_kind("uat.restored")
class FileRestored(UatPayload):
    """A run's file was written again."""

    was: str = ""
    now: str = ""
    path: str = ""


@event_kind("uat.archived")
class RunArchived(UatPayload):
    """A run's file was moved to the archive."""

    path: str = ""


@event_kind("uat.cleaned")
class FilesCleaned(Payload):
    """Old files of runs were removed."""

    removed: list[str] = []
    count: int = 0
    ended: int = 0
    dry: bool = False

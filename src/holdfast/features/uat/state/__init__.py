"""The documents of UAT: a run with its steps and attempts, and what a session has going."""

from typing import Any

import msgspec

from holdfast.core.document import DocumentType
from holdfast.core.kinds.uat_events import Plan, WrittenReport
from holdfast.features.uat.settings import ACTIVE, CATALOGUE, PENDING, PLAN, RUN, SESSION, UNKNOWN

JsonObject = dict[str, Any]


class Attempt(msgspec.Struct):
    """One try of a step. A restart of the browser, a way back or a retry after a failure opens the next one."""

    number: int
    reason: str = ""
    """Why it was opened: empty for the first, else retry, back, crash, restart or by-hand."""
    status: str = ""
    start: int | None = None
    end: int | None = None
    error: str = ""
    expected: str = ""
    received: str = ""
    by_hand: bool = False


class Step(msgspec.Struct):
    status: str = PENDING
    start: int | None = None
    end: int | None = None
    done: int = 0
    bad: int = 0
    wanted: int = 1
    tries: int = 0
    """How many attempts there were; `attempts` keeps the latest."""
    budget_ms: int = 0
    """A step that takes longer has failed; 0 is no limit."""
    address: str = ""
    """Where its first navigation went: going there again is going back to this step."""
    attempts: list[Attempt] = []


NO_STEP = Step()
"""Before the first step. Never changed."""


class Assertion(msgspec.Struct):
    step: int = 0
    result: str = UNKNOWN
    expected: str = ""
    actual: str = ""
    at: int | None = None
    by_hand: bool = False
    budget_ms: int = 0
    """Of the whole run's time, judged at its end."""
    extra: bool = False
    """Not in the scenario; a new attempt of the step begins without it."""


class OpenCall(msgspec.Struct):
    n: int
    tool: str = ""
    step: int = 0
    at: int = 0
    call: str = ""
    matched: bool = True


class RecentCall(msgspec.Struct):
    n: int
    tool: str
    step: int
    ms: int
    ok: bool
    at: int
    error: str = ""


class Note(msgspec.Struct):
    """An error or a warning."""

    at: int
    type: str
    message: str
    step: int = 0


class RecentShot(msgspec.Struct):
    at: int
    name: str = ""
    path: str = ""
    size: int = 0
    step: int = 0
    action: str = ""


class RecentCheck(msgspec.Struct):
    at: int
    type: str = ""
    result: str = ""


class Signal(msgspec.Struct):
    data: Any
    at: int


class Run(msgspec.Struct, kw_only=True):
    """One run: counters, steps, and the last of everything. The whole lists are queries on the log."""

    id: str
    session: str = ""
    project: str = ""
    scenario: str = ""
    status: str = ACTIVE
    start: int = 0
    at: int = 0
    end: int | None = None
    reason: str = ""
    outcome: str = ""
    flaky: bool = False
    first_seq: int = 0
    last_seq: int = 0
    of: int = 0
    mode: str = ""
    root: str = ""
    base_url: str = ""
    message: str = ""
    confidence: int = 0
    reasons: list[str] = []
    auto: bool = False
    source: str = ""
    """Which test runner's results it was imported from; empty for what an agent did."""
    digest: str = ""
    """Of the file it was imported from, under its scenario's name."""
    current: int = 0
    returning: str = ""
    """crash, restart or back: the next call may belong to an earlier step."""
    steps: list[Step] = []
    assertions: list[Assertion] = []
    asserted: list[str] = []
    open: dict[str, OpenCall] = {}
    n: int = 0
    calls: int = 0
    ok: int = 0
    failed: int = 0
    interrupted: int = 0
    errors: int = 0
    warnings: int = 0
    shots: int = 0
    checks: int = 0
    bad_checks: int = 0
    blocked: bool = False
    """A precondition did not hold."""
    restored: int = 0
    touched: int = 0
    unknown_tools: list[str] = []
    drivers: list[str] = []
    environment: dict[str, str] = {}
    last: list[RecentCall] = []
    last_errors: list[Note] = []
    last_warnings: list[Note] = []
    last_shots: list[RecentShot] = []
    last_checks: list[RecentCheck] = []
    reports: list[WrittenReport] = []
    hooks: dict[str, Signal] = {}
    overlay: JsonObject = {}
    framework: bool = False
    archived: int = 0


class Prompt(msgspec.Struct):
    """The session's last prompt, where it may be about a run."""

    text: str
    score: int
    suggested: int = 0


class SessionRuns(msgspec.Struct, kw_only=True):
    """What a session has going."""

    active: str = ""
    tail: str = ""
    """The run that just ended with its last step: browser calls of the same turn still belong to it."""
    previous: str = ""
    runs: list[str] = []
    prompt: Prompt | None = None
    used: list[str] = []
    at: int = 0
    status: str = ""
    project: str = ""


class RunPlan(Plan):
    """The scenario of a run, as it was when the run began."""

    project: str = ""
    at: int = 0


class Catalogue(msgspec.Struct, kw_only=True):
    """A project's scenarios by name, and what is wrong with its files."""

    scenarios: dict[str, Plan] = {}
    problems: list[str] = []
    project: str = ""
    at: int = 0


NO_PLAN = RunPlan()
"""Of a run whose plan is not known: no steps, no assertions. Never changed."""

RUNS = DocumentType(RUN, Run)
PLANS = DocumentType(PLAN, RunPlan)
CATALOGUES = DocumentType(CATALOGUE, Catalogue)
SESSION_RUNS = DocumentType(SESSION, SessionRuns)

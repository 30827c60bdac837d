"""The seed's document, field by field (S3-3 to S3-10), made from a record."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused, UnsafePath
from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import HealthChecked, JudgedCheck, Plan, PlannedStep
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.uat.drivers.results import expected_conditions
from holdfast.features.uat.settings import COMPLETED, FORMAT, IN_PROGRESS, INTERRUPTED, VERSION, format_iso
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, Run, Step
from holdfast.features.uat.state.run import merge_objects
from holdfast.features.uat.state.steps import duration_ms, is_flaky, step_verdict

# File names from outside: a hostile id or scenario name never leaves its folder, and two of them never meet.

# Characters; file systems take 255 bytes, and endings are added.
LONGEST = 120
# Everything but ASCII letters, digits, dot, dash and underscore; and names made only of these.
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def safe_file_name(name: str, limit: int = LONGEST) -> str:
    """The name itself where it is harmless, else a readable form with a hash of the whole."""
    if len(name) <= limit and _PLAIN.fullmatch(name) and ".." not in name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    # Thirteen for the dash and the hash.
    readable = _UNSAFE.sub("_", name)[: limit - 13].strip("._-").replace("..", "_")
    return f"{readable}-{digest}" if readable else digest


def slugify_text(text: str, limit: int = 40) -> str:
    """For the inside of a file name: lower case, words joined by a dash."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()[: limit * 2])[:limit].strip("-") or "step"


# Where a project's runs lie on disk. Nothing is written or removed anywhere else, whatever a name or a link says.

FOLDERS = ("sessions", "scenarios", "screenshots", "reports", "archive")


def root_of(project: str, root: str) -> str:
    """The root as text (no disk is looked at): in the project, unless the person's settings say an absolute place."""
    if root.startswith("/"):
        return os.path.normpath(root)
    inside = os.path.normpath(root)
    if not project.startswith("/") or inside.startswith(".."):
        return ""
    return f"{project.rstrip('/')}/{inside}"


@dataclass(frozen=True)
class RunFolders:
    root: Path
    project: str = ""

    def session_file(self, session: str) -> Path:
        return self.root / "sessions" / f"claude-session-{safe_file_name(session)}.json"

    def backup_file(self, session: str) -> Path:
        return self.session_file(session).with_suffix(".backup")

    def lock_file(self, session: str) -> Path:
        return self.session_file(session).with_suffix(".lock")

    def archive_file(self, run: str) -> Path:
        return self.root / "archive" / f"{safe_file_name(run)}.json"

    def screenshots(self, run: str) -> Path:
        return self.root / "screenshots" / safe_file_name(run)

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    def report_file(self, run: str, ending: str = ".html") -> Path:
        return self.reports / f"{safe_file_name(run)}{ending}"

    @property
    def scenarios(self) -> Path:
        return self.root / "scenarios"

    def ready(self, folder: Path) -> Path:
        """Makes a folder below the root. A link on the way is refused: it may lead out of the project."""
        parts = folder.relative_to(self.root).parts
        self._check_root()
        here = self.root
        here.mkdir(parents=True, exist_ok=True)
        # The root itself is checked too, then each folder on the way down.
        for part in ("", *parts):
            here = here / part if part else here
            here.mkdir(exist_ok=True)
            if not stat.S_ISDIR(here.lstat().st_mode):
                raise UnsafePath(f"{here} is not a plain folder", fix="Move it away, or set another `uat.root`.")
        return folder

    def is_plain(self, folder: Path) -> bool:
        """Whether a folder is there and no link leads to it: only in such a one is anything removed."""
        try:
            self._check_root()
        except UnsafePath:
            return False
        # The path must be the same after following links, apart from links above the root.
        real, root = os.path.realpath(folder), os.path.realpath(self.root)
        return folder.is_dir() and real == os.path.join(root, *folder.relative_to(self.root).parts)  # noqa: PTH118

    def _check_root(self) -> None:
        """The root itself may lie below links, but not lead out of its project."""
        project = self.project
        if not project or not str(self.root).startswith(f"{project.rstrip('/')}/"):
            return
        if not Path(project).is_dir():
            raise UnsafePath(f"the project {project} is not there")
        real, home = os.path.realpath(self.root), os.path.realpath(project)
        if not real.startswith(f"{home.rstrip('/')}/"):
            raise UnsafePath(f"{self.root} leads out of the project", fix="Move it away, or set another `uat.root`.")


def is_inside_folders(path: Path, folders: tuple[str, ...]) -> bool:
    """Whether a file really lies in one of the folders, links followed."""
    real = os.path.realpath(path)
    return any(real.startswith(os.path.realpath(folder).rstrip("/") + "/") for folder in folders if folder)


# A run whole: its document, its plan and everything the log says about it. Never in the hook path.

PAGE = 1_000
MOST_CALLS = 20_000
KINDS = ("uat.call_ended", "uat.asserted", "uat.checked", "uat.shot", "uat.problem")


class Record:
    """Lists in the order they happened, as the log has them."""

    def __init__(self, doc: Run, plan: Plan, events: Iterator[Event]) -> None:
        self.doc, self.plan = doc, plan
        self.calls: list[Event] = []
        self.asserted: list[Event] = []
        self.checks: list[tuple[Event, JudgedCheck | HealthChecked]] = []
        self.shots: list[Event] = []
        self.problems: list[dict[str, Any]] = []
        for event in events:
            # More calls than this say nothing more to a reader, and would fill the memory.
            if event.data.uat == doc.id and len(self.calls) < MOST_CALLS:
                self._add_event(event)

    def _add_event(self, event: Event) -> None:
        if event.kind == "uat.call_ended":
            self.calls.append(event)
            self.checks += [(event, check) for check in event.data.health]
            self._problems_of(event)
        elif event.kind == "uat.asserted":
            self.asserted.append(event)
        elif event.kind == "uat.checked":
            self.checks.append((event, event.data))
        elif event.kind == "uat.shot":
            self._shot(event)
        else:
            self._note(event, event.data.level or "warning", event.data.type, event.data.message)

    def _problems_of(self, event: Event) -> None:
        if not event.data.ok:
            self._note(event, "error", "tool", event.data.error or "failed")
        for page_problem in event.data.problems:
            self._note(event, "warning", page_problem.type, page_problem.message)

    def _shot(self, event: Event) -> None:
        if event.data.success:
            self.shots.append(event)
        else:
            self._note(event, "warning", "screenshot", event.data.problem)

    def _note(self, event: Event, level: str, kind: str, message: Any) -> None:
        call = event.data.n
        entry = {"level": level, "type": kind, "message": message, "at": event.at, "step": event.data.step}
        self.problems.append({**entry, "call": call})

    def errors(self) -> list[dict[str, Any]]:
        return [p for p in self.problems if p["level"] == "error"]

    def warnings(self) -> list[dict[str, Any]]:
        return [p for p in self.problems if p["level"] != "error"]


def load_record(reader: Reader, run: str) -> Record:
    doc = RUNS.load(reader, run)
    if doc is None:
        raise CommandRefused(f"there is no UAT run {run!r}", fix="See: holdfast uat list")
    return Record(doc, PLANS.load(reader, run) or NO_PLAN, events_of(reader, doc))


def events_of(reader: Reader, doc: Run) -> Iterator[Event]:
    """Up to the moment of the document, so that both say the same."""
    after, last = doc.first_seq - 1, doc.last_seq
    while True:
        query = EventQuery(session=doc.session, kinds=KINDS, after=after, before=last + 1, limit=PAGE)
        page = reader.events(query)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq


REQUIRED = (
    ("meta", "version"),
    ("session", "claudeSessionId"),
    ("session", "uatSessionId"),
    ("session", "scenarioName"),
    ("scenario", "name"),
    ("execution",),
    ("performance",),
)
"""S3-23."""


def render_run_file(record: Record) -> bytes:
    return msgspec.json.format(msgspec.json.encode(build_run_document(record), enc_hook=str), indent=2) + b"\n"


def build_run_document(record: Record) -> dict[str, Any]:
    doc = record.doc
    made = {
        "meta": {"version": VERSION, "created": format_iso(doc.start), "updated": format_iso(doc.at), "format": FORMAT},
        "session": session_section(doc),
        "scenario": scenario_section(record),
        "execution": {
            "toolCalls": [tool_call(call) for call in record.calls],
            "errors": [problem_entry(one) for one in record.errors()],
            "warnings": [problem_entry(one) for one in record.warnings()],
        },
        "validation": {
            "frameworkInjected": doc.framework,
            "healthChecks": [health_check(event, check) for event, check in record.checks],
            "assertions": assertion_entries(record),
        },
        "artifacts": {
            "screenshots": [screenshot_entry(shot) for shot in record.shots],
            "logs": [],
            "reports": [report.as_dict() for report in doc.reports],
        },
        "performance": performance_section(record),
        "context": context_section(doc),
    }
    # What was merged in from outside lies over what is derived; `split_patch` kept derived fields out of it.
    return merge_objects(made, doc.overlay)


def session_section(doc: Run) -> dict[str, Any]:
    ended = {"endTime": format_iso(doc.end)} if doc.end is not None else {}
    return {
        "claudeSessionId": doc.session,
        "uatSessionId": doc.id,
        "scenarioName": doc.scenario,
        "mode": doc.mode,
        "status": doc.status,
        "startTime": format_iso(doc.start),
        "lastActivity": format_iso(doc.at),
        **ended,
    }


def scenario_section(record: Record) -> dict[str, Any]:
    doc, plan = record.doc, record.plan
    return {
        "name": doc.scenario,
        "description": plan.description,
        "totalSteps": len(doc.steps),
        "currentStep": doc.current,
        "completedSteps": sum(step.status == COMPLETED for step in doc.steps),
        "estimatedDuration": plan.estimated_ms or None,
        "actualDuration": None if doc.end is None else max(0, doc.end - doc.start),
        "steps": [
            step_entry(n, planned, stood)
            for n, (planned, stood) in enumerate(zip(plan.steps, doc.steps, strict=False), 1)
        ],
    }


def judged_steps(record: Record) -> list[dict[str, Any]]:
    """The steps with verdict and attempts, for people; the file has only what its format knows."""
    step_rows = scenario_section(record)["steps"]
    return [
        {
            **one,
            "verdict": step_verdict(record.doc, stood),
            "flaky": is_flaky(stood),
            "error": stood.attempts[-1].error if stood.attempts else "",
            "attempts": [{**msgspec.to_builtins(a), "duration": duration_ms(a)} for a in stood.attempts],
        }
        for one, stood in zip(step_rows, record.doc.steps, strict=False)
    ]


def run_remarks(record: Record) -> list[str]:
    """What has to be known before the steps: why green ones prove nothing, and which of them a person vouches for."""
    unmet = [c for _, c in record.checks if isinstance(c, HealthChecked) and c.precondition and c.result != "success"]
    remarks = [f"A precondition did not hold: {_describe_precondition(record, check)}" for check in unmet]
    marked = [str(n) for n, step in enumerate(record.doc.steps, 1) if step.attempts and step.attempts[-1].by_hand]
    return [*remarks, *([f"Marked by hand: step {', '.join(marked)}"] if marked else [])]


def _describe_precondition(record: Record, check: HealthChecked) -> str:
    planned = record.plan.health_checks[check.index or 0 : (check.index or 0) + 1]
    title = planned[0].description or planned[0].path if planned else check.type
    facts = check.data if isinstance(check.data, dict) else {}
    found = facts.get("error") or f"status {facts.get('statusCode')}"
    return f"{title} ({facts.get('url')}: {found})"


STATUS_IN_FILE = {INTERRUPTED: IN_PROGRESS}
"""The file's format knows pending, in_progress, completed, failed and skipped."""


def step_entry(number: int, planned: PlannedStep, stood: Step) -> dict[str, Any]:
    return {
        "stepNumber": number,
        "action": planned.action,
        "description": planned.description,
        "status": STATUS_IN_FILE.get(stood.status, stood.status),
        "startTime": format_iso(stood.start),
        "endTime": None if stood.status == INTERRUPTED else format_iso(stood.end),
        "duration": None if stood.status == INTERRUPTED else duration_ms(stood),
    }


def tool_call(event: Event) -> dict[str, Any]:
    return {
        "id": call_id(event.data.n),
        "toolName": event.data.tool,
        "parameters": event.data.parameters or {},
        "result": event.data.result or {},
        "executionTime": event.data.ms,
        "timestamp": format_iso(event.data.began),
        "stepNumber": event.data.step,
        "success": event.data.ok,
    }


def call_id(number: int) -> str:
    return f"tool-call-{number:03}"


def problem_entry(one: Mapping[str, Any]) -> dict[str, Any]:
    call = {"toolCallId": call_id(one["call"])} if one["call"] else {}
    return {
        "timestamp": format_iso(one["at"]),
        "type": one["type"],
        "message": one["message"],
        "stepNumber": one["step"],
        **call,
    }


def health_check(event: Event, check: JudgedCheck | HealthChecked) -> dict[str, Any]:
    return {
        "timestamp": format_iso(event.at),
        "type": check.type,
        "result": check.result,
        "data": check.data or {},
    }


def assertion_entries(record: Record) -> list[dict[str, Any]]:
    planned = [
        _assertion_entry(
            criteria.step,
            criteria.description or expected_conditions(criteria),
            expected_conditions(criteria),
            judged.result,
            judged.actual,
            judged.at,
        )
        for criteria, judged in zip(record.plan.assertions, record.doc.assertions, strict=False)
    ]
    by_hand = [
        _assertion_entry(e.data.step, e.data.description, e.data.expected, e.data.result, e.data.actual, e.at)
        for e in record.asserted
        if e.data.index is None
    ]
    return planned + by_hand


def _assertion_entry(
    step: Any, description: Any, expected_text: Any, result: Any, actual: Any, at: int | None
) -> dict[str, Any]:
    return {
        "timestamp": format_iso(at),
        "stepNumber": step or None,
        "description": description or "",
        "expected": expected_text or None,
        "actual": actual or None,
        "result": result,
    }


def screenshot_entry(event: Event) -> dict[str, Any]:
    return {
        "name": event.data.name,
        "path": event.data.path,
        "size": event.data.size,
        "timestamp": format_iso(event.at),
        "stepNumber": event.data.step,
        "action": event.data.action,
        "success": True,
    }


def performance_section(record: Record) -> dict[str, Any]:
    """S3-9, D9: made anew each time, so never out of date. A step still going on counts up to the last tool's sign."""
    doc = record.doc
    spent = [_time_spent_ms(stood, doc.touched) for stood in doc.steps if stood.start is not None]
    timed = _completed_step_times(record)
    judged = doc.ok + doc.failed + doc.interrupted
    return {
        "totalExecutionTime": sum(spent),
        "averageStepDuration": round(sum(spent) / len(spent)) if spent else 0,
        "fastestStep": min(timed, key=lambda s: s["duration"], default=None),
        "slowestStep": max(timed, key=lambda s: s["duration"]) if len(timed) > 1 else None,
        "toolCallCount": doc.calls,
        "errorCount": doc.errors,
        "successRate": round(doc.ok / judged, 4) if judged else 0,
    }


def _time_spent_ms(stood: Step, touched: int) -> int:
    end = stood.end if stood.end is not None else touched
    return max(0, end - (stood.start or 0))


def _completed_step_times(record: Record) -> list[dict[str, Any]]:
    return [
        {"stepNumber": n, "duration": duration_ms(stood), "action": planned.action}
        for n, (planned, stood) in enumerate(zip(record.plan.steps, record.doc.steps, strict=False), 1)
        if stood.status == COMPLETED and duration_ms(stood) is not None
    ]


def context_section(doc: Run) -> dict[str, Any]:
    paths = places_of(doc)
    hooks = {name: {"data": one.data, "timestamp": format_iso(one.at)} for name, one in doc.hooks.items()}
    return {
        "userMessage": doc.message,
        "detectionConfidence": doc.confidence,
        "autoInitialized": doc.auto,
        "baseUrl": doc.base_url,
        "screenshotDirectory": str(paths.screenshots(doc.id)) if paths else "",
        "reportDirectory": str(paths.reports) if paths else "",
        **({"hooks": hooks} if hooks else {}),
        **({"endReason": doc.reason, "outcome": doc.outcome} if doc.end is not None else {}),
    }


def places_of(doc: Run) -> RunFolders | None:
    from pathlib import Path

    return RunFolders(Path(doc.root), doc.project) if doc.root else None


def is_valid_document(value: Any) -> bool:
    return not missing_fields(value)


def missing_fields(value: Any) -> list[str]:
    """S3-23: required fields that are not there."""
    return [".".join(path) for path in REQUIRED if not _has_field(value, path)]


def _has_field(value: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(value, Mapping) or value.get(name) in (None, False):
            return False
        value = value[name]
    return True


# Events that jobs of UAT report with.


def keyed_run_event(doc: Run, kind: str, now: int, key: str, **data: Any) -> Event:
    """The same thing found twice is one event: the key says what was found, not when."""
    return Event(
        key=f"{kind}/{doc.id}/{key}", kind=kind, at=now, session=doc.session, project=doc.project,
        data={"uat": doc.id, **data},
    )  # fmt: skip

"""What the HTML report of a run shows, as typed values for its template."""

import base64
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import CallEnded
from holdfast.features.uat import files
from holdfast.features.uat.drivers.answers import is_crash
from holdfast.features.uat.folders import is_inside_folders
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import figures
from holdfast.features.uat.settings import FAILED, INTERRUPTED, SKIPPED

# Bytes of one picture, and of all in one report, which carries them along.
LARGEST_IMAGE = 8 << 20
LARGEST_TOTAL = 96 << 20
THUMBNAIL = (240, 180)
THUMBNAILS_S = 120.0
PICTURE_PROGRAM = Path(__file__).parents[1] / "jobs" / "picture_program.py"
LONGEST_RESULT = 3_000
TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}


class Picture(msgspec.Struct, kw_only=True):
    """A screenshot; `data` is empty when the file is gone or too large to carry along."""

    number: int
    step: int
    call: int
    at: int
    name: str
    path: str
    data: str
    thumbnail: str = ""
    label: str = ""


class CallView(msgspec.Struct, kw_only=True):
    number: int
    step: int
    tool: str
    verdict: str
    clock: str
    took: str
    error: str
    parameters: str
    result: str
    began: int
    traces: list[str]


class ProblemView(msgspec.Struct):
    clock: str
    step: int
    type: str
    message: str


class AttemptView(msgspec.Struct, kw_only=True):
    number: int
    reason: str
    verdict: str
    took: str
    error: str
    expected: str
    received: str
    call: CallView | None
    """The call that failed."""
    pictures: list[Picture]
    problems: list[ProblemView]
    page: str
    """The page as the driver's snapshot has it."""
    address: str
    no_picture: str
    """Why there is no picture of the failure; empty where there is one, or none is needed."""


class StepView(msgspec.Struct, kw_only=True):
    number: int
    title: str
    action: str
    verdict: str
    took: str
    expected_time: str
    flaky: bool
    attempts: list[AttemptView]
    assertions: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    pictures: list[Picture]


class ReportPage(msgspec.Struct, kw_only=True):
    title: str
    description: str
    tags: list[str]
    outcome: str
    flaky: bool
    tiles: list[tuple[str, str, str]]
    remarks: list[str]
    facts: list[tuple[str, str]]
    environment: list[tuple[str, str]]
    failures: list[StepView]
    broken: list[dict[str, Any]]
    """Failed assertions of the whole run."""
    unreached: list[StepView]
    steps: list[StepView]
    whole_run: StepView | None
    filmstrip: list[Picture]
    errors: list[ProblemView]
    warnings: list[ProblemView]
    calls: list[CallView]
    first_event: int
    last_event: int
    session: str


def build_page(record: Record) -> ReportPage:
    doc = record.doc
    pictures = load_pictures(record)
    steps = [_step_view(record, step, pictures) for step in figures.report_steps(record)]
    return ReportPage(
        title=doc.scenario,
        description=record.plan.description,
        tags=record.plan.tags,
        outcome=figures.run_outcome(record),
        flaky=doc.flaky,
        tiles=_summary_tiles(record),
        remarks=files.run_remarks(record),
        facts=figures.run_facts(record),
        environment=_environment_facts(record),
        failures=[step for step in steps if step.verdict in (FAILED, INTERRUPTED)],
        broken=[one for one in files.assertion_entries(record) if one["result"] == FAILED and not one["stepNumber"]],
        unreached=[step for step in steps if step.verdict == "not_reached"],
        steps=steps,
        whole_run=_whole_run(record, pictures),
        filmstrip=[picture for picture in pictures if picture.thumbnail],
        errors=[_problem_view(one) for one in record.errors()],
        warnings=[_problem_view(one) for one in record.warnings()],
        calls=[_call_view(event) for event in record.calls],
        first_event=doc.first_seq,
        last_event=doc.last_seq,
        session=doc.session,
    )


def _summary_tiles(record: Record) -> list[tuple[str, str, str]]:
    """(figure, label, class): what a person wants to know at a glance."""
    counted, doc = figures.count_figures(record), record.doc
    passed = counted.verdicts.get("passed", 0)
    tiles = [(f"{passed}/{counted.steps}", "steps passed", "")] if counted.steps else []
    tiles.append((str(counted.failed), "failed", "bad" if counted.failed else ""))
    if counted.verdicts.get(INTERRUPTED):
        tiles.append((str(counted.verdicts[INTERRUPTED]), "interrupted", "wait"))
    if counted.verdicts.get("not_reached"):
        tiles.append((str(counted.verdicts["not_reached"]), "not reached", "wait"))
    tiles.append((str(counted.flaky), "flaky", "wait" if counted.flaky else ""))
    if counted.assertions:
        bad = "bad" if counted.assertions_failed else ""
        tiles.append((f"{counted.assertions_passed}/{counted.assertions}", "assertions held", bad))
    tiles.append((figures.format_milliseconds(None if doc.end is None else doc.end - doc.start), "took", ""))
    return tiles


def _environment_facts(record: Record) -> list[tuple[str, str]]:
    doc = record.doc
    agent = next((call.agent for call in record.calls if call.agent), "")
    rows = [
        ("Address", doc.base_url),
        ("Driver", ", ".join(doc.drivers) or doc.source),
        ("Agent", agent),
        ("Mode", doc.mode),
        ("Project", doc.project),
        ("Machine", f"{platform.system()} {platform.machine()}"),
        *sorted(doc.environment.items()),
    ]
    return [(name, value) for name, value in rows if value]


# ── steps and attempts ─────────────────────────────────────────────────────────────────────────────────────────────


def _step_view(record: Record, step: dict[str, Any], pictures: list[Picture]) -> StepView:
    number = int(step["stepNumber"])
    checks = [files.health_check(event, check) for event, check in record.checks if event.data.step == number]
    duration = step["duration"]
    has_time = duration is not None and step["verdict"] != SKIPPED
    return StepView(
        number=number,
        title=step["description"] or step["action"],
        action=step["action"],
        verdict=step["verdict"],
        took=figures.format_milliseconds(duration) if has_time else figures.verdict_words(step["verdict"]),
        expected_time=figures.format_milliseconds(step["expected"]) if step["slow"] else "",
        flaky=step["flaky"],
        attempts=_attempt_views(record, step, pictures),
        assertions=[one for one in files.assertion_entries(record) if one["stepNumber"] == number],
        checks=checks,
        pictures=[picture for picture in pictures if picture.step == number],
    )


def _attempt_views(record: Record, step: dict[str, Any], pictures: list[Picture]) -> list[AttemptView]:
    number, tried = int(step["stepNumber"]), step["attempts"]
    starts = [attempt["start"] or 0 for attempt in tried]
    # An attempt lasts until the next one begins.
    spans = zip(tried, starts, [*starts[1:], None], strict=False)
    made = [_attempt_view(record, number, attempt, (begin, until), pictures) for attempt, begin, until in spans]
    if made and made[-1].verdict == FAILED:
        _add_failed_assertions(record, number, made[-1])
    return made


def _add_failed_assertions(record: Record, number: int, attempt: AttemptView) -> None:
    """The last attempt shows all of the assertions that failed in it, not only the first."""
    mine = [one for one in files.assertion_entries(record) if one["stepNumber"] == number and one["result"] == FAILED]
    if mine:
        attempt.expected = "\n".join(f"{one['description']}: {one['expected'] or 'holds'}" for one in mine)
        attempt.received = "\n".join(str(one["actual"]) for one in mine if one["actual"]) or attempt.received


def _attempt_view(
    record: Record, number: int, attempt: dict[str, Any], span: tuple[int, int | None], pictures: list[Picture]
) -> AttemptView:
    begin, until = span
    calls = [
        call for call in record.calls if call.data.step == number and _is_within_span(call.data.began, begin, until)
    ]
    failed = [call for call in calls if not call.data.ok]
    bad = attempt["status"] in (FAILED, INTERRUPTED)
    shown = _pictures_of_attempt(pictures, number, begin, until, bad=bad)
    page = next((call.data for call in reversed(calls) if _page_of(call.data)), None)
    return AttemptView(
        number=attempt["number"],
        reason=attempt["reason"],
        verdict="passed" if attempt["status"] == "completed" else attempt["status"],
        took=figures.format_milliseconds(attempt["duration"]),
        error=attempt["error"],
        expected=attempt["expected"],
        received=attempt["received"],
        call=_call_view((failed or figures.calls_about_page(calls))[-1]) if bad and calls else None,
        pictures=shown,
        problems=[
            _problem_view(p)
            for p in record.problems
            if p["step"] == number and _is_within_span(p["at"], begin, until) and p["message"] != attempt["error"]
        ],
        page=_page_of(page) if page and bad else "",
        address=next((call.data.url for call in reversed(calls) if call.data.url), ""),
        no_picture=_why_no_picture(shown, attempt) if bad else "",
    )


def _is_within_span(at: int, begin: int, until: int | None) -> bool:
    return at >= begin and (until is None or at < until)


def _pictures_of_attempt(
    pictures: list[Picture], number: int, begin: int, until: int | None, *, bad: bool
) -> list[Picture]:
    """The last one before it, and those taken in it; after a failure also the first one of what followed."""
    mine = [p for p in pictures if p.step == number and _is_within_span(p.at, begin, until)]
    before = [p for p in pictures if p.at < begin][-1:]
    after = [p for p in pictures if bad and p.at >= begin and p not in mine and (until is None or p.at < until)][:1]
    # There was none in the attempt itself: the first one after it may still show the failure.
    labelled = [(before, "before"), (mine, "in this attempt"), (after if not mine else [], "after the failure")]
    return [msgspec.structs.replace(p, label=label) for listed, label in labelled for p in listed]


def _why_no_picture(shown: list[Picture], attempt: dict[str, Any]) -> str:
    if any(picture.label != "before" for picture in shown):
        return ""
    gone = " (the browser was gone)" if is_crash(attempt["error"]) else ""
    return f"No picture was taken after this failure{gone}."


def _page_of(call: CallEnded | None) -> str:
    if call is None:
        return ""
    text = call.result.get("text", "") if isinstance(call.result, dict) else ""
    _, fence, inline = str(text).partition("```yaml\n")
    return call.page or (inline.partition("```")[0] if fence else "")


def _whole_run(record: Record, pictures: list[Picture]) -> StepView | None:
    """What belongs to no step: assertions and checks of the whole run, pictures taken outside of steps."""
    step_numbers = {int(step["stepNumber"]) for step in figures.report_steps(record)}
    judged = [one for one in files.assertion_entries(record) if (one["stepNumber"] or 0) not in step_numbers]
    checks = [files.health_check(event, check) for event, check in record.checks if event.data.step not in step_numbers]
    left = [picture for picture in pictures if picture.step not in step_numbers]
    if not (judged or checks or left):
        return None
    return StepView(
        number=0, title="Whole run", action="", verdict="", took="", expected_time="", flaky=False, attempts=[],
        assertions=judged, checks=checks, pictures=left,
    )  # fmt: skip


def _problem_view(one: dict[str, Any]) -> ProblemView:
    return ProblemView(figures.format_clock(one["at"]), one["step"], str(one["type"]), str(one["message"]))


def _call_view(event: Event) -> CallView:
    call: CallEnded = event.data
    return CallView(
        number=call.n,
        step=call.step,
        tool=call.tool,
        verdict="passed" if call.ok else INTERRUPTED if call.interrupted else FAILED,
        clock=figures.format_clock(call.began),
        took=figures.format_milliseconds(call.ms),
        error=call.error,
        parameters=_page_compact_json(call.parameters),
        result=_page_compact_json(call.result),
        began=call.began,
        traces=call.traces,
    )


def _page_compact_json(value: Any) -> str:
    text = msgspec.json.encode(value or {}, enc_hook=str).decode("utf-8", "replace")
    return "" if text == "{}" else text[:LONGEST_RESULT]


# ── pictures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def load_pictures(record: Record) -> list[Picture]:
    """Read only from the run's own folder, whatever a path says."""
    left, folder = LARGEST_TOTAL, picture_folder(record)
    taken = {call.data.n: call.data.began for call in record.calls}
    contents: list[bytes] = []
    for shot in record.shots:
        # When the report is full, further pictures are named but not shown.
        contents.append(_read_picture(shot.data.path, folder) if left > 0 else b"")
        left -= len(contents[-1])
    small = make_thumbnails(contents) if any(contents) else [""] * len(contents)
    return [
        Picture(
            # A picture is recorded by a job later; the call says when it was taken.
            number=number, step=shot.data.step, call=shot.data.n, at=taken.get(shot.data.n) or shot.at,
            name=shot.data.name, path=shot.data.path, thumbnail=thumbnail,
            data=_data_url(TYPES.get(Path(shot.data.path).suffix, ""), content),
        )
        for number, (shot, content, thumbnail) in enumerate(zip(record.shots, contents, small, strict=True))
    ]  # fmt: skip


def picture_folder(record: Record) -> str:
    """The run's own folder of pictures, where it is a plain one."""
    paths = files.places_of(record.doc)
    mine = paths.screenshots(record.doc.id) if paths else None
    return str(mine) if paths and mine and paths.is_plain(mine) else ""


def picture_data(path: str, folders: tuple[str, ...]) -> str:
    content = next((image for folder in folders if (image := _read_picture(path, folder))), b"") if path else b""
    return _data_url(TYPES.get(Path(path).suffix, ""), content)


def _read_picture(path: str, folder: str) -> bytes:
    file = Path(path)
    if not folder or not is_inside_folders(file, (folder,)) or file.suffix not in TYPES:
        return b""
    try:
        return file.read_bytes() if file.stat().st_size <= LARGEST_IMAGE else b""
    except OSError:
        return b""


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}" if content and kind else ""


def make_thumbnails(contents: list[bytes]) -> list[str]:
    """Each small enough for a strip of all pictures; empty where a picture cannot be opened."""
    words = [sys.executable, "-I", str(PICTURE_PROGRAM), "shrink", *map(str, THUMBNAIL)]
    # Each picture after its length in four bytes.
    framed = b"".join(len(content).to_bytes(4, "big") + content for content in contents)
    try:
        ran = subprocess.run(words, input=framed, capture_output=True, timeout=THUMBNAILS_S, check=True)
        small: list[str] = msgspec.json.decode(ran.stdout, type=list[str])
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return [""] * len(contents)
    return [f"data:image/png;base64,{one}" if one else "" for one in small]

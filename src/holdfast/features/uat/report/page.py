"""What the HTML report of a run shows, for its template."""

import base64
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.kinds.uat_events import CallEnded
from holdfast.features.uat import files
from holdfast.features.uat.drivers.answers import is_crash, page_text
from holdfast.features.uat.drivers.table import NOT_A_DRIVER
from holdfast.features.uat.folders import is_inside_folders
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import figures
from holdfast.features.uat.settings import COMPLETED, FAILED, INTERRUPTED, PASSED

# Bytes of one picture, and of all pictures embedded in one report.
LARGEST_IMAGE = 8 << 20
LARGEST_TOTAL = 96 << 20
THUMBNAIL = (240, 180)
THUMBNAILS_S = 120.0
PICTURE_PROGRAM = Path(__file__).parents[1] / "jobs" / "picture_program.py"
TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}
View = dict[str, Any]


class Picture(msgspec.Struct, kw_only=True):
    """A screenshot; `data` is empty when the file is gone or too large to carry along."""

    step: int
    at: int
    name: str
    data: str
    thumbnail: str = ""
    label: str = ""


def build_page(record: Record) -> View:
    pictures = load_pictures(record)
    steps = [_step_view(record, step, pictures) for step in figures.report_steps(record)]
    return {
        "outcome": figures.run_outcome(record),
        "tiles": _summary_tiles(record),
        "remarks": files.run_remarks(record),
        "facts": figures.run_facts(record),
        "environment": _environment_facts(record),
        "failures": [step for step in steps if _is_bad(step["verdict"])],
        "broken": figures.failed_assertions(record, None),
        "unreached": [step for step in steps if step["verdict"] == "not_reached"],
        "steps": steps,
        "whole_run": _whole_run(record, pictures, len(steps)),
        "filmstrip": [picture for picture in pictures if picture.thumbnail],
        "calls": [call.data for call in record.calls],
    }


def _summary_tiles(record: Record) -> list[tuple[str, str, str]]:
    """(figure, label, class): what a person wants to know at a glance."""
    counted = figures.run_summary(record.doc)
    verdicts, assertions = counted["verdicts"], counted["assertions"]
    failed, interrupted, left = (verdicts.get(name, 0) for name in (FAILED, INTERRUPTED, "not_reached"))
    tiles = (
        (counted["steps"], f"{counted['completed']}/{counted['steps']}", "steps passed", ""),
        (True, failed, "failed", "bad" if failed else ""),
        (interrupted, interrupted, "interrupted", "wait"),
        (left, left, "not reached", "wait"),
        (True, counted["flaky"], "flaky", "wait" if counted["flaky"] else ""),
        (
            assertions["all"],
            f"{assertions['passed']}/{assertions['all']}",
            "assertions held",
            "bad" if assertions["failed"] else "",
        ),
        (True, figures.format_run_time(record.doc), "took", ""),
    )
    return [(str(figure), label, class_) for is_shown, figure, label, class_ in tiles if is_shown]


def _environment_facts(record: Record) -> list[tuple[str, str]]:
    doc = record.doc
    rows = [
        ("Address", doc.base_url),
        ("Driver", ", ".join(doc.drivers) or doc.source),
        ("Agent", next((call.agent for call in record.calls if call.agent), "")),
        ("Mode", doc.mode),
        ("Project", doc.project),
        ("Machine", f"{platform.system()} {platform.machine()}"),
        *sorted(doc.environment.items()),
    ]
    return [(name, value) for name, value in rows if value]


# ── steps and attempts ───────────────────────────────────────────────────────────────────────────────────────────────


def _step_view(record: Record, step: View, pictures: list[Picture]) -> View:
    number = step["stepNumber"]
    return {
        **step,
        "attempts": _attempt_views(record, step, pictures),
        "assertions": [one for one in files.assertion_entries(record) if one["stepNumber"] == number],
        "checks": [files.health_check(event, check) for event, check in record.checks if event.data.step == number],
        "pictures": [picture for picture in pictures if picture.step == number],
    }


def _whole_run(record: Record, pictures: list[Picture], steps: int) -> View:
    """What belongs to no step: assertions and checks of the whole run, pictures taken outside of steps."""
    numbers = range(1, steps + 1)
    checks = [files.health_check(event, check) for event, check in record.checks if event.data.step not in numbers]
    return {
        "assertions": [one for one in files.assertion_entries(record) if (one["stepNumber"] or 0) not in numbers],
        "checks": checks,
        "pictures": [picture for picture in pictures if picture.step not in numbers],
    }


def _attempt_views(record: Record, step: View, pictures: list[Picture]) -> list[View]:
    tried = step["attempts"]
    starts = [attempt["start"] or 0 for attempt in tried]
    # An attempt lasts until the next one begins.
    spans = zip(tried, starts, [*starts[1:], sys.maxsize], strict=False)
    number = step["stepNumber"]
    made = [_attempt_view(record, number, one, range(begin, until), pictures) for one, begin, until in spans]
    if made and made[-1]["verdict"] == FAILED:
        made[-1] |= _missed_in_step(record, number)
    return made


def _missed_in_step(record: Record, number: int) -> View:
    """The last attempt shows all of the assertions that failed in it, not only the first."""
    missed = figures.failed_assertions(record, number)
    texts = {
        "expected": "\n".join(f"{one['description']}: {one['expected'] or 'holds'}" for one in missed),
        "received": "\n".join(one["actual"] for one in missed if one["actual"]),
    }
    return {name: text for name, text in texts.items() if text}


def _attempt_view(record: Record, number: int, attempt: View, span: range, pictures: list[Picture]) -> View:
    calls = [call.data for call in record.calls if call.data.step == number and call.data.began in span]
    view = {
        **attempt,
        "verdict": PASSED if attempt["status"] == COMPLETED else attempt["status"],
        "problems": [one for one in record.problems if _is_further_problem(one, number, attempt, span)],
        "address": _last_of(call.url for call in calls),
        "pictures": _pictures_of_attempt(pictures, number, span, failed=_is_bad(attempt["status"])),
        "call": None, "page": "", "no_picture": "",
    }  # fmt: skip
    if _is_bad(attempt["status"]):
        view["call"] = figures.telling_call(calls)
        view["page"] = _last_of(map(_page_of, calls))
        if all(picture.label == "before" for picture in view["pictures"]):
            view["no_picture"] = _why_no_picture(attempt["error"])
    return view


def _pictures_of_attempt(pictures: list[Picture], number: int, span: range, *, failed: bool) -> list[Picture]:
    """The last one before it, and those taken in it; after a failure also the first one of what followed."""
    within = [picture for picture in pictures if picture.at in span]
    mine = _labelled([picture for picture in within if picture.step == number], "in this attempt")
    before = _labelled([picture for picture in pictures if picture.at < span.start][-1:], "before")
    # There was none in the attempt itself: the first one after it may still show the failure.
    after = _labelled(within[:1], "after the failure") if failed and not mine else []
    return before + mine + after


def _last_of(texts: Iterable[str]) -> str:
    return next(filter(None, reversed(list(texts))), "")


def _why_no_picture(error: str) -> str:
    gone = " (the browser was gone)" if is_crash(error) else ""
    return f"No picture was taken after this failure{gone}."


def _is_further_problem(problem: View, number: int, attempt: View, span: range) -> bool:
    return problem["step"] == number and problem["at"] in span and problem["message"] != attempt["error"]


def _is_bad(status: str) -> bool:
    return status in (FAILED, INTERRUPTED)


def _labelled(pictures: list[Picture], label: str) -> list[Picture]:
    return [msgspec.structs.replace(picture, label=label) for picture in pictures]


def _page_of(call: CallEnded) -> str:
    text = call.result.get("text", "") if isinstance(call.result, dict) else ""
    return call.page or page_text(NOT_A_DRIVER, str(text))


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def load_pictures(record: Record) -> list[Picture]:
    """Read only from the run's own folder, whatever a path says."""
    left, read = LARGEST_TOTAL, picture_reader(record)
    taken = {call.data.n: call.data.began for call in record.calls}
    contents: list[bytes] = []
    for shot in record.shots:
        # When the report is full, further pictures are named but not shown.
        contents.append(read(shot.data.path) if left > 0 else b"")
        left -= len(contents[-1])
    small = make_thumbnails(contents) if any(contents) else [""] * len(contents)
    return [
        Picture(
            # A picture is recorded by a job later; the call says when it was taken.
            step=shot.data.step, at=taken.get(shot.data.n) or shot.at, name=shot.data.name,
            data=data_url(shot.data.path, content), thumbnail=thumbnail,
        )
        for shot, content, thumbnail in zip(record.shots, contents, small, strict=True)
    ]  # fmt: skip


def picture_reader(record: Record) -> Callable[[str], bytes]:
    """Reads a picture of the run's own folder, where that is a plain one; empty for any other path."""
    paths = files.places_of(record.doc)
    folder = paths.screenshots(record.doc.id) if paths else None
    is_usable = bool(paths and folder and paths.is_plain(folder))

    def read(path: str) -> bytes:
        file = Path(path)
        if not is_usable or not is_inside_folders(file, (str(folder),)) or file.suffix not in TYPES:
            return b""
        try:
            return file.read_bytes() if file.stat().st_size <= LARGEST_IMAGE else b""
        except OSError:
            return b""

    return read


def data_url(path: str, content: bytes) -> str:
    kind = TYPES.get(Path(path).suffix, "")
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

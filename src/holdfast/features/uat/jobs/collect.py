"""Screenshots are copied to where they stay, console logs are read: only images, only from inside the project."""

import base64
import io
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.errors import UnsafePath
from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.kinds.uat_events import Plan
from holdfast.core.times import DAY
from holdfast.features.uat import files
from holdfast.features.uat.drivers.answers import images_in
from holdfast.features.uat.drivers.results import IN_ANSWER, console_lines, response_of
from holdfast.features.uat.drivers.shell import DRIVER_FOLDERS
from holdfast.features.uat.files import (
    Record,
    RunFolders,
    is_inside_folders,
    keyed_run_event,
    load_record,
    places_of,
    root_of,
    safe_file_name,
    slugify_text,
)
from holdfast.features.uat.jobs import tend
from holdfast.features.uat.report import ENDINGS, suite
from holdfast.features.uat.report.page import render_comparison
from holdfast.features.uat.runner_reports.trace import MEMBER
from holdfast.features.uat.scenarios import scenario
from holdfast.features.uat.scenarios.plan import read_plan
from holdfast.features.uat.scenarios.scenario import Mistake, scenario_files
from holdfast.features.uat.settings import DEFAULTS, LARGEST_CATALOGUE, UatSettings, utc_datetime
from holdfast.features.uat.state import CATALOGUES, NO_PLAN, PLANS, RUNS, Catalogue, Run
from holdfast.paths import NotRegular, open_regular_itself

# Bytes.
LARGEST_IMAGE = 20 << 20
LARGEST_LOG = 256 << 10
LARGEST_TRACE = 64 << 20
LARGEST_TAIL = 64 << 20
MOST_IN_A_SECOND = 50
COLLECT_MODE = 0o644
# The first bytes decide what a file is, not its name.
IMAGES = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg", b"RIFF": ".webp"}


class _TranscriptMessage(msgspec.Struct):
    content: list[Any]


class _TranscriptEntry(msgspec.Struct):
    message: _TranscriptMessage


class _Unusable(Exception):
    """Why a file is not taken."""


def collect_evidence(call: JobCall) -> list[Event]:
    event = call.reader.event(int(call.job.payload["seq"]))
    doc = RUNS.load(call.reader, event.data.uat) if event else None
    if event is None or doc is None:
        return []
    settings = call.settings(doc.project) or DEFAULTS
    shots = [_screenshot_event(call, doc, event, name, settings) for name in event.data.shots]
    return [*shots, *_console_problems(doc, event, settings)]


def _screenshot_event(call: JobCall, doc: Run, event: Event, name: str, settings: UatSettings) -> Event:
    step = event.data.step
    facts: dict[str, Any] = {"step": step, "action": _action_of_step(call, doc, step), "n": event.data.n}
    try:
        image = _read_image(call, doc, event, name, settings)
        path = _store_image(call, doc, event, image, facts)
        facts |= {"name": path.stem, "path": str(path), "size": len(image), "success": True}
    except (_Unusable, UnsafePath, OSError) as error:
        facts |= {"success": False, "problem": f"screenshot {name!r}: {error}"[:300]}
    # The key has the event and the name: a job that runs again tells of the same picture.
    return keyed_run_event(doc, "uat.shot", event.at, f"{event.seq}/{name}", **facts)


def _action_of_step(call: JobCall, doc: Run, step: int) -> str:
    steps = (PLANS.load(call.reader, doc.id) or NO_PLAN).steps
    return steps[step - 1].action if 0 < step <= len(steps) else "screenshot"


def _read_image(call: JobCall, doc: Run, event: Event, name: str, settings: UatSettings) -> bytes:
    try:
        if name == IN_ANSWER:
            raise _Unusable("it was too large to be kept; let the driver write it to a file of the project")
        image = _read_named(Path(event.data.cwd or doc.project, name), doc, settings)
    except (_Unusable, OSError):
        # Where the file cannot be used, the picture may have come with the answer itself.
        sent = _sent_along(call, event)
        if sent is None:
            raise
        image = sent
    if not image_suffix(image):
        raise _Unusable("it is no PNG, JPEG or WebP image")
    return image


def _read_named(path: Path, doc: Run, settings: UatSettings) -> bytes:
    """A picture of its own, or one in a trace."""
    archive, inner, member = str(path).partition(f".zip{MEMBER}")
    if not inner:
        return read_inside(path, doc, settings, LARGEST_IMAGE)
    content = read_inside(Path(f"{archive}.zip"), doc, settings, LARGEST_TRACE)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as trace:
            # Asked of the archive before unpacking: a small file can unpack to gigabytes.
            if trace.getinfo(member).file_size > LARGEST_IMAGE:
                raise _Unusable(f"it is larger than {LARGEST_IMAGE >> 10} KB")
            return trace.read(member)
    except (KeyError, zipfile.BadZipFile, RuntimeError, ValueError):
        raise _Unusable("it is not in the trace") from None


def read_inside(path: Path, doc: Run, settings: UatSettings, limit: int) -> bytes:
    """A plain file in the project or in a folder the person allowed; what was checked is what is read."""
    own = tuple(str(Path(folder).expanduser()) for folder in DRIVER_FOLDERS)
    allowed = tuple(f for f in (doc.project, *settings.screenshot_folders, *own) if f.strip("/"))
    if not is_inside_folders(path, allowed):
        raise _Unusable("it lies outside the project; allow its folder with `uat.screenshot_folders`")
    # Opened by its real path without following links: a link put there meanwhile is refused.
    real = os.path.realpath(path)
    try:
        with open(real, "rb", opener=open_regular_itself) as file:
            if not os.path.samestat(os.fstat(file.fileno()), Path(real).stat()):
                raise _Unusable("it is not a plain file")
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise _Unusable("it is not there (any more)") from None
    except NotRegular:
        raise _Unusable("it is not a plain file") from None
    if len(content) > limit:
        raise _Unusable(f"it is larger than {limit >> 10} KB")
    return content


def _sent_along(call: JobCall, event: Event) -> bytes | None:
    """Some servers send the image in their answer; a small one is still whole in the log."""
    source = call.reader.event(event.data.of)
    if source is None or not source.body:
        return None
    # A large picture is cut where the payload is kept; the agent's own transcript has it whole.
    parts = chain(images_in(response_of(source.body)), _images_in_transcript(source))
    return next((image for part in parts if (image := _decoded_image(part))), None)


def _decoded_image(part: str) -> bytes:
    try:
        return base64.b64decode(part, validate=True)
    except ValueError:
        return b""


def _images_in_transcript(source: Event) -> Iterator[str]:
    """Claude Code writes a tool's answer into its transcript, under the id of the call."""
    path, call = source.data.transcript, source.data.call
    if not (path.endswith(".jsonl") and call):
        return
    # From the end: the answer of this call is among the newest entries.
    for text in reversed(_end_of_file(Path(path)).splitlines()):
        if call.encode() in text and b'"image"' in text:
            yield from _images_of_call(text, call)


def _end_of_file(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=open_regular_itself) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST_TAIL))
            return file.read(LARGEST_TAIL)
    except OSError:
        return b""


def _images_of_call(text: bytes, call: str) -> Iterator[str]:
    try:
        entry = msgspec.json.decode(text, type=_TranscriptEntry)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return
    for part in entry.message.content:
        if isinstance(part, dict) and part.get("tool_use_id") == call:
            yield from images_in(part.get("content"))


def image_suffix(image: bytes) -> str:
    return next((name for magic, name in IMAGES.items() if image.startswith(magic)), "")


def _store_image(call: JobCall, doc: Run, event: Event, image: bytes, facts: Mapping[str, Any]) -> Path:
    """S3-8's name; several pictures of one second are told apart."""
    paths = places_of(doc)
    if paths is None:
        raise _Unusable("this run has no folder")
    folder = paths.ready(paths.screenshots(doc.id))
    when = utc_datetime(event.at).strftime("%H%M%S")
    name = f"{doc.id}-{slugify_text(doc.scenario)}-step{facts['step']}-{slugify_text(facts['action'])}-{when}"
    for number in range(1, MOST_IN_A_SECOND):
        path = folder / f"{name}{f'-{number}' if number > 1 else ''}{image_suffix(image)}"
        # The job may run again after a crash: the same picture keeps its name.
        if not os.path.lexists(path) or _is_same_image(path, image):
            call.put(File(path, image, COLLECT_MODE, hidden=folder.parent))
            return path
    raise _Unusable("too many pictures in one second")


def _is_same_image(path: Path, image: bytes) -> bool:
    return not path.is_symlink() and path.is_file() and path.read_bytes() == image


def _console_problems(doc: Run, event: Event, settings: UatSettings) -> Iterator[Event]:
    """Playwright MCP writes console messages to a file and names the new lines."""
    for name, first, last in event.data.logs:
        try:
            text = read_inside(Path(event.data.cwd or doc.project, name), doc, settings, LARGEST_LOG)
        except (_Unusable, OSError):
            continue
        lines = text.decode("utf-8", "replace").splitlines()
        new_lines = lines[max(0, first - 1) : last or None] if first else lines
        for number, entry in enumerate(console_lines("\n".join(new_lines))):
            data = {"level": "warning", "type": entry["type"], "message": entry["message"], "step": event.data.step}
            # The key has the number of the line: a job that runs again tells nothing twice.
            yield keyed_run_event(doc, "uat.problem", event.at, f"{event.seq}/{number}", n=event.data.n, **data)


# Which scenarios a project has: read from disk here, so that the hook path needs no disk to recognise one.

MOST_MISTAKES = 20


def scan_scenarios(call: JobCall) -> list[Event]:
    project = str(call.job.payload["project"])
    settings = call.settings(project) or DEFAULTS
    root = root_of(project, settings.root)
    return catalogue_events(call, project, root) if root else []


def catalogue_events(call: JobCall, project: str, root: str) -> list[Event]:
    plans, mistakes = load_catalogue(RunFolders(Path(root), project).scenarios)
    problems = [str(m) for m in mistakes[:MOST_MISTAKES]]
    current = CATALOGUES.load(call.reader, project) or Catalogue()
    # An unchanged catalogue makes no event.
    if (current.scenarios, current.problems) == (plans, problems):
        return []
    data = {"scenarios": plans, "problems": problems}
    return [Event(key=delivery_key(call.now), kind="uat.scenarios", at=call.now, project=project, data=data)]


def load_catalogue(folder: Path) -> tuple[dict[str, Plan], list[Mistake]]:
    """Name → plan. Two files with one name, or more than fits, are mistakes too."""
    plans: dict[str, Plan] = {}
    mistakes: list[Mistake] = []
    left = LARGEST_CATALOGUE
    for path in scenario_files(folder):
        plan, plan_mistakes = read_plan(path)
        mistakes += plan_mistakes
        if plan is None:
            continue
        plan.file, name = path.name, plan.name
        left -= len(msgspec.json.encode(plan))
        if name in plans:
            mistakes.append(Mistake(str(path), 1, f"name: {name} is already the name of {plans[name].file}"))
        elif left < 0:
            mistakes.append(Mistake(str(path), 0, "left out: the scenarios of this project are too large together"))
        else:
            plans[name] = plan
    return plans, mistakes


# What people ask for that touches the disk. The answer is an event whose key they know.

# Seconds.
PIXELS_S = 120.0
PICTURE_PROGRAM = Path(__file__).with_name("picture_program.py")
REQUESTS_MODE = 0o644


def done_key(key: str) -> str:
    return f"{key}/done"


def handle_request(call: JobCall) -> list[Event]:
    event = call.reader.event(int(call.job.payload["seq"]))
    if event is None:
        return []
    # The last event answers the request, under a key that the one who asked can wait for.
    *before, answer = WHAT[event.data.what](call, event)
    return [*before, msgspec.structs.replace(answer, key=done_key(event.key))]


def _load_requested_run(call: JobCall, event: Event) -> Run:
    return load_record(call.reader, event.data.uat).doc


def _handle_report(call: JobCall, event: Event) -> Event:
    return tend.report_event(call, _load_requested_run(call, event), event.data.formats or ("html",), "asked")


def _handle_recovery(call: JobCall, event: Event) -> Event:
    doc = _load_requested_run(call, event)
    paths = files.places_of(doc)
    if paths is None:
        return _answer_event(doc, "uat.restored", call.now, was="missing", now="missing", path="")
    path = tend.target_files(paths, doc, call.reader)[-1]
    was, before = tend.file_condition(path), tend.bytes_of(path)
    tend.put_run_files(call, doc)
    # Readable but not what the log says: a changed digit is damage too.
    was = "damaged" if was == "good" and tend.bytes_of(path) != before else was
    return _answer_event(doc, "uat.restored", call.now, was=was, now=tend.file_condition(path), path=str(path))


def _answer_event(doc: Run, kind: str, at: int, **data: Any) -> Event:
    return Event(key="", kind=kind, at=at, session=doc.session, project=doc.project, data={"uat": doc.id, **data})


def _handle_new_scenario(call: JobCall, event: Event) -> Event:
    """A first scenario, the schema beside it, and what git should not keep."""
    settings = call.settings(event.project) or DEFAULTS
    paths = RunFolders(Path(root_of(event.project, settings.root)), event.project)
    paths.ready(paths.scenarios)
    for path, content in scenario.initial_files(paths, event.data.name, event.data.base_url, event.data.text):
        if not os.path.lexists(path):
            call.put(File(path, content, REQUESTS_MODE))
    plans, mistakes = load_catalogue(paths.scenarios)
    data = {"scenarios": plans, "problems": [str(m) for m in mistakes[:MOST_MISTAKES]]}
    return Event(key="", kind="uat.scenarios", at=call.now, project=event.project, data=data)


def _handle_comparison(call: JobCall, event: Event) -> Event:
    one, other = load_record(call.reader, event.data.uat), load_record(call.reader, event.data.with_)
    paths = files.places_of(other.doc)
    folder = paths.ready(paths.screenshots(other.doc.id)) if paths else None
    pairs = [_compare_picture_pair(call, pair, folder, one.doc.id) for pair in suite.pair_screenshots(one, other)]
    report = _comparison_page(call, one, other, pairs, paths) if paths else ""
    return _answer_event(one.doc, "uat.compared", call.now, pairs=pairs, report=report, **{"with": other.doc.id})


def _compare_picture_pair(call: JobCall, pair: dict[str, Any], folder: Path | None, before: str) -> dict[str, Any]:
    """In a process of its own: a decoder that fails on a hostile picture fails alone."""
    if not (pair["before"] and pair["after"]):
        return {**pair, "share": 1.0, "note": "only in one of the runs"}
    target = folder / f"difference-{before}-step{pair['step']}-{pair['number']}.png" if folder else None
    argv = [sys.executable, "-I", str(PICTURE_PROGRAM), "compare", pair["before"], pair["after"]]
    ran = call.run([*argv, *([str(target)] if target else [])], timeout=PIXELS_S)
    try:
        return {**pair, **msgspec.json.decode(ran.out)}
    except msgspec.DecodeError:
        return {**pair, "share": None, "note": "could not be compared"}


def _comparison_page(call: JobCall, one: Record, other: Record, pairs: list[dict[str, Any]], paths: RunFolders) -> str:
    comparison = {**suite.compare_runs(one, other), "screenshots": pairs}
    path = paths.ready(paths.reports) / f"compare-{safe_file_name(one.doc.id)}-{safe_file_name(other.doc.id)}.html"
    call.put(File(path, render_comparison(comparison, (one, other)), REQUESTS_MODE))
    return str(path)


def _handle_cleanup(call: JobCall, event: Event) -> Event:
    """Files of ended runs older than so many days; the log and the state keep the runs themselves."""
    settings = call.settings(event.project) or DEFAULTS
    root = root_of(event.project, settings.root)
    days = event.data.days
    limit = call.now - int(days if isinstance(days, int) else settings.keep_days) * DAY
    removed: list[str] = []
    if root and Path(root).is_dir():
        paths = RunFolders(Path(root), event.project)
        removed = [str(p) for p in tend.sweep_temp_files(paths, time.time())]
        removed += _remove_old_runs(call, paths, event.project, limit, dry=event.data.dry)
    data = {"removed": removed[:1000], "count": len(removed), "dry": event.data.dry}
    return Event(key="", kind="uat.cleaned", at=call.now, project=event.project, data=data)


def _remove_old_runs(call: JobCall, paths: RunFolders, project: str, limit: int, *, dry: bool) -> list[str]:
    removed = []
    for status in ("completed", "archived"):
        for doc in tend.runs_with_status(call, status):
            if doc.project == project and doc.root == str(paths.root) and doc.at < limit:
                removed += _remove_run_files(call, paths, doc, dry=dry)
    return removed


def _remove_run_files(call: JobCall, paths: RunFolders, doc: Run, *, dry: bool) -> list[str]:
    candidates = [paths.screenshots(doc.id), paths.archive_file(doc.id)]
    candidates += [paths.reports / f"{doc.id}{end}" for end in ENDINGS.values()]
    # The session's file may belong to a later run of the session.
    if tend.latest_run_id(call.reader, doc.session) == doc.id:
        candidates += [paths.session_file(doc.session), paths.backup_file(doc.session)]
    there = [path for path in candidates if os.path.lexists(path) and paths.is_plain(path.parent)]
    for path in there if not dry else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return [str(path) for path in there]


def _handle_maintenance(call: JobCall, event: Event) -> list[Event]:
    made = tend.tend_runs(call)
    removed = [e.data.path for e in made if e.kind == "uat.archived" and e.data.path]
    data = {"removed": removed, "count": len(removed), "ended": sum(e.kind == "uat.ended" for e in made), "dry": False}
    return [*made, Event(key="", kind="uat.cleaned", at=call.now, project=event.project, data=data)]


def _as_single_event(handler: Callable[[JobCall, Event], Event]) -> Callable[[JobCall, Event], list[Event]]:
    return lambda call, event: [handler(call, event)]


WHAT: dict[str, Callable[[JobCall, Event], list[Event]]] = {
    "report": _as_single_event(_handle_report),
    "recover": _as_single_event(_handle_recovery),
    "init": _as_single_event(_handle_new_scenario),
    "compare": _as_single_event(_handle_comparison),
    "clean": _as_single_event(_handle_cleanup),
    "tend": _handle_maintenance,
}

"""Copies screenshots and reads console logs: only images, only from inside the project."""

import base64
import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.core.errors import UnsafePath
from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.features.uat.drivers.answers import find_problems, images_in
from holdfast.features.uat.drivers.results import IN_ANSWER, decode_json, response_of
from holdfast.features.uat.drivers.shell import DRIVER_FOLDERS
from holdfast.features.uat.file_names import slugify_text
from holdfast.features.uat.files import keyed_run_event, places_of
from holdfast.features.uat.folders import is_inside_folders
from holdfast.features.uat.runner_reports.trace import MEMBER
from holdfast.features.uat.settings import DEFAULTS, UatSettings, utc_datetime
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, Run
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
    # The key has the event and the name: a job that runs again reports the same picture.
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
        image = _sent_along(call, event)
        if not image:
            raise
    if not image_suffix(image):
        raise _Unusable("it is no PNG, JPEG or WebP image")
    return image


def _read_named(path: Path, doc: Run, settings: UatSettings) -> bytes:
    """A picture file, or a picture in a trace."""
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
    """Reads a plain file in the project or in a folder the person allowed."""
    own = tuple(str(Path(folder).expanduser()) for folder in DRIVER_FOLDERS)
    allowed = tuple(f for f in (doc.project, *settings.screenshot_folders, *own) if f.strip("/"))
    if not is_inside_folders(path, allowed):
        raise _Unusable("it is outside the project; allow its folder with `uat.screenshot_folders`")
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


def _sent_along(call: JobCall, event: Event) -> bytes:
    """Some servers send the image in their answer; a small one is still whole in the log."""
    source = call.reader.event(event.data.of)
    if source is None or not source.body:
        return b""
    # A large picture is cut where the payload is kept; the agent's own transcript has it whole.
    parts = chain(images_in(response_of(source.body)), _images_in_transcript(source))
    return next(filter(None, map(_decoded_image, parts)), b"")


def _decoded_image(part: str) -> bytes:
    try:
        return base64.b64decode(part, validate=True)
    except ValueError:
        return b""


def _images_in_transcript(source: Event) -> Iterator[str]:
    """Claude Code writes a tool's answer into its transcript, under the id of the call."""
    path, call = source.data.transcript, source.data.call
    if path.endswith(".jsonl") and call:
        # From the end: the answer of this call is among the newest entries.
        for text in reversed(_end_of_file(Path(path)).splitlines()):
            if call.encode() in text and b'"image"' in text:
                yield from _images_of_call(decode_json(text), call)


def _images_of_call(entry: Any, call: str) -> Iterator[str]:
    message = entry.get("message") if isinstance(entry, dict) else None
    parts = message.get("content") if isinstance(message, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.get("tool_use_id") == call:
            yield from images_in(part.get("content"))


def _end_of_file(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=open_regular_itself) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST_TAIL))
            return file.read(LARGEST_TAIL)
    except OSError:
        return b""


def image_suffix(image: bytes) -> str:
    return next((name for magic, name in IMAGES.items() if image.startswith(magic)), "")


def _store_image(call: JobCall, doc: Run, event: Event, image: bytes, facts: Mapping[str, Any]) -> Path:
    """S3-8's name, with a number for further pictures of the same second."""
    paths = places_of(doc)
    if paths is None:
        raise _Unusable("this run has no folder")
    folder = paths.ready(paths.screenshots(doc.id))
    when = utc_datetime(event.at).strftime("%H%M%S")
    name = f"{doc.id}-{slugify_text(doc.scenario)}-step{facts['step']}-{slugify_text(facts['action'])}-{when}"
    for number in range(1, MOST_IN_A_SECOND):
        path = folder / f"{name}{f'-{number}' if number > 1 else ''}{image_suffix(image)}"
        # The job may run again after a crash: the same picture keeps its name.
        if not os.path.lexists(path) or (path.is_file() and not path.is_symlink() and path.read_bytes() == image):
            call.put(File(path, image, COLLECT_MODE, hidden=folder.parent))
            return path
    raise _Unusable("too many pictures in one second")


def _console_problems(doc: Run, event: Event, settings: UatSettings) -> Iterator[Event]:
    """Playwright MCP writes console messages to a file and names the new lines."""
    for name, first, last in event.data.logs:
        try:
            text = read_inside(Path(event.data.cwd or doc.project, name), doc, settings, LARGEST_LOG)
        except (_Unusable, OSError):
            continue
        lines = text.decode("utf-8", "replace").splitlines()
        new_lines = lines[max(0, first - 1) : last or None] if first else lines
        for number, entry in enumerate(find_problems("\n".join(new_lines))):
            data = {"level": "warning", "type": entry["type"], "message": entry["message"], "step": event.data.step}
            # The key has the number of the line: a job that runs again reports nothing twice.
            yield keyed_run_event(doc, "uat.problem", event.at, f"{event.seq}/{number}", n=event.data.n, **data)

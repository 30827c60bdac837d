"""A trace of Playwright (`trace.zip`) as a run: each action is a step, with its picture, page, console and requests."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.drivers.results import decode_json
from holdfast.features.uat.runner_reports import TestAttempt, TestCase, TestReport
from holdfast.features.uat.settings import (
    FAILED,
    INTERRUPTED,
    LONGEST_NAME,
    MOST_PROBLEMS,
    MOST_STEPS,
    PASSED,
    clean_line,
)

# Bytes of one file in the archive, and lines in all.
LARGEST_PART = 64 << 20
MOST_LINES = 500_000
MEMBER = "!"
"""Between the name of an archive and that of a file in it."""
RUNNER = "playwright trace"

_ACTS = ("Frame", "Page", "ElementHandle", "Locator")
"""Of these the actions are steps; what is done to browsers and contexts only prepares them."""
_NO_STEPS = ("close", "setViewportSize", "bringToFront", "querySelector", "querySelectorAll", "title", "content")
# Playwright's inner form of getByLabel, getByText and getByRole.
_LABEL = re.compile(r'internal:(?:label|text|attr=\[\w+=)?=?"([^"]{1,200})"')
_ROLE = re.compile(r'internal:role=(\w+)(?:\[name="([^"]{1,200})")?')
_UNEXPECTED = re.compile(r'unexpected value "(.{0,300})"$')


class TracedAction(msgspec.Struct):
    title: str
    start: float
    end: float | None = None
    error: str = ""
    expected: str = ""
    received: str = ""
    address: str = ""


class _Trace:
    """What the lines of a trace say, in the order of time."""

    def __init__(self) -> None:
        self.title = ""
        self.actions: dict[str, TracedAction] = {}
        self.frames: list[tuple[float, str]] = []
        self.problems: list[tuple[float, str, str]] = []

    def handle_entry(self, entry: Mapping[str, Any]) -> None:
        handler = getattr(self, f"_take_{str(entry.get('type')).replace('-', '_')}", None)
        if handler is not None:
            handler(entry)

    def _take_context_options(self, entry: Mapping[str, Any]) -> None:
        self.title = self.title or str(entry.get("title") or "")

    def _take_before(self, entry: Mapping[str, Any]) -> None:
        if entry.get("class") in _ACTS and entry.get("method") not in _NO_STEPS:
            params = entry.get("params") if isinstance(entry.get("params"), Mapping) else {}
            action = TracedAction(_action_title(entry, params or {}), _number(entry.get("startTime")))
            action.expected = _expected_text(params or {})
            self.actions[str(entry.get("callId"))] = action

    def _take_after(self, entry: Mapping[str, Any]) -> None:
        action = self.actions.get(str(entry.get("callId")))
        if action is None:
            return
        action.end = _number(entry.get("endTime"))
        error = entry.get("error")
        inner = error.get("error") if isinstance(error, Mapping) else None
        facts = inner if isinstance(inner, Mapping) else error if isinstance(error, Mapping) else {}
        action.error = clean_line(str(facts.get("message") or "failed").partition("\n")[0], 300) if error else ""

    def _take_log(self, entry: Mapping[str, Any]) -> None:
        action, found = self.actions.get(str(entry.get("callId"))), _UNEXPECTED.search(str(entry.get("message")))
        if action is not None and found:
            action.received = clean_line(found[1], 200)

    def _take_frame_snapshot(self, entry: Mapping[str, Any]) -> None:
        snapshot = entry.get("snapshot")
        action = self.actions.get(str(snapshot.get("callId"))) if isinstance(snapshot, Mapping) else None
        if action is not None and isinstance(snapshot, Mapping):
            action.address = clean_line(snapshot.get("frameUrl"), 2_000)

    def _take_screencast_frame(self, entry: Mapping[str, Any]) -> None:
        file = entry.get("file") or (f"resources/{entry['sha1']}" if entry.get("sha1") else "")
        if file:
            self.frames.append((_number(entry.get("timestamp")), str(file)))

    def _take_console(self, entry: Mapping[str, Any]) -> None:
        if entry.get("messageType") == "error":
            self.problems.append((_number(entry.get("time")), "console", clean_line(entry.get("text"), 300)))

    def _take_resource_snapshot(self, entry: Mapping[str, Any]) -> None:
        snapshot = entry.get("snapshot") or {}
        request, response = snapshot.get("request") or {}, snapshot.get("response") or {}
        status = response.get("status")
        if isinstance(status, int) and (status >= 400 or status <= 0):
            words = f"{request.get('method')} {request.get('url')} → {status if status > 0 else 'failed'}"
            self.problems.append((_number(snapshot.get("_monotonicTime")), "network", clean_line(words, 300)))


def parse_trace(path: Path, name: str) -> TestReport:
    trace = _Trace()
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in _lines(archive):
                trace.handle_entry(entry)
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, AttributeError, TypeError) as error:
        raise CommandRefused(f"{path} cannot be read as a trace: {clean_line(error, 200)}") from None
    if not trace.actions:
        raise CommandRefused(f"there are no actions in {path}", fix="Give a trace.zip that Playwright wrote.")
    # The failure is at the end, therefore of a long trace the end is kept.
    actions = sorted(trace.actions.values(), key=lambda action: action.start)[-MOST_STEPS:]
    ends = [action.start for action in actions[1:]] + [float("inf")]
    cases = [_case(trace, action, until, path) for action, until in zip(actions, ends, strict=True)]
    return TestReport(RUNNER, clean_line(name, LONGEST_NAME), tuple(cases))


def _lines(archive: zipfile.ZipFile) -> Iterator[Mapping[str, Any]]:
    left = MOST_LINES
    # Network files come last: their requests are put to actions that are known then.
    for info in sorted(archive.infolist(), key=lambda info: info.filename.endswith(".network")):
        # The runner's own file repeats the actions of the others, and wraps them in its steps.
        if not info.filename.endswith((".trace", ".network")) or info.filename == "test.trace":
            continue
        # The archive's own word on the size: a small file can unpack to gigabytes.
        if info.file_size > LARGEST_PART:
            raise ValueError(f"{info.filename} is larger than {LARGEST_PART >> 20} MB")
        for one in archive.read(info).splitlines()[:left]:
            left -= 1
            if isinstance(entry := decode_json(one), dict):
                yield entry


def _case(trace: _Trace, action: TracedAction, until: float, path: Path) -> TestCase:
    problems = [(kind, text) for at, kind, text in trace.problems if action.start <= at < until][:MOST_PROBLEMS]
    attempt = TestAttempt(
        status=FAILED if action.error else INTERRUPTED if action.end is None else PASSED,
        ms=int(max(0, (action.end or action.start) - action.start)),
        pictures=tuple(f"{path}{MEMBER}{frame}" for frame in _frame_until(trace.frames, until)),
        problems=tuple(problems),
        address=action.address,
    )
    if attempt.status != PASSED:
        difference = {"expected": action.expected, "received": action.received}
        attempt = replace(attempt, error=action.error or "it did not end", traces=(str(path),), **difference)
    return TestCase(action.title, str(path), (attempt,))


def _frame_until(frames: list[tuple[float, str]], until: float) -> list[str]:
    """The page as the action left it: the last picture before the next action began."""
    before = [file for at, file in sorted(frames) if at <= until]
    return before[-1:] or [file for _, file in sorted(frames)][:1]


def _action_title(entry: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """What was typed is not in it."""
    name = str(entry.get("title") or entry.get("apiName") or entry.get("method"))
    target = params.get("url") or _readable_selector(str(params.get("selector") or "")) or params.get("key") or ""
    return clean_line(f"{name} {target}".strip(), 300)


def _readable_selector(selector: str) -> str:
    role, label = _ROLE.search(selector), _LABEL.search(selector)
    if role:
        return f"{role[1]} “{role[2]}”" if role[2] else role[1]
    return f"“{label[1]}”" if label else selector


def _expected_text(params: Mapping[str, Any]) -> str:
    wanted = params.get("expectedText")
    texts = [one.get("string") or one.get("regexSource") for one in wanted or () if isinstance(one, Mapping)]
    words = ", ".join(str(text) for text in texts if text)
    return clean_line(f"{params.get('expression') or ''} {words}".replace(".", " ").strip() if words else "", 200)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0

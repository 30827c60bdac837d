"""A first scenario from what an agent did in a browser: the steps it took, and what the pages showed."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.uat.match import called
from holdfast.features.uat.model import MOST_STEPS, line
from holdfast.features.uat.results import Result, result_of

PAGE = 1_000
_ACTIONS = {
    "navigate": "navigate", "fill": "fill", "press": "fill", "click": "click", "select": "select", "upload": "upload",
    "snapshot": "verify", "screenshot": "screenshot", "scroll": "scroll", "drag": "drag", "back": "back",
}  # fmt: skip
"""What a tool means → what a scenario calls it. Waiting, hovering and looking at logs are no steps."""
_HEADING = re.compile(r'heading "([^"\n]{1,120})"')


class RecordedStep(msgspec.Struct):
    action: str
    description: str
    path: str = ""
    calls: int = 1
    title: str = ""
    heading: str = ""


def record_steps(reader: Reader, session: str, extra: Mapping[str, str]) -> tuple[str, list[RecordedStep]]:
    """(base address, steps) of the successful browser calls of a session, in their order."""
    base = ""
    steps: list[RecordedStep] = []
    for event in _calls(reader, session):
        call = called(event, extra)
        action = _ACTIONS.get(call.use.meaning)
        result = result_of(event, event.body, browser=True) if action else None
        if action is None or result is None or not result.ok:
            continue
        base = base or _origin(call.use.address or result.url)
        _add(steps, action, call.use.address, call.arguments, result)
    if not steps:
        raise CommandRefused(f"no browser call that succeeded is on record for session {session!r}")
    return base, steps[:MOST_STEPS]


def _calls(reader: Reader, session: str) -> Iterable[Event]:
    after = 0
    while True:
        page = reader.events(EventQuery(session=session, kinds=("tool.finished",), after=after, limit=PAGE))
        for event in page:
            # A page of the log comes without the agents' own payloads.
            yield reader.event(event.seq) or event
        if len(page) < PAGE:
            return
        after = page[-1].seq


def _add(steps: list[RecordedStep], action: str, address: str, given: Mapping[str, Any], result: Result) -> None:
    last = steps[-1] if steps else None
    heading = _HEADING.search(result.text)
    if last and last.action == action and action in ("fill", "verify", "screenshot"):
        last.calls += action == "fill"
    else:
        parts = urlsplit(address)
        path = (parts.path or "/") if action == "navigate" else ""
        steps.append(RecordedStep(action, _description(action, path, given), path))
    if action == "verify":
        steps[-1].title = result.title or steps[-1].title
        steps[-1].heading = heading[1] if heading else steps[-1].heading


def _description(action: str, path: str, given: Mapping[str, Any]) -> str:
    named = given.get("element") or given.get("name") or given.get("selector") or ""
    if action == "navigate":
        return f"Open {path}"
    words = {"fill": "Fill in the form", "verify": "Look at the page", "screenshot": "Keep a picture"}
    return words.get(action) or line(f"{action.capitalize()} {named}".strip(), 120)


def _origin(address: str) -> str:
    parts = urlsplit(address) if "://" in address else None
    return f"{parts.scheme}://{parts.netloc}" if parts and parts.netloc else ""


def scenario_text(name: str, base: str, steps: list[RecordedStep], session: str) -> str:
    """YAML for a person to go over: what was typed is not in it, what was seen is asserted."""
    quoted = _quote
    lines = [
        "# yaml-language-server: $schema=./scenario.schema.json",
        f"# Recorded from session {line(session, 80)}. Go over it: say what each step is for and what must be true.",
        f"name: {quoted(name)}",
        "description: What was done in the browser",
        f"base_url: {quoted(base or 'http://localhost:3000')}",
        "steps:",
    ]
    for step in steps:
        where = f", arguments: {{url: {quoted(step.path + '*')}}}" if step.action == "navigate" else ""
        count = f", calls: {step.calls}" if step.calls > 1 else ""
        lines.append(f"  - {{action: {step.action}, description: {quoted(step.description)}{where}{count}}}")
    seen = [(n, step) for n, step in enumerate(steps, 1) if step.title or step.heading]
    if seen:
        lines.append("assertions:")
    for number, step in seen:
        what = f"title: {quoted(step.title)}" if step.title else f"contains: {quoted(step.heading)}"
        told = f"The page is {step.title or step.heading}"
        lines.append(f"  - {{description: {quoted(told)}, step: {number}, {what}}}")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    # {{ }} would be read as a variable of the scenario.
    return msgspec.json.encode(text.replace("{{", "{ {")).decode()

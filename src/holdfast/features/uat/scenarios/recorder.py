"""Drafts a scenario from what an agent did in a browser."""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from markupsafe import Markup

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import Plan
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.uat.drivers.evidence import read_page, whole_call
from holdfast.features.uat.drivers.results import Result, result_of
from holdfast.features.uat.drivers.table import ToolUse
from holdfast.features.uat.file_names import slugify_text
from holdfast.features.uat.scenarios.plan import build_plan
from holdfast.features.uat.scenarios.reader import SHARED, Mistake, mistake_at, read_scenario
from holdfast.features.uat.scenarios.scenario import Scenario
from holdfast.features.uat.settings import MOST_STEPS, clean_line
from holdfast.features.uat.state.step_match import call_of_event

PAGE = 1_000
_ACTIONS = {
    "navigate": "navigate", "fill": "fill", "press": "fill", "click": "click", "select": "select", "upload": "upload",
    "snapshot": "verify", "screenshot": "screenshot", "scroll": "scroll", "drag": "drag", "back": "back",
}  # fmt: skip
"""What a tool means → what a scenario calls it. Waiting, hovering and looking at logs are no steps."""
_HEADING = re.compile(r'heading "([^"\n]{1,120})"')
_NAMED = re.compile(
    r'^\s*uid=(?P<uid>\S{1,40}) \w{1,40} "(?P<by_uid>[^"\n]{1,120})"|'
    r'\w{1,40} "(?P<by_ref>[^"\n]{1,120})"[^\n]{0,100}?\[ref=(?P<ref>\w{1,40})\]',
    re.MULTILINE,
)
"""Elements of a snapshot with the sign that later calls name them by."""
_SIGNS = ("uid", "ref", "target", "selector")
_JOINED = ("fill", "verify", "screenshot")
"""Several calls of these in a row are one step."""


class RecordedStep(msgspec.Struct):
    action: str
    path: str = ""
    names: list[str] = []
    """Of the elements it was done to."""
    title: str = ""
    heading: str = ""

    @property
    def description(self) -> str:
        if self.action == "navigate":
            return f"Open {self.path}"
        words = {"fill": "Fill in", "verify": "Look at the page", "screenshot": "Keep a picture"}
        first = words.get(self.action, self.action.capitalize())
        named = ", ".join(dict.fromkeys(self.names)) if self.action not in ("verify", "screenshot") else ""
        return clean_line(f"{first} {named or ('the form' if self.action == 'fill' else '')}".strip(), 120)


def record_steps(reader: Reader, session: str, extra: Mapping[str, str]) -> tuple[str, list[RecordedStep]]:
    """(base address, steps) of the successful browser calls of a session, in their order."""
    base = ""
    steps: list[RecordedStep] = []
    names: dict[str, str] = {}
    for event in _finished_calls(reader, session):
        call = call_of_event(event, extra, whole_call(event).given)
        if not call.use.is_known:
            continue
        result = result_of(event, event.body, call.use, read_page(event))
        names |= _named_elements(result.text)
        for use in (call.use, *call.use.following) if result.ok else ():
            base = base or _origin_of_url(use.address or result.url)
            _add_recorded_step(steps, use, _element_names(call.arguments, names), result)
    if not steps:
        raise CommandRefused(f"no browser call that succeeded is on record for session {session!r}")
    return base, steps[:MOST_STEPS]


def _named_elements(text: str) -> dict[str, str]:
    """By the sign of an element: chrome-devtools-mcp calls it `uid`, Playwright `ref`."""
    return {match["uid"] or match["ref"]: match["by_uid"] or match["by_ref"] for match in _NAMED.finditer(text)}


def _element_names(arguments: Mapping[str, Any], names_by_sign: Mapping[str, str]) -> list[str]:
    """What the call was done to, as a person would call it."""
    parts = [arguments, *(one for name in ("fields", "elements") for one in _maps(arguments.get(name)))]
    labels = [_label(part, names_by_sign) for part in parts]
    words = str(arguments.get("command") or "").split()
    labels += [names_by_sign.get(word.removeprefix("@").strip("'\""), "") for word in words]
    return [label for label in labels if label]


def _label(part: Mapping[str, Any], names_by_sign: Mapping[str, str]) -> str:
    # agent-browser puts an @ before the sign.
    signs = (str(part[name]).removeprefix("@") for name in _SIGNS if isinstance(part.get(name), str))
    named = next((names_by_sign[sign] for sign in signs if sign in names_by_sign), "")
    return str(part.get("element") or part.get("name") or named)


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _finished_calls(reader: Reader, session: str) -> Iterable[Event]:
    after = 0
    while True:
        page = reader.events(EventQuery(session=session, kinds=("tool.finished",), after=after, limit=PAGE))
        for event in page:
            # A page of the log comes without the agents' own payloads.
            yield reader.event(event.seq) or event
        if len(page) < PAGE:
            return
        after = page[-1].seq


def _add_recorded_step(steps: list[RecordedStep], use: ToolUse, names: list[str], result: Result) -> None:
    action = _ACTIONS.get(use.meaning)
    if action is None:
        return
    if steps and steps[-1].action == action and action in _JOINED:
        steps[-1].names = [*steps[-1].names, *names]
    else:
        path = (urlsplit(use.address).path or "/") if action == "navigate" else ""
        steps.append(RecordedStep(action, path, names=names))
    _note_page(steps, result)


def _note_page(steps: list[RecordedStep], result: Result) -> None:
    """Asserts a title where it is new, and a heading where the page was looked at."""
    before = next((step.title for step in reversed(steps[:-1]) if step.title), "")
    headings = [text for text in _HEADING.findall(result.text) if text != result.title]
    step = steps[-1]
    if result.title and result.title != before:
        step.title = result.title
    if headings and step.action == "verify" and headings[0] != step.title:
        step.heading = headings[0]


def _origin_of_url(address: str) -> str:
    parts = urlsplit(address) if "://" in address else None
    # Only scheme and host: paths belong to the steps.
    return f"{parts.scheme}://{parts.netloc}" if parts and parts.netloc else ""


def scenario_text(name: str, base: str, steps: list[RecordedStep], session: str) -> str:
    """A draft in YAML: it leaves out what was typed and asserts what was seen."""
    from holdfast.features.uat.report.html import render_page

    # A text with {{ }} cannot be said in a scenario: it would be read as a variable.
    seen = [
        (number, words, condition, text)
        for number, step in enumerate(steps, 1)
        for words, condition, text in (("The page is", "title", step.title), ("It shows", "contains", step.heading))
        if text and "{{" not in text
    ]
    facts = {"name": name, "base": base or "http://localhost:3000", "session": clean_line(session, 80), "seen": seen}
    return render_page("recorded.yaml", steps=steps, **facts, quoted=_quote_yaml).decode()


def _quote_yaml(text: str) -> Markup:
    # {{ }} would be read as a variable of the scenario.
    return Markup(msgspec.json.encode(text.replace("{{", "{ {")).decode())  # noqa: S704 - YAML, no HTML


# ── files ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_plan(path: Path) -> tuple[Plan | None, list[Mistake]]:
    """The plan of a scenario file, with the shared steps it uses. Never raises."""
    file = read_scenario(path)
    if file.scenario is None:
        return None, file.mistakes
    plan, faults = build_plan(file.scenario, partial(_load_shared, path.parent))
    mistakes = [mistake_at(field_path, text, file.where, str(path)) for field_path, text in faults]
    return (None, mistakes) if faults else (plan, [])


def _load_shared(folder: Path, name: str) -> tuple[Scenario | None, str]:
    # The name becomes part of a path: nothing may lead out of the folder.
    if slugify_text(name) != name.lower():
        return None, f"{clean_line(name, 80)!r} is no name of shared steps: letters, digits and dashes"
    path = folder / SHARED / f"{name}.yaml"
    if not path.is_file():
        return None, f"there are no shared steps {name!r}; they would be in {SHARED}/{name}.yaml"
    shared = read_scenario(path)
    return shared.scenario, str(shared.mistakes[0]) if shared.mistakes else ""

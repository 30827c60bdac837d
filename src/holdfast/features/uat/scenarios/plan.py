"""From a scenario to the plan of a run: shared steps put in, data rows unrolled, variables replaced. Pure but for files."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds.uat_events import Plan, PlannedAssertion, PlannedCheck, PlannedStep
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.uat.drivers import ToolUse
from holdfast.features.uat.drivers.evidence import read_page, whole_call
from holdfast.features.uat.drivers.results import Result, result_of
from holdfast.features.uat.files import RunFolders, root_of, slugify_text
from holdfast.features.uat.scenarios.scenario import (
    SHARED,
    Mistake,
    Scenario,
    Step,
    lines_of,
    mistake_at,
    read_scenario,
)
from holdfast.features.uat.settings import DEFAULTS, MOST_CHECKS, MOST_STEPS, UatSettings, clean_line
from holdfast.features.uat.state import RUNS, SESSION_RUNS, Run, SessionRuns
from holdfast.features.uat.state.steps import call_of_event

# Levels of shared steps within shared steps.
DEEPEST_USE = 10
# {{name}} or {{secret:name}}.
_VARIABLE = re.compile(r"\{\{\s*(secret:)?([A-Za-z_][\w-]*)\s*\}\}")

Place = tuple[Any, ...]
Fault = tuple[Place, str]
LoadShared = Callable[[str], tuple[Scenario | None, str]]
"""Name of shared steps → (them, or what is wrong with them)."""


class PlanFault(Exception):
    def __init__(self, field_path: Place, text: str) -> None:
        super().__init__(text)
        self.place = field_path


class _Part(msgspec.Struct):
    """Steps with the assertions that belong to them, numbered from 1."""

    steps: list[PlannedStep]
    assertions: list[PlannedAssertion]


def no_shared_steps(name: str) -> tuple[Scenario | None, str]:
    """For a scenario that is no file: there is no folder its shared steps could be in."""
    return None, f"there are no shared steps {name!r} here"


def build_plan(scenario: Scenario, load_shared: LoadShared) -> tuple[Plan, list[Fault]]:
    """(the scenario as a run keeps it, what is wrong with it)."""
    try:
        return _expand_scenario(scenario, load_shared), []
    except PlanFault as fault:
        return Plan(), [(fault.place, str(fault))]


def _expand_scenario(scenario: Scenario, load_shared: LoadShared) -> Plan:
    rows = scenario.data or ({},)
    parts = [_row_part(scenario, dict(row), n, load_shared) for n, row in enumerate(rows)]
    steps = [step for part in parts for step in part.steps]
    if len(steps) > MOST_STEPS:
        raise PlanFault(
            ("steps",), f"with shared steps and data there are {len(steps)} steps; {MOST_STEPS} are possible"
        )
    assertions = list(_shift_assertions(parts)) + list(_of_whole_run(scenario))
    # Only the variables of the scenario: a data row belongs to steps, not to the whole run.
    names = _Names(dict(scenario.variables), scenario.secrets, ())
    checks = [msgspec.convert(names.put_in(one.plain(none=False)), PlannedCheck) for one in scenario.health_checks]
    return Plan(
        name=names.put_in(scenario.name),
        description=names.put_in(scenario.description),
        base_url=names.put_in(scenario.base_url),
        tags=list(scenario.tags),
        preconditions=[names.put_in(one.description) for one in scenario.preconditions if one.description],
        estimated_ms=scenario.estimated_ms or sum(step.expected_ms or 0 for step in steps),
        steps=steps,
        assertions=assertions[:MOST_CHECKS],
        health_checks=[*_precondition_checks(scenario, names), *checks],
    )


def _row_part(scenario: Scenario, row: dict[str, Any], number: int, load_shared: LoadShared) -> _Part:
    names = _Names({**scenario.variables, **row}, scenario.secrets, ("data", number) if row else ())
    part = _expand_part(scenario, names, load_shared, ())
    if row:
        label = ", ".join(f"{name} {value}" for name, value in row.items())
        for step in part.steps:
            step.description = clean_line(f"{step.description or step.action} [{label}]", 500)
    return part


def _expand_part(
    scenario: Scenario, names: "_Names", load_shared: LoadShared, within: tuple[str, ...], outer: Place = ()
) -> _Part:
    made = _Part([], [])
    numbers: dict[int, int] = {}
    for index, step in enumerate(scenario.steps):
        if step.use:
            # A fault in shared steps is shown where the person's own file uses them.
            field_path = outer or ("steps", index, "use")
            inner = _shared_part(step, field_path, names, load_shared, within)
            _append_part(made, inner)
        else:
            fields = names.put_in(step.plain(none=False), ("steps", index))
            made.steps.append(msgspec.convert(fields, PlannedStep))
        # Assertions name steps as written; shared steps have moved those behind them.
        numbers[index + 1] = len(made.steps)
    for index, assertion in enumerate(scenario.assertions):
        fields = names.put_in(assertion.plain(none=False), ("assertions", index))
        planned = msgspec.convert(fields, PlannedAssertion)
        planned.step = numbers[assertion.step] if assertion.step else None
        made.assertions.append(planned)
    return made


def _shared_part(
    step: Step, field_path: Place, names: "_Names", load_shared: LoadShared, within: tuple[str, ...]
) -> _Part:
    if step.use in within:
        raise PlanFault(field_path, f"shared steps use each other in a circle: {' → '.join((*within, step.use))}")
    if len(within) >= DEEPEST_USE:
        raise PlanFault(field_path, f"shared steps are nested deeper than {DEEPEST_USE}")
    shared, problem = load_shared(step.use)
    if shared is None:
        raise PlanFault(field_path, problem)
    arguments = {name: names.put_in(value, field_path) for name, value in step.with_.items()}
    inner = _Names({**shared.variables, **arguments}, {**names.secrets, **shared.secrets}, names.place)
    return _expand_part(shared, inner, load_shared, (*within, step.use), field_path)


def _append_part(made: _Part, part: _Part) -> None:
    offset = len(made.steps)
    made.steps += part.steps
    made.assertions += [_moved(one, offset) for one in part.assertions]


def _moved(assertion: PlannedAssertion, offset: int) -> PlannedAssertion:
    return replace(assertion, step=assertion.step + offset) if assertion.step else assertion


def _shift_assertions(parts: list[_Part]) -> Iterator[PlannedAssertion]:
    """Assertions of each row at the steps of that row; those of no step stand once."""
    offset = 0
    seen: list[PlannedAssertion] = []
    for part in parts:
        for one in part.assertions:
            if one.step:
                yield _moved(one, offset)
            elif one not in seen:
                seen.append(one)
                yield one
        offset += len(part.steps)


def _of_whole_run(scenario: Scenario) -> Iterator[PlannedAssertion]:
    if scenario.console == "clean":
        yield PlannedAssertion(description="The console stays clean", clean_console=True)
    if scenario.accessibility:
        most, impact = scenario.accessibility.max_violations, scenario.accessibility.impact
        words = f"axe finds at most {most} violations that are {impact} or worse"
        yield PlannedAssertion(description=words, max_violations=most, impact=impact)
    if scenario.budget_ms:
        yield PlannedAssertion(description="The run stays in its time budget", budget_ms=scenario.budget_ms)


def _precondition_checks(scenario: Scenario, names: "_Names") -> Iterator[PlannedCheck]:
    for one in scenario.preconditions:
        if one.path is not None:
            path, contains = names.put_in(one.path), names.put_in(one.contains)
            asked = {"path": path, "status": one.status, "contains": contains}
            yield PlannedCheck(type="http", precondition=True, description=names.put_in(one.description), **asked)


class _Names:
    """What {{name}} stands for."""

    def __init__(self, variables: Mapping[str, Any], secrets: Mapping[str, str], field_path: Place) -> None:
        self.variables, self.secrets, self.place = variables, secrets, field_path

    def put_in(self, value: Any, field_path: Place = ()) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: self._value(match, field_path or self.place), value)
        if isinstance(value, Mapping):
            return {name: self.put_in(inner, field_path) for name, inner in value.items()}
        return [self.put_in(inner, field_path) for inner in value] if isinstance(value, list | tuple) else value

    def _value(self, match: re.Match[str], field_path: Place) -> str:
        secret, name = match.groups()
        if secret:
            if name not in self.secrets:
                raise PlanFault(
                    field_path, f"there is no secret {name!r}; name its environment variable under `secrets`"
                )
            # Only the name of the environment variable is put in: the secret never stands in a plan.
            return f"${self.secrets[name]}"
        if name not in self.variables:
            raise PlanFault(field_path, f"there is no variable {name!r}")
        value = self.variables[name]
        # As in YAML, not as Python writes it.
        return str(value).lower() if isinstance(value, bool) else str(value)


# A first scenario from what an agent did in a browser: the steps it took, and what the pages showed.

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
        names |= {
            # chrome-devtools-mcp calls the sign of an element `uid`, Playwright `ref`.
            match["uid"] or match["ref"]: match["by_uid"] or match["by_ref"]
            for match in _NAMED.finditer(result.text)
        }
        for use in (call.use, *call.use.following) if result.ok else ():
            base = base or _origin_of_url(use.address or result.url)
            _add_recorded_step(steps, use, _element_names(call.arguments, names), result)
    if not steps:
        raise CommandRefused(f"no browser call that succeeded is on record for session {session!r}")
    return base, steps[:MOST_STEPS]


def _element_names(arguments: Mapping[str, Any], names_by_ref: Mapping[str, str]) -> list[str]:
    """What the call was done to, as a person would call it."""
    parts = [arguments, *(one for name in ("fields", "elements") for one in _maps(arguments.get(name)))]
    labels = []
    for part in parts:
        label = part.get("element") or part.get("name")
        # agent-browser puts an @ before the sign.
        signs = [str(part[name]).removeprefix("@") for name in _SIGNS if isinstance(part.get(name), str)]
        labels.append(str(label) if label else next((names_by_ref[sign] for sign in signs if sign in names_by_ref), ""))
    words = str(arguments.get("command") or "").split() if "command" in arguments else []
    labels += [names_by_ref[sign] for word in words if (sign := word.removeprefix("@").strip("'\"")) in names_by_ref]
    return [name for name in labels if name]


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
    """A title is worth an assertion where it is new; a heading only where somebody looked at the page."""
    before = next((step.title for step in reversed(steps[:-1]) if step.title), "")
    headings = [text for text in _HEADING.findall(result.text) if text != result.title]
    step = steps[-1]
    if result.title and result.title != before:
        step.title = result.title
    if headings and step.action == "verify":
        step.heading = headings[0]


def _origin_of_url(address: str) -> str:
    parts = urlsplit(address) if "://" in address else None
    # Only scheme and host: paths belong to the steps.
    return f"{parts.scheme}://{parts.netloc}" if parts and parts.netloc else ""


def scenario_text(name: str, base: str, steps: list[RecordedStep], session: str) -> str:
    """YAML for a person to go over: what was typed is not in it, what was seen is asserted."""
    quoted = _quote_yaml
    lines = [
        "# yaml-language-server: $schema=./scenario.schema.json",
        f"# Recorded from session {clean_line(session, 80)}. Go over it: say what each step is for and what must be true.",
        f"name: {quoted(name)}",
        "description: What was done in the browser",
        f"base_url: {quoted(base or 'http://localhost:3000')}",
        "steps:",
    ]
    for step in steps:
        where = f", arguments: {{url: {quoted(step.path + '*')}}}" if step.action == "navigate" else ""
        lines.append(f"  - {{action: {step.action}, description: {quoted(step.description)}{where}}}")
    seen = [seen for number, step in enumerate(steps, 1) for seen in _seen_in_step(number, step)]
    lines += ["assertions:", *seen] if seen else []
    return "\n".join(lines) + "\n"


def _seen_in_step(number: int, step: RecordedStep) -> Iterator[str]:
    # A text with {{ }} cannot be said in a scenario: it would be read as a variable.
    if step.title and "{{" not in step.title:
        expectation = _quote_yaml(f"The page is {step.title}")
        yield f"  - {{description: {expectation}, step: {number}, title: {_quote_yaml(step.title)}}}"
    if step.heading and step.heading != step.title and "{{" not in step.heading:
        expectation = _quote_yaml(f"It shows {step.heading}")
        yield f"  - {{description: {expectation}, step: {number}, contains: {_quote_yaml(step.heading)}}}"


def _quote_yaml(text: str) -> str:
    # {{ }} would be read as a variable of the scenario.
    return msgspec.json.encode(text.replace("{{", "{ {")).decode()


# ── files ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_plan(path: Path) -> tuple[Plan | None, list[Mistake]]:
    """The plan of a scenario file, with the shared steps it uses. Never raises."""
    scenario, mistakes = read_scenario(path)
    if scenario is None:
        return None, mistakes
    plan, faults = build_plan(scenario, partial(_load_shared, path.parent))
    if faults:
        where = lines_of(path)
        return None, [mistake_at(field_path, text, where, str(path)) for field_path, text in faults]
    return plan, []


def _load_shared(folder: Path, name: str) -> tuple[Scenario | None, str]:
    # The name becomes part of a path: nothing may lead out of the folder.
    if slugify_text(name) != name.lower():
        return None, f"{clean_line(name, 80)!r} is no name of shared steps: letters, digits and dashes"
    path = folder / SHARED / f"{name}.yaml"
    if not path.is_file():
        return None, f"there are no shared steps {name!r}; they would be in {SHARED}/{name}.yaml"
    shared, mistakes = read_scenario(path)
    return shared, str(mistakes[0]) if mistakes else ""


# Which run is meant: by its id or the end of it, else the session's, else the project's latest.

SEARCHED = 1_000


def settings_of_call(call: Call) -> UatSettings:
    return call.settings or DEFAULTS


def places_of_call(call: Call) -> RunFolders:
    root = root_of(call.project, settings_of_call(call).root)
    if not root:
        raise CommandRefused("there is no project here", fix="Go into its folder, or set `uat.root`.")
    return RunFolders(Path(root), call.project)


def find_run(call: Call, name: str = "run") -> Run:
    run_id = str(call.args.get(name) or "")
    if not run_id:
        return _latest_run(call)
    run_doc = RUNS.load(call.reader, run_id) or _by_part(call, run_id)
    if run_doc is None:
        raise CommandRefused(f"there is no UAT run {run_id!r}", fix="See: holdfast uat list")
    return run_doc


def require_active_run(call: Call) -> Run:
    """The run that is going on in the session."""
    doc = find_run(call) if call.args.get("run") else _find_active_run(call)
    if doc is None or doc.status != "active":
        which = f"run {doc.id} is over" if doc else "no UAT run is going on in this session"
        raise CommandRefused(which, fix="Begin one with: holdfast uat start SCENARIO")
    return doc


def _find_active_run(call: Call) -> Run | None:
    mine = of_session(call)
    return RUNS.load(call.reader, mine.active) if mine and mine.active else None


def session_of_call(call: Call) -> str:
    session_id = str(call.args.get("session") or call.session or "")
    if session_id == "latest":
        session_id = latest_session(call)
    if not session_id:
        raise CommandRefused(
            "no session is known here", fix="Name one with --session ID, or --session latest for the last one at work."
        )
    return session_id


def of_session(call: Call) -> SessionRuns | None:
    session_id = str(call.args.get("session") or call.session or "")
    session_id = latest_session(call) if session_id == "latest" or not session_id else session_id
    return SESSION_RUNS.load(call.reader, session_id) if session_id else None


def _latest_run(call: Call) -> Run:
    mine = of_session(call)
    latest = mine.runs[-1] if mine and mine.runs else ""
    run_doc = RUNS.load(call.reader, latest) if latest else None
    if run_doc is None and not call.args.get("session"):
        run_doc = next((doc for _, doc in RUNS.list(call.reader, project=call.project, limit=1)), None)
    if run_doc is None:
        raise CommandRefused("there is no UAT run yet", fix="Begin one with: holdfast uat start SCENARIO")
    return run_doc


def _by_part(call: Call, id_part: str) -> Run | None:
    candidates = [doc for doc in _recent_runs(call) if doc.id.startswith(id_part) or doc.id.endswith(id_part)]
    if len(candidates) > 1:
        ids = ", ".join(doc.id for doc in candidates[:5])
        raise CommandRefused(f"{id_part!r} may be any of {ids}", fix="Give more of it.")
    return candidates[0] if candidates else None


def imported_runs(call: Call, digest: str) -> list[Run]:
    """The runs of this project that came out of the same file; a larger import is several."""
    rows = RUNS.list(call.reader, project=call.project, limit=SEARCHED)
    return [doc for _, doc in reversed(rows) if doc.digest == digest and doc.project == call.project]


def _recent_runs(call: Call) -> Iterator[Run]:
    yield from (doc for _, doc in RUNS.list(call.reader, limit=SEARCHED))


def latest_session(call: Call) -> str:
    page = call.reader.events(EventQuery(project=call.project, newest=True, limit=50)) if call.project else []
    return next((event.session for event in reversed(page) if event.session and event.agent), "")

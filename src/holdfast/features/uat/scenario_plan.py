"""From a scenario to the plan of a run: shared steps put in, data rows unrolled, variables replaced. Pure but for files."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.features.uat.model import MOST_CHECKS, MOST_STEPS, line
from holdfast.features.uat.scenario import Assertion, Scenario, Step

DEEPEST_USE = 10
_VARIABLE = re.compile(r"\{\{\s*(secret:)?([A-Za-z_][\w-]*)\s*\}\}")

Place = tuple[Any, ...]
Fault = tuple[Place, str]
LoadShared = Callable[[str], tuple[Scenario | None, str]]
"""Name of shared steps → (them, or what is wrong with them)."""


class PlanFault(Exception):
    def __init__(self, place: Place, text: str) -> None:
        super().__init__(text)
        self.place = place


class _Part(msgspec.Struct):
    """Steps with the assertions that belong to them, numbered from 1."""

    steps: list[dict[str, Any]]
    assertions: list[dict[str, Any]]


def no_shared_steps(name: str) -> tuple[Scenario | None, str]:
    """For a scenario that is no file: there is no folder its shared steps could be in."""
    return None, f"there are no shared steps {name!r} here"


def build_plan(scenario: Scenario, load_shared: LoadShared) -> tuple[dict[str, Any], list[Fault]]:
    """(the scenario as a run keeps it, what is wrong with it)."""
    try:
        return _plan(scenario, load_shared), []
    except PlanFault as fault:
        return {}, [(fault.place, str(fault))]


def _plan(scenario: Scenario, load_shared: LoadShared) -> dict[str, Any]:
    plain = scenario.plain(none=False)
    rows = scenario.data or ({},)
    parts = [_row_part(scenario, dict(row), n, load_shared) for n, row in enumerate(rows)]
    steps = [step for part in parts for step in part.steps]
    if len(steps) > MOST_STEPS:
        raise PlanFault(
            ("steps",), f"with shared steps and data there are {len(steps)} steps; {MOST_STEPS} are possible"
        )
    assertions = list(_shifted(parts)) + list(_of_whole_run(scenario))
    names = _Names(dict(scenario.variables), scenario.secrets, ())
    kept = {"name", "description", "base_url", "tags", "health_checks", "file"}
    plan = {name: names.put_in(value) for name, value in plain.items() if name in kept}
    plan |= {"steps": steps, "assertions": assertions[:MOST_CHECKS]}
    plan["health_checks"] = [*_precondition_checks(scenario, names), *plan.get("health_checks", ())]
    plan["preconditions"] = [names.put_in(one.description) for one in scenario.preconditions if one.description]
    plan["estimated_ms"] = scenario.estimated_ms or sum(step.get("expected_ms") or 0 for step in steps)
    return plan


def misplaced_numbers(scenario: Scenario) -> list[Fault]:
    """Assertions and checks that name a step which is not in the file."""
    steps = len(scenario.steps)
    parts: dict[str, tuple[Any, ...]] = {"assertions": scenario.assertions, "health_checks": scenario.health_checks}
    return [
        ((what, number, "step"), f"there is no step {part.step}, only {steps}")
        for what, listed in parts.items()
        for number, part in enumerate(listed)
        if part.step and part.step > steps
    ]


def _row_part(scenario: Scenario, row: dict[str, Any], number: int, load_shared: LoadShared) -> _Part:
    names = _Names({**scenario.variables, **row}, scenario.secrets, ("data", number) if row else ())
    part = _part(scenario, names, load_shared, ())
    if row:
        label = ", ".join(f"{name} {value}" for name, value in row.items())
        for step in part.steps:
            step["description"] = line(f"{step.get('description') or step['action']} [{label}]", 500)
    return part


def _part(
    scenario: Scenario, names: "_Names", load_shared: LoadShared, within: tuple[str, ...], outer: Place = ()
) -> _Part:
    made = _Part([], [])
    numbers: dict[int, int] = {}
    for index, step in enumerate(scenario.steps):
        if step.use:
            place = outer or ("steps", index, "use")
            inner = _shared_part(step, place, names, load_shared, within)
            _append(made, inner)
        else:
            made.steps.append(names.put_in(step.plain(none=False), ("steps", index)))
        numbers[index + 1] = len(made.steps)
    for index, assertion in enumerate(scenario.assertions):
        plain = names.put_in(_plain_assertion(assertion), ("assertions", index))
        if assertion.step:
            plain["step"] = numbers[assertion.step]
        made.assertions.append(plain)
    return made


def _plain_assertion(assertion: Assertion) -> dict[str, Any]:
    plain: dict[str, Any] = assertion.plain(none=False)
    return plain


def _shared_part(step: Step, place: Place, names: "_Names", load_shared: LoadShared, within: tuple[str, ...]) -> _Part:
    if step.use in within:
        raise PlanFault(place, f"shared steps use each other in a circle: {' → '.join((*within, step.use))}")
    if len(within) >= DEEPEST_USE:
        raise PlanFault(place, f"shared steps are nested deeper than {DEEPEST_USE}")
    shared, problem = load_shared(step.use)
    if shared is None:
        raise PlanFault(place, problem)
    given = {name: names.put_in(value, place) for name, value in step.with_.items()}
    inner = _Names({**shared.variables, **given}, {**names.secrets, **shared.secrets}, names.place)
    return _part(shared, inner, load_shared, (*within, step.use), place)


def _append(made: _Part, part: _Part) -> None:
    offset = len(made.steps)
    made.steps += part.steps
    made.assertions += [{**one, "step": one["step"] + offset} if one.get("step") else one for one in part.assertions]


def _shifted(parts: list[_Part]) -> Iterator[dict[str, Any]]:
    """Assertions of each row at the steps of that row; those of no step stand once."""
    offset, seen = 0, []
    for part in parts:
        for one in part.assertions:
            if one.get("step"):
                yield {**one, "step": one["step"] + offset}
            elif one not in seen:
                seen.append(one)
                yield one
        offset += len(part.steps)


def _of_whole_run(scenario: Scenario) -> Iterator[dict[str, Any]]:
    if scenario.console == "clean":
        yield {"description": "The console stays clean", "clean_console": True}
    if scenario.accessibility:
        most, impact = scenario.accessibility.max_violations, scenario.accessibility.impact
        words = f"axe finds at most {most} violations that are {impact} or worse"
        yield {"description": words, "max_violations": most, "impact": impact}
    if scenario.budget_ms:
        yield {"description": "The run stays in its time budget", "budget_ms": scenario.budget_ms}


def _precondition_checks(scenario: Scenario, names: "_Names") -> Iterator[dict[str, Any]]:
    for one in scenario.preconditions:
        if one.path is not None:
            facts = {"path": one.path, "status": one.status, "contains": one.contains}
            told = {name: names.put_in(value) for name, value in facts.items() if value is not None}
            yield {"type": "http", "precondition": True, **told}


class _Names:
    """What {{name}} stands for."""

    def __init__(self, variables: Mapping[str, Any], secrets: Mapping[str, str], place: Place) -> None:
        self.variables, self.secrets, self.place = variables, secrets, place

    def put_in(self, value: Any, place: Place = ()) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._value(found, place or self.place), value)
        if isinstance(value, Mapping):
            return {name: self.put_in(inner, place) for name, inner in value.items()}
        return [self.put_in(inner, place) for inner in value] if isinstance(value, list | tuple) else value

    def _value(self, found: re.Match[str], place: Place) -> str:
        secret, name = found.groups()
        if secret:
            if name not in self.secrets:
                raise PlanFault(place, f"there is no secret {name!r}; name its environment variable under `secrets`")
            return f"${self.secrets[name]}"
        if name not in self.variables:
            raise PlanFault(place, f"there is no variable {name!r}")
        value = self.variables[name]
        return str(value).lower() if isinstance(value, bool) else str(value)

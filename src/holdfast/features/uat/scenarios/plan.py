"""From a scenario to the plan of a run: shared steps put in, data rows unrolled, variables replaced."""

# Pure but for files.

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.kinds.uat_events import Plan, PlannedAssertion, PlannedCheck, PlannedStep
from holdfast.features.uat.scenarios.scenario import Scenario, Step
from holdfast.features.uat.settings import MOST_CHECKS, MOST_STEPS, clean_line

# Levels of shared steps within shared steps.
DEEPEST_USE = 10
# {{name}} or {{secret:name}}.
_VARIABLE = re.compile(r"\{\{\s*(secret:)?([A-Za-z_][\w-]*)\s*\}\}")

Place = tuple[Any, ...]
Fault = tuple[Place, str]
LoadShared = Callable[[str], tuple[Scenario | None, str]]
"""Name of shared steps → (the steps, or the problem with them)."""


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
    parts = [_row_part(scenario, dict(row), n, load_shared) for n, row in enumerate(scenario.data or ({},))]
    steps = list(chain.from_iterable(part.steps for part in parts))
    if len(steps) > MOST_STEPS:
        text = f"with shared steps and data there are {len(steps)} steps; {MOST_STEPS} are possible"
        raise PlanFault(("steps",), text)
    assertions = [*_shift_assertions(parts), *_of_whole_run(scenario)]
    # Only the variables of the scenario: a data row belongs to steps, not to the whole run.
    names = _Names(dict(scenario.variables), scenario.secrets, ())
    return Plan(
        **{name: names.put_in(getattr(scenario, name)) for name in ("name", "description", "base_url")},
        tags=list(scenario.tags),
        preconditions=list(filter(None, (names.put_in(one.description) for one in scenario.preconditions))),
        estimated_ms=scenario.estimated_ms or sum(filter(None, (step.expected_ms for step in steps))),
        steps=steps,
        assertions=assertions[:MOST_CHECKS],
        health_checks=list(_planned_checks(scenario, names)),
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
    """Assertions of each row at the steps of that row; those without a step once."""
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


def _planned_checks(scenario: Scenario, names: "_Names") -> Iterator[PlannedCheck]:
    for one in scenario.preconditions:
        if one.path is not None:
            path, contains = names.put_in(one.path), names.put_in(one.contains)
            asked = {"path": path, "status": one.status, "contains": contains}
            yield PlannedCheck(type="http", precondition=True, description=names.put_in(one.description), **asked)
    for check in scenario.health_checks:
        yield msgspec.convert(names.put_in(check.plain(none=False)), PlannedCheck)


class _Names:
    """The values of {{name}}."""

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
            # Only the name of the environment variable is put in: a plan never holds the secret.
            return f"${self.secrets[name]}"
        if name not in self.variables:
            raise PlanFault(field_path, f"there is no variable {name!r}")
        value = self.variables[name]
        # As in YAML, not as Python writes it.
        return str(value).lower() if isinstance(value, bool) else str(value)

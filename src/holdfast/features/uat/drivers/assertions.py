"""Judges assertions and page checks on what a tool reported."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.core.kinds.uat_events import Conditions, Plan, PlannedAssertion
from holdfast.features.uat.drivers.answers import readable_page, without_fields
from holdfast.features.uat.drivers.results import IMPACTS, Result
from holdfast.features.uat.settings import clean_line
from holdfast.features.uat.state.step_match import text_fits

LONGEST_EXPECTED = 200
SILENT = ("screenshot", "close", "tab", "open")
"""Calls with these meanings answer nothing about the page."""
LISTING = ("console", "network")
"""These answer with lists: what is missing there may still be on the page."""


ALWAYS = ("not_contains", "max_ms", "no_errors", "clean_console", "max_violations")
"""These must hold for every result of the step; of the others one result is enough."""
_PAGE_FACTS = ("url", "title")


class Judged(NamedTuple):
    result: Result
    criteria: Conditions
    base_url: str = ""

    @property
    def violations(self) -> list[str]:
        return found_violations(self.result.value, self.criteria.impact) or []

    @property
    def fields(self) -> dict[str, Any]:
        return {path: value_at_path(self.result.value, path) for path in self.criteria.fields or ()}


CONDITIONS: dict[str, Callable[[Any, Judged], bool]] = {
    "contains": lambda text, one: text in one.result.text,
    "not_contains": lambda text, one: text not in one.result.text,
    "url": lambda glob, one: bool(one.result.url) and text_fits(glob, one.result.url, one.base_url),
    "title": lambda glob, one: text_fits(glob, one.result.title),
    "status": lambda code, one: one.result.status == code,
    "exit_code": lambda code, one: one.result.exit_code == code,
    "max_ms": lambda most, one: one.result.ms <= most,
    "no_errors": lambda wanted, one: not wanted or (not one.result.errors and one.result.ok),
    "fields": lambda fields, one: one.fields == fields,
    "clean_console": lambda wanted, one: not wanted or not one.result.console_errors,
    "max_violations": lambda most, one: len(one.violations) <= most,
}
"""What an assertion may ask for (`scenario.Condition` says it with types), and when one result meets it."""
_FOUND: dict[str, Callable[[Judged], str]] = {
    "url": lambda one: f"url {one.result.url!r}" if one.result.url else "the driver did not say the page's url",
    "title": lambda one: (
        f"title {one.result.title!r}" if one.result.title else "the driver did not say the page's title"
    ),
    "status": lambda one: f"status {one.result.status}",
    "exit_code": lambda one: f"exit code {one.result.exit_code}",
    "max_ms": lambda one: f"ms {one.result.ms}",
    "no_errors": lambda one: f"{one.result.errors} errors",
    "fields": lambda one: ", ".join(f"{path} = {value!r}" for path, value in one.fields.items()),
    # Playwright only counts them in its answer; their words are in a file, and come as warnings of the run.
    "clean_console": lambda one: ": ".join(
        filter(
            None, (f"{one.result.console_errors} console errors", "; ".join(p["message"] for p in one.result.problems))
        )
    ),
    "max_violations": lambda one: f"{len(one.violations)} violations: {'; '.join(one.violations)}",
}
"""What was found instead."""


def conditions_of(criteria: Any) -> dict[str, Any]:
    """Of an assertion or a health check (in a scenario or in a plan), only what is to hold."""
    asked = ((name, getattr(criteria, name)) for name in CONDITIONS)
    return {name: value for name, value in asked if value is not None}


def meets_conditions(criteria: Conditions, result: Result, base_url: str = "") -> bool:
    """All of the conditions, on one result."""
    return not unmet_conditions(criteria, result, base_url)


def unmet_conditions(criteria: Conditions, result: Result, base_url: str) -> list[str]:
    judged = Judged(result, criteria, base_url)
    return [name for name, wanted in conditions_of(criteria).items() if not CONDITIONS[name](wanted, judged)]


def value_at_path(value: Any, path: str) -> Any:
    """`a.b.0`: a place in a JSON result; None when it is not there."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def judge_assertions(plan: Plan, step: int, result: Result, meaning: str = "") -> Iterator[dict[str, Any]]:
    """Those of the scenario that this result speaks about: met, not yet, or broken for good."""
    for number, criteria in enumerate(plan.assertions):
        if criteria.step not in (None, step) or not _is_judged(criteria, result):
            continue
        missed = unmet_conditions(criteria, result, plan.base_url)
        broken = not set(missed).isdisjoint(ALWAYS)
        # A call that says nothing about the page (a screenshot) can only break an assertion.
        if broken or meaning not in ((*SILENT, *LISTING) if missed else SILENT):
            untold = bool(missed) and not any(_is_known(name, result) for name in missed)
            actual = actual_values(criteria, result) if missed else ""
            yield {"index": number, "met": not missed, "broken": broken, "untold": untold, "actual": actual}


def _is_known(name: str, result: Result) -> bool:
    return name not in _PAGE_FACTS or bool(getattr(result, name))


def _is_judged(criteria: PlannedAssertion, result: Result) -> bool:
    """A budget is judged at the run's end, and a limit on violations only where axe ran."""
    asks_axe = criteria.max_violations is not None
    return criteria.budget_ms is None and not (asks_axe and found_violations(result.value, "") is None)


def page_checks(plan: Plan, step: int, result: Result) -> Iterator[dict[str, Any]]:
    """S3-7: the page checks of this step."""
    for number, criteria in enumerate(plan.health_checks):
        if criteria.type != "http" and step and (criteria.step or 1) == step:
            good = result.ok and meets_conditions(criteria, result, plan.base_url)
            yield {
                "index": number,
                "type": criteria.type or "page_load",
                "result": "success" if good else "failure",
                "data": page_facts(result),
            }


def page_facts(result: Result) -> dict[str, Any]:
    """The seed's three facts; a JSON result overrides what is derived."""
    value = result.value if isinstance(result.value, Mapping) else {}
    facts = {
        "isLoggedIn": None,
        "currentRoute": route_of_url(result.url),
        "hasErrors": bool(result.errors) or not result.ok,
    }
    return {**facts, **{name: value[name] for name in facts if isinstance(value.get(name), bool | str)}}


def route_of_url(url: str) -> str:
    path = url.partition("://")[2].partition("/")[2] if "://" in url else url.lstrip("/")
    return f"/{path.partition('?')[0]}" if url else ""


def actual_values(criteria: Conditions, result: Result) -> str:
    """What was found of the things that were asked for; the page's words where nothing else was."""
    asked = conditions_of(criteria)
    found = [_FOUND[name](Judged(result, criteria)) for name in _FOUND if name in asked]
    if result.error or not found or {"contains", "not_contains"} & asked.keys():
        found.append(result.error or readable_page(without_fields(result.text)))
    return clean_line(", ".join(found), 300)


def found_violations(value: Any, impact: str) -> list[str] | None:
    """What axe found, of at least this impact; None where the result is none of axe's."""
    violations = value.get("violations") if isinstance(value, Mapping) else None
    if not isinstance(violations, list):
        return None
    milder = IMPACTS[: IMPACTS.index(impact)] if impact in IMPACTS else ()
    return [
        f"{one['id']} ({one.get('impact') or 'impact unknown'})"
        for one in violations
        if isinstance(one, Mapping) and isinstance(one.get("id"), str) and one.get("impact") not in milder
    ]


def expected_conditions(criteria: PlannedAssertion) -> str:
    """The conditions in words."""
    if criteria.budget_ms:
        return f"at most {criteria.budget_ms} ms"
    parts = (
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value!r}"
        for name, value in conditions_of(criteria).items()
    )
    return clean_line(", ".join(parts), LONGEST_EXPECTED)

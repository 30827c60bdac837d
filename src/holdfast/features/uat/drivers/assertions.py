"""Judges assertions and page checks on what a tool reported."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.core.kinds.uat_events import Conditions, Plan, PlannedAssertion
from holdfast.features.uat.drivers.answers import (
    without_fields,
)
from holdfast.features.uat.drivers.results import IMPACTS, Result
from holdfast.features.uat.settings import clean_line
from holdfast.features.uat.state.step_match import text_fits

LONGEST_EXPECTED = 200
# Lines of Playwright's server, marks of elements, and lines of a snapshot that show nothing to a person.
_HEADER = re.compile(r"^##[^\n]*|^- (?:Page URL|Page Title|HTTP status|Console):[^\n]*|^```\w*", re.MULTILINE)
"""What Playwright's server says around the page itself."""
_MARKS = re.compile(
    r"\s?\[(?:ref|cursor|level|active|selected|checked|disabled|expanded)[^\]]{0,40}\]|\buid=\S+ |"
    r" (?:level|url)=\"[^\"\n]*\"| (?:focusable|focused)\b"
)
_NOT_SEEN = re.compile(
    r"\s*(?:- |uid=\S+ )(?:/url:|generic:?$|link\b|banner\b|navigation\b|main$|form$|LabelText|RootWebArea|\[Snapshot\])|"
    r"^\s*(?:await page\.|//)"
)
_TELLING = re.compile(r"(?:heading|alert|status|dialog|paragraph)\b")
CONDITIONS = (
    *("contains", "not_contains", "url", "title", "status", "exit_code", "max_ms", "no_errors", "fields"),
    *("clean_console", "max_violations"),
)
"""What an assertion may ask for (`scenario.Condition` says it with types)."""
ALWAYS = ("not_contains", "max_ms", "no_errors", "clean_console", "max_violations")
"""These must hold for every result of the step; of the others one result is enough."""
SILENT = ("screenshot", "close", "tab", "open")
"""What a call may mean whose answer tells nothing of the page."""
LISTING = ("console", "network")
"""Their answers are lists beside the page: what is not in them may still be on the page."""


def conditions_of(criteria: Any) -> dict[str, Any]:
    """Of an assertion or a health check (in a scenario or in a plan), only what is to hold."""
    asked = ((name, getattr(criteria, name)) for name in CONDITIONS)
    return {name: value for name, value in asked if value is not None}


def meets_conditions(criteria: Conditions, result: Result, ms: int, exit_code: int | None, base_url: str) -> bool:
    """All of the conditions, on one result."""
    return not unmet_conditions(criteria, result, ms, exit_code, base_url)


def unmet_conditions(criteria: Conditions, result: Result, ms: int, exit_code: int | None, base_url: str) -> list[str]:
    violations = found_violations(result.value, criteria.impact)
    facts: dict[str, Callable[[Any], bool]] = {
        "contains": lambda text: text in result.text,
        "not_contains": lambda text: text not in result.text,
        "url": lambda glob: bool(result.url) and text_fits(glob, result.url, base_url),
        "title": lambda glob: text_fits(glob, result.title),
        "status": lambda code: result.status == code,
        "exit_code": lambda code: exit_code == code,
        "max_ms": lambda most: ms <= most,
        "no_errors": lambda none: not none or (not result.errors and result.ok),
        "clean_console": lambda clean: not clean or not result.console_errors,
        "max_violations": lambda most: violations is None or len(violations) <= most,
        "fields": lambda fields: all(value_at_path(result.value, path) == value for path, value in fields.items()),
    }
    return [name for name, value in conditions_of(criteria).items() if not facts[name](value)]


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


def judge_assertions(
    plan: Plan, step: int, result: Result, ms: int, exit_code: int | None, meaning: str = ""
) -> Iterator[dict[str, Any]]:
    """Those of the scenario that this result speaks about: met, not yet, or broken for good.

    A call that tells nothing of the page (a screenshot) can only break one.
    """
    for number, criteria in enumerate(plan.assertions):
        asks_axe = criteria.max_violations is not None
        if criteria.budget_ms is not None or (asks_axe and found_violations(result.value, "") is None):
            continue
        if criteria.step in (None, step):
            missed = unmet_conditions(criteria, result, ms, exit_code, plan.base_url)
            actual_text = actual_values(criteria, result, ms, exit_code) if missed else ""
            broken = any(name in ALWAYS for name in missed)
            if broken or (meaning not in SILENT and not (missed and meaning in LISTING)):
                untold = bool(missed) and all(name in _PAGE_FACTS and not _PAGE_FACTS[name](result) for name in missed)
                yield {"index": number, "met": not missed, "broken": broken, "untold": untold, "actual": actual_text}


def page_checks(plan: Plan, step: int, result: Result, ms: int, exit_code: int | None) -> Iterator[dict[str, Any]]:
    """S3-7: what the page was like, for each check of this step that asks no server of its own."""
    for number, criteria in enumerate(plan.health_checks):
        if criteria.type != "http" and step and (criteria.step or 1) == step:
            good = result.ok and meets_conditions(criteria, result, ms, exit_code, plan.base_url)
            yield {
                "index": number,
                "type": criteria.type or "page_load",
                "result": "success" if good else "failure",
                "data": page_facts(result),
            }


def page_facts(result: Result) -> dict[str, Any]:
    """The seed's three facts; what a JSON result says itself goes before what we can tell."""
    value = result.value if isinstance(result.value, Mapping) else {}
    derived = {"currentRoute": route_of_url(result.url), "hasErrors": bool(result.errors) or not result.ok}
    reported = {
        n: value[n] for n in ("isLoggedIn", "currentRoute", "hasErrors") if isinstance(value.get(n), bool | str)
    }
    return {"isLoggedIn": None, **derived, **reported}


def route_of_url(url: str) -> str:
    path = url.partition("://")[2].partition("/")[2] if "://" in url else url.lstrip("/")
    return f"/{path.partition('?')[0]}" if url else ""


_PAGE_FACTS: dict[str, Callable[[Result], str]] = {
    "url": lambda result: result.url,
    "title": lambda result: result.title,
}
_FACT_NAMES = {"max_ms": "ms", "exit_code": "exit code"}


def actual_values(criteria: Conditions, result: Result, ms: int, exit_code: int | None) -> str:
    """What was found of the things that were asked for; the page's words where nothing else was."""
    asked = conditions_of(criteria)
    facts = {"url": result.url, "title": result.title, "status": result.status, "exit_code": exit_code, "max_ms": ms}
    unknown = "was not told by the driver"
    parts = [f"{_FACT_NAMES.get(name, name)} {facts[name]!r}" for name in facts if name in asked and facts[name] != ""]
    parts += [f"the page's {name} {unknown}" for name in ("url", "title") if name in asked and not facts[name]]
    parts += [f"{path} = {value_at_path(result.value, path)!r}" for path in criteria.fields or ()]
    if criteria.no_errors:
        parts.append(f"{result.errors} errors")
    if criteria.clean_console:
        # Playwright only counts them in its answer; their words are in a file, and come as warnings of the run.
        said = "; ".join(p["message"] for p in result.problems)
        parts.append(f"{result.console_errors} console errors{f': {said}' if said else ''}")
    if criteria.max_violations is not None:
        listed = found_violations(result.value, criteria.impact) or []
        parts.append(f"{len(listed)} violations: {'; '.join(listed)}")
    if result.error or not parts or "contains" in asked or "not_contains" in asked:
        parts.append(result.error or readable_page(without_fields(result.text)))
    return clean_line(", ".join(parts), 300)


def found_violations(value: Any, impact: str) -> list[str] | None:
    """What axe found, of at least this impact; None where the result is none of axe's."""
    violations = value.get("violations") if isinstance(value, Mapping) else None
    if not isinstance(violations, list):
        return None
    least = IMPACTS.index(impact) if impact in IMPACTS else 0
    entries = [one for one in violations if isinstance(one, Mapping) and isinstance(one.get("id"), str)]
    severe = [one for one in entries if one.get("impact") not in IMPACTS[:least]]
    return [f"{one['id']} ({one.get('impact') or 'impact unknown'})" for one in severe]


def readable_page(text: str) -> str:
    """What a person sees first of a page: of an accessibility snapshot the headings and messages, then the rest."""
    plain = _HEADER.sub(" ", text)
    seen = [_MARKS.sub("", one).strip(" -:") for one in plain.splitlines() if not _NOT_SEEN.match(one)]
    lines = [one.removeprefix("generic: ").removeprefix("text: ") for one in seen]
    telling = [one for one in lines if _TELLING.match(one)]
    rest = [one for one in lines if one not in ("", "generic", "main", "document") and not _TELLING.match(one)]
    return "; ".join(telling + rest) if telling else " ".join(rest)


def expected_conditions(criteria: PlannedAssertion) -> str:
    """The conditions in words."""
    if criteria.budget_ms:
        return f"at most {criteria.budget_ms} ms"
    parts = (
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value!r}"
        for name, value in conditions_of(criteria).items()
    )
    return clean_line(", ".join(parts), LONGEST_EXPECTED)

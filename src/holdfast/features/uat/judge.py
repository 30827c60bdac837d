"""Assertions and page checks, judged on what a tool reported. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.features.uat.match import text_fits
from holdfast.features.uat.model import line
from holdfast.features.uat.results import Result

LONGEST_EXPECTED = 200
_HEADER = re.compile(r"^###[^\n]*|^- (?:Page URL|Page Title|HTTP status|Console):[^\n]*|^```\w*", re.MULTILINE)
"""What Playwright's server says around the page itself."""
_MARKS = re.compile(r"\s?\[(?:ref|cursor|level|active|selected|checked|disabled|expanded)[^\]]{0,40}\]|\buid=\S+ ")
_NOT_SEEN = re.compile(r"\s*- (?:/url:|generic:?$|link\b|banner\b|navigation\b|\[Snapshot\])|^\s*(?:await page\.|//)")
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


def conditions(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of an assertion or a health check, only what is to hold."""
    return {name: given[name] for name in CONDITIONS if given.get(name) is not None}


def holds(wanted: Mapping[str, Any], result: Result, ms: int, exit_code: int | None, base_url: str) -> bool:
    """All of the conditions, on one result."""
    return not unmet(wanted, result, ms, exit_code, base_url)


def unmet(wanted: Mapping[str, Any], result: Result, ms: int, exit_code: int | None, base_url: str) -> list[str]:
    violations = found_violations(result.value, str(wanted.get("impact") or ""))
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
        "fields": lambda fields: all(at(result.value, path) == value for path, value in fields.items()),
    }
    return [name for name, value in conditions(wanted).items() if not facts[name](value)]


def at(value: Any, path: str) -> Any:
    """`a.b.0`: a place in a JSON result; None when it is not there."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def assertions(
    plan: Mapping[str, Any], step: int, result: Result, ms: int, exit_code: int | None, *, silent: bool = False
) -> Iterator[dict[str, Any]]:
    """Those of the scenario that this result speaks about: met, not yet, or broken for good.

    `silent`: a call that tells nothing of the page (a screenshot) can only break one.
    """
    for number, wanted in enumerate(plan.get("assertions", ())):
        if "budget_ms" in wanted or ("max_violations" in wanted and found_violations(result.value, "") is None):
            continue
        if wanted.get("step") in (None, step) and (step or not wanted.get("step")):
            missed = unmet(wanted, result, ms, exit_code, plan.get("base_url", ""))
            found = actual(wanted, result, ms, exit_code) if missed else ""
            broken = any(name in ALWAYS for name in missed)
            if broken or not silent:
                yield {"index": number, "met": not missed, "broken": broken, "actual": found}


def page_checks(
    plan: Mapping[str, Any], step: int, result: Result, ms: int, exit_code: int | None
) -> Iterator[dict[str, Any]]:
    """S3-7: what the page was like, for each check of this step that asks no server of its own."""
    for number, wanted in enumerate(plan.get("health_checks", ())):
        if wanted.get("type") != "http" and step and wanted.get("step", 1) == step:
            good = result.ok and holds(wanted, result, ms, exit_code, plan.get("base_url", ""))
            yield {
                "index": number,
                "type": wanted.get("type", "page_load"),
                "result": "success" if good else "failure",
                "data": page(result),
            }


def page(result: Result) -> dict[str, Any]:
    """The seed's three facts; what a JSON result says itself goes before what we can tell."""
    told = result.value if isinstance(result.value, Mapping) else {}
    known = {"currentRoute": route(result.url), "hasErrors": bool(result.errors) or not result.ok}
    said = {n: told[n] for n in ("isLoggedIn", "currentRoute", "hasErrors") if isinstance(told.get(n), bool | str)}
    return {"isLoggedIn": None, **known, **said}


def route(url: str) -> str:
    path = url.partition("://")[2].partition("/")[2] if "://" in url else url.lstrip("/")
    return f"/{path.partition('?')[0]}" if url else ""


def actual(wanted: Mapping[str, Any], result: Result, ms: int, exit_code: int | None) -> str:
    """What was found of the things that were asked for; the page's words where nothing else was."""
    facts = {"url": result.url, "title": result.title, "status": result.status, "exit_code": exit_code, "max_ms": ms}
    found = [f"{name.replace('max_ms', 'ms').replace('_', ' ')} {facts[name]!r}" for name in facts if name in wanted]
    found += [f"{path} = {at(result.value, path)!r}" for path in wanted.get("fields") or ()]
    if wanted.get("no_errors"):
        found.append(f"{result.errors} errors")
    if wanted.get("clean_console"):
        found.append(f"{result.console_errors} console errors: {'; '.join(p['message'] for p in result.problems)}")
    if "max_violations" in wanted:
        listed = found_violations(result.value, str(wanted.get("impact") or "")) or []
        found.append(f"{len(listed)} violations: {'; '.join(listed)}")
    if result.error or not found or "contains" in wanted or "not_contains" in wanted:
        found.append(result.error or readable_page(result.text))
    return line(", ".join(found), 300)


IMPACTS = ("minor", "moderate", "serious", "critical")


def found_violations(value: Any, impact: str) -> list[str] | None:
    """What axe found, of at least this impact; None where the result is none of axe's."""
    told = value.get("violations") if isinstance(value, Mapping) else None
    if not isinstance(told, list):
        return None
    least = IMPACTS.index(impact) if impact in IMPACTS else 0
    entries = [one for one in told if isinstance(one, Mapping) and isinstance(one.get("id"), str)]
    kept = [one for one in entries if one.get("impact") not in IMPACTS[:least]]
    return [f"{one['id']} ({one.get('impact') or 'impact unknown'})" for one in kept]


def readable_page(text: str) -> str:
    """What a person sees first of a page: of an accessibility snapshot the headings and messages, then the rest."""
    plain = _HEADER.sub(" ", text)
    lines = [_MARKS.sub("", one).strip(" -:") for one in plain.splitlines() if not _NOT_SEEN.match(one)]
    telling = [one for one in lines if _TELLING.match(one)]
    rest = [one for one in lines if one not in ("", "generic", "main", "document") and not _TELLING.match(one)]
    return "; ".join(telling + rest) if telling else " ".join(rest)


def expected(wanted: Mapping[str, Any]) -> str:
    """The conditions in words."""
    if wanted.get("budget_ms"):
        return f"at most {wanted['budget_ms']} ms"
    parts = (f"{name.replace('_', ' ')} {value!r}" for name, value in conditions(wanted).items())
    return line(", ".join(parts), LONGEST_EXPECTED)

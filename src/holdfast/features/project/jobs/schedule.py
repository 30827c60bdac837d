"""By schedule: gaps that only time opens or closes, leases whose owner is gone, gap rules of the user's own."""

import os
from collections.abc import Iterable, Iterator, Mapping

from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.project_events import CheckRule, RuleChecked, TimePassed
from holdfast.core.ports import Reader
from holdfast.features.project.document.text import DAY
from holdfast.features.project.jobs.refresh import load_project
from holdfast.features.project.leases import free_lost
from holdfast.features.project.settings import DEFAULTS, Check
from holdfast.features.project.state import ALL, LEASES, PROJECT, RuleOutcome
from holdfast.features.project.tasks.task_list import is_due

RECENT = 7 * DAY
MAX_PROJECTS = 50
SHELL = "/bin/sh"


def recent_projects(reader: Reader, now: int) -> list[str]:
    """Those worth a look by schedule: something happened in them lately."""
    return [doc.project for _, doc in PROJECT.list(reader, limit=MAX_PROJECTS) if now - doc.at < RECENT]


def watch_time(call: JobCall) -> list[Event]:
    return [*free_lost(LEASES.load(call.reader, ALL), call.now), *_due_projects(call)]


def _due_projects(call: JobCall) -> Iterator[Event]:
    for _, doc in PROJECT.list(call.reader, limit=MAX_PROJECTS):
        if call.now - doc.at < RECENT and is_due(doc, call.now):
            yield own_event(TimePassed(), call.now, project=doc.project)


# ── gap rules of the user's own ──────────────────────────────────────────────────────────────────────────────────────


def run_own_rules(call: JobCall) -> list[Event]:
    """Of one project after a change, or by schedule of all that have some and are due."""
    named = call.job.payload.get("project")
    roots = [str(named)] if named else recent_projects(call.reader, call.now)
    return [event for root in roots for event in _run_rules_of(root, call, all_rules=bool(named))]


_LAST_RUNS: dict[tuple[str, str], int] = {}
"""When this daemon last ran each. Not in the log: a run that changed nothing is no news."""


def _run_rules_of(root: str, call: JobCall, *, all_rules: bool) -> Iterator[Event]:
    rules = (call.settings(root) or DEFAULTS).checks
    known = load_project(call.reader, root).own_rules if rules else {}
    for name, rule in rules.items():
        if call.cancelled():
            return
        if all_rules or call.now - _LAST_RUNS.get((root, name), 0) >= rule.every * 1000:
            _LAST_RUNS[(root, name)] = call.now
            yield from _run_rule(root, name, rule, call, known, list(rules))


def _run_rule(
    root: str, name: str, rule: Check, call: JobCall, known: Mapping[str, RuleOutcome], names: Iterable[str]
) -> Iterator[Event]:
    ran = call.run([SHELL, "-c", rule.command], cwd=root, env=dict(os.environ), timeout=rule.timeout)
    outcome = RuleOutcome(ran.code == rule.exit_code, ran.code, _rule_facts(rule))
    if known.get(name) != outcome:
        checked = RuleChecked(
            name=name, names=list(names), ok=outcome.ok, exit_code=outcome.exit_code, rule=outcome.rule
        )  # fmt: skip
        yield own_event(checked, call.now, project=root)


def _rule_facts(rule: Check) -> CheckRule:
    return CheckRule(
        command=rule.command,
        exit_code=rule.exit_code,
        priority=rule.priority,
        description=rule.description,
        done_when=list(rule.done_when),
        blocks=list(rule.blocks),
        minutes=rule.minutes,
    )

"""Looks at a project: git, reports, TODOs, the user's own gap rules, and what only time changes."""

import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core import git
from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall
from holdfast.core.fingerprint import shared_fingerprinter
from holdfast.core.job import Run
from holdfast.core.kinds.project_events import (
    CheckRule,
    GitFacts,
    HabitFacts,
    ProjectFacts,
    ProjectObserved,
    ReportRun,
    RuleChecked,
    TimePassed,
    TodoFacts,
)
from holdfast.core.ports import Reader
from holdfast.core.times import DAY
from holdfast.features.project.document.adoption import adopt_document
from holdfast.features.project.document.old_formats import LARGEST
from holdfast.features.project.document.v4 import habits_of_several
from holdfast.features.project.files import document_path, is_ours
from holdfast.features.project.jobs.git_fates import find_fates
from holdfast.features.project.jobs.git_status import GitQuestions, git_folders, read_git_status, text_of
from holdfast.features.project.jobs.resolution import folder_name, resolve_project
from holdfast.features.project.settings import DEFAULTS, Check, ProjectSettings
from holdfast.features.project.state import (
    ACTIVITY,
    ALL,
    GLOBAL,
    HABITS,
    LEASES,
    PROJECT,
    Project,
    RuleOutcome,
    project_key,
)
from holdfast.features.project.state.check_results import MAX_FAILURES
from holdfast.features.project.state.habits import shown_habits, summarise_activity, token_budget
from holdfast.features.project.state.leases import free_lost
from holdfast.features.project.state.task_list import is_due

# JUnit XML reports that the settings name: read when they are newer than what was read last.

PREFIX = "junit "
# Files for each pattern, and bytes of one file.
MAX_REPORTS, MAX_BYTES = 50, 32 << 20


def read_reports(root: str, globs: Iterable[str], known_stamps: Mapping[str, int]) -> list[ReportRun]:
    """Each file that changed, as a test run of everything it covers."""
    return [run for file in _matching_files(root, globs) if (run := _read_report(root, file, known_stamps))]


def _matching_files(root: str, globs: Iterable[str]) -> Iterator[Path]:
    """Only below the project: a pattern with `..` or a leading slash finds nothing."""
    for glob in globs:
        if glob.startswith("/") or ".." in glob.split("/"):
            continue
        try:
            yield from sorted(Path(root).glob(glob))[:MAX_REPORTS]
        except (OSError, ValueError):
            continue


def _read_report(root: str, file: Path, known_stamps: Mapping[str, int]) -> ReportRun | None:
    name = f"{PREFIX}{file.relative_to(root)}"[:200]
    try:
        seen = file.stat()
    except OSError:
        return None
    stamp = seen.st_mtime_ns // 1_000_000
    if known_stamps.get(name) == stamp or seen.st_size > MAX_BYTES:
        return None
    return _run_of_report(name, file, stamp)


def _run_of_report(name: str, file: Path, written: int) -> ReportRun | None:
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase

    try:
        cases = list(_of_type(TestCase, JUnitXml.fromfile(str(file))))
    except Exception:  # any XML error: a report that cannot be read is none
        return None
    failed = [case for case in cases if _has_result(case, Failure | Error)]
    skipped = sum(_has_result(case, Skipped) for case in cases)
    if not cases:
        return None
    names = [f"{c.classname}::{c.name}"[:300] if c.classname else str(c.name)[:300] for c in failed]
    counts = {"passed": len(cases) - len(failed) - skipped, "failed": len(failed), "skipped": skipped}
    return ReportRun(name=name, written=written, failures=names[:MAX_FAILURES], **counts)


def _has_result(case: Any, kinds: Any) -> bool:
    return any(isinstance(result, kinds) for result in case.result)


def _of_type(kind: type, suite: Any) -> Iterator[Any]:
    """Suites may hold suites."""
    for one in suite:
        if isinstance(one, kind):
            yield one
        else:
            yield from _of_type(kind, one)


# One look at a project: the facts that are quick to find together, and one event when any of them changed.

MAX_PATTERNS = 20
# Seconds that a fingerprint of the worktree may take; without one nothing is known of its content.
FINGERPRINT_S = 0.5


def load_project(reader: Reader, root: str) -> Project:
    return PROJECT.load(reader, project_key(root)) or Project(project=root)


def refresh(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    settings = call.settings(root) or DEFAULTS
    doc = load_project(call.reader, root)
    git = with_content(root, doc, read_git_status(root, call.run, doc.git, call.now))
    facts = _known_facts(call.reader, root, git.remote, settings, call.now)
    facts.git = git
    # When each report that was read was written.
    known_reports = {run.runner: run.at for run in doc.results if run.runner.startswith(PREFIX)}
    facts.junit = read_reports(root, settings.junit, known_reports) or None
    news = report_changes(doc, facts, call.now, int(call.job.payload.get("pid") or 0), call.run)
    return [*news, *_hand_made_changes(doc, settings, call.now)]


def _hand_made_changes(doc: Project, settings: ProjectSettings, now: int) -> list[Event]:
    """Adopts changes made by hand to the document on disk."""
    path = document_path(doc, settings)
    if not settings.files or not doc.folder:
        return []
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError:
        return []
    return adopt_document(doc, path, content, now) if content and not is_ours(content) else []


def with_content(root: str, doc: Project, git: GitFacts, budget_s: float = FINGERPRINT_S) -> GitFacts:
    """The fingerprint is taken only where something changed: it costs another question to git."""
    # The sum is compared with the content of the last look in it: only what git says can differ.
    git.content = doc.git.content
    if doc.sums.get("git") != _checksum_of(git):
        taken = shared_fingerprinter().take_fingerprint(root, budget_s=budget_s) if git.head else None
        git.content = taken.content if taken else ""
    return git


def _known_facts(reader: Reader, root: str, remote: str, settings: ProjectSettings, now: int) -> ProjectFacts:
    """What needs no look at the disk but the mapping file."""
    doing = ACTIVITY.load(reader, project_key(root))
    resolution = resolve_project(reader, root, remote, settings, now)
    return ProjectFacts(
        rules=settings.rules(),
        activity=summarise_activity(doing, now),
        usage=token_budget(doing, settings.tokens, now),
        patterns=_habit_patterns(reader, root, resolution.project, now),
        resolution=resolution,
        name=resolution.project,
        folder=folder_name(reader, root, resolution.project),
    )


def _habit_patterns(reader: Reader, root: str, name: str, now: int) -> list[HabitFacts]:
    own = shown_habits(HABITS.load(reader, project_key(root)), now)
    shared = [habit for habit in habits_of_several(GLOBAL.load(reader, ALL), now) if name in habit.projects]
    return [*own, *shared][:MAX_PATTERNS]


def report_changes(doc: Project, facts: ProjectFacts, now: int, pid: int = 0, run: Run | None = None) -> list[Event]:
    """Compares by checksums of what was reported: the stored text may have been redacted. `run`: to look for the content
    of files that git says nothing more of."""
    sections = {name: value for name in facts.__struct_fields__ if (value := getattr(facts, name)) is not None}
    sums = {name: _checksum_of(value) for name, value in sections.items()}
    changed = {name: value for name, value in sections.items() if doc.sums.get(name) != sums[name]}
    if not changed:
        return []
    news = ProjectFacts(**changed)
    if news.resolution is not None:
        # Set after the sums were made: a time in them would make every look a change.
        news.resolution.resolved_at = now
    ask = GitQuestions(doc.project, run) if run and news.git else None
    fates = find_fates(ask, doc.project, doc.git, news.git, doc.commits) if ask and news.git else {}
    observed = ProjectObserved(facts=news, sums={name: sums[name] for name in changed}, pid=pid, fates=fates)
    return [own_event(observed, now, project=doc.project)]


def _checksum_of(value: object) -> int:
    return zlib.crc32(msgspec.json.encode(value))


# TODO and FIXME that this branch adds: its difference to where it left the main branch, uncommitted work included.

MARKS = re.compile(r"\b(?:TODO|FIXME)\b")
MAX_PATHS, MAX_PLACES, MAX_NEW_FILE_BYTES = 500, 30, 512 * 1024
MAIN_NAMES = ("main", "master", "trunk")


def scan_todos(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    doc = load_project(call.reader, root)
    folders = git_folders(root) if Path(root).is_dir() else None
    if folders is None or not doc.git.head:
        return []
    ask = GitQuestions(root, call.run)
    locations = [*find_in_difference(ask, doc.git, *folders), *find_in_new_files(root, doc.git)]
    todos = TodoFacts(count=len(locations), places=locations[:MAX_PLACES])
    return report_changes(doc, ProjectFacts(todos=todos), call.now)


def find_in_difference(ask: GitQuestions, git_facts: GitFacts, own: Path, common: Path) -> Iterator[str]:
    base = _branch_base(ask, git_facts, common)
    names = set(git.parse_names(ask(git.diff_argv("--name-only", "-z", base, "HEAD", "--")).out))
    # Uncommitted changes of files that git knows; new files are read by themselves.
    names |= {file.path for file in git_facts.files if file.code != "??"}
    if not names:
        return
    # -G lets git show only files whose difference has a mark.
    words = ("--unified=0", "-G", r"TODO|FIXME", base, "--", *sorted(names)[:MAX_PATHS])
    yield from added_marks(ask(git.diff_argv(*words, filters=ask.filters(own, common))).out.decode("utf-8", "replace"))


def _branch_base(ask: GitQuestions, git_facts: GitFacts, common: Path) -> str:
    """Where this branch began; on the main branch itself what was pushed, else the last commit."""
    mains = _main_branches(common)
    if git_facts.branch in MAIN_NAMES or git_facts.branch in mains:
        return "@{upstream}" if git_facts.upstream else "HEAD"
    for main in mains:
        ran = ask(git.merge_base(main, "HEAD"))
        if ran.code == 0:
            return ran.out.decode("ascii", "replace").strip()
    return "HEAD"


def _main_branches(common: Path) -> list[str]:
    pointer = text_of(common / "refs/remotes/origin/HEAD").decode("utf-8", "replace")
    theirs = pointer.partition("refs/remotes/")[2].strip()
    return [name for name in (theirs, *(f"refs/heads/{n}" for n in MAIN_NAMES)) if name]


def added_marks(difference: str) -> Iterator[str]:
    """`path:line` of each added line that has a mark."""
    path, line, added = "", 0, 0
    for text in difference.split("\n"):
        if added and text.startswith("+"):
            if path and MARKS.search(text):
                yield f"{path}:{line}"
            line, added = line + 1, added - 1
        # Only between two parts: an added line may itself begin with `++ `.
        elif text.startswith("+++ "):
            # `+++ /dev/null` is a deleted file; git ends a name that has a space with a tab.
            path = text[6:].rstrip("\t") if text.startswith("+++ b/") else ""
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))?", text):
            line, added = int(match[1]), int(match[2] or 1)


def find_in_new_files(root: str, git_facts: GitFacts) -> Iterator[str]:
    for path in git_facts.untracked_sources:
        file = Path(root) / path
        try:
            # A link may lead out of the project.
            if file.is_symlink() or file.stat().st_size > MAX_NEW_FILE_BYTES:
                continue
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        yield from (f"{path}:{n}" for n, text in enumerate(lines, 1) if MARKS.search(text))


# By schedule: gaps that only time opens or closes, leases whose owner is gone, gap rules of the user's own.

RECENT = 7 * DAY
MAX_PROJECTS = 50
SHELL = "/bin/sh"


def recent_projects(reader: Reader, now: int) -> list[str]:
    """Those worth a look by schedule: something happened in them lately."""
    return [doc.project for _, doc in PROJECT.list(reader, limit=MAX_PROJECTS) if now - doc.at < RECENT]


def watch_time(call: JobCall) -> list[Event]:
    documents = [doc for _, doc in PROJECT.list(call.reader, limit=MAX_PROJECTS)]
    due = [doc for doc in documents if call.now - doc.at < RECENT and is_due(doc, call.now)]
    passed = [own_event(TimePassed(), call.now, project=doc.project) for doc in due]
    return [*free_lost(LEASES.load(call.reader, ALL), call.now), *passed]


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
    outcomes = load_project(call.reader, root).own_rules if rules else {}
    for name, rule in rules.items():
        if call.cancelled():
            return
        if all_rules or call.now - _LAST_RUNS.get((root, name), 0) >= rule.every * 1000:
            _LAST_RUNS[(root, name)] = call.now
            yield from _run_rule(root, name, rule, call, outcomes, list(rules))


def _run_rule(
    root: str, name: str, rule: Check, call: JobCall, outcomes: Mapping[str, RuleOutcome], names: Iterable[str]
) -> Iterator[Event]:
    ran = call.run([SHELL, "-c", rule.command], cwd=root, env=dict(os.environ), timeout=rule.timeout)
    outcome = RuleOutcome(ran.code == rule.exit_code, ran.code, msgspec.convert(rule.plain(), CheckRule))
    if outcomes.get(name) != outcome:
        checked = RuleChecked(
            name=name, names=list(names), ok=outcome.ok, exit_code=outcome.exit_code, rule=outcome.rule
        )  # fmt: skip
        yield own_event(checked, call.now, project=root)

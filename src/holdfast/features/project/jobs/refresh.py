"""One look at a project: the facts that are quick to find together, and one event when any of them changed."""

import os
import zlib
from functools import lru_cache

import msgspec

from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall
from holdfast.core.fingerprint import Fingerprinter
from holdfast.core.job import Run, run_briefly
from holdfast.core.kinds.project_events import GitFacts, HabitFacts, ProjectFacts, ProjectObserved
from holdfast.core.ports import Reader
from holdfast.features.project.document.v4 import habits_of_several
from holdfast.features.project.jobs.git_status import read_git_status
from holdfast.features.project.jobs.reports import PREFIX, read_reports
from holdfast.features.project.jobs.resolution import folder_name, resolve_project
from holdfast.features.project.learning.activity import summarise_activity, token_budget
from holdfast.features.project.learning.habits import shown_habits
from holdfast.features.project.settings import DEFAULTS, ProjectSettings
from holdfast.features.project.state import ACTIVITY, ALL, GLOBAL, HABITS, PROJECT, Project, project_key

MAX_PATTERNS = 20
FINGERPRINT_S = 0.5


def load_project(reader: Reader, root: str) -> Project:
    return PROJECT.load(reader, project_key(root)) or Project(project=root)


def refresh(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    settings = call.settings(root) or DEFAULTS
    doc = load_project(call.reader, root)
    git = _with_content(root, doc, read_git_status(root, call.run, doc.git, call.now))
    facts = _known_facts(call.reader, root, git.remote, settings, call.now)
    facts.git = git
    facts.junit = read_reports(root, settings.junit, _known_reports(doc)) or None
    return report_changes(doc, facts, call.now, int(call.job.payload.get("pid") or 0))


def _with_content(root: str, doc: Project, git: GitFacts) -> GitFacts:
    """The fingerprint is taken only where something changed: it costs another question to git."""
    git.content = doc.git.content
    if doc.sums.get("git") != _sum(git):
        taken = _fingerprinter().take(root, budget_s=FINGERPRINT_S) if git.head else None
        git.content = taken.content if taken else ""
    return git


@lru_cache(1)
def _fingerprinter(run: Run = run_briefly) -> Fingerprinter:
    return Fingerprinter(run, os.environ)


def _known_reports(doc: Project) -> dict[str, int]:
    """When each report that was read was written."""
    return {run.runner: run.at for run in doc.results if run.runner.startswith(PREFIX)}


def _known_facts(reader: Reader, root: str, remote: str, settings: ProjectSettings, now: int) -> ProjectFacts:
    """What needs no look at the disk but the mapping file."""
    doing = ACTIVITY.load(reader, project_key(root))
    resolution = resolve_project(reader, root, remote, settings, now)
    return ProjectFacts(
        rules=settings.rules(),
        activity=summarise_activity(doing, now),
        usage=token_budget(doing, settings.tokens, now),
        patterns=_patterns(reader, root, resolution.project, now),
        resolution=resolution,
        name=resolution.project,
        folder=folder_name(reader, root, resolution.project),
    )


def _patterns(reader: Reader, root: str, name: str, now: int) -> list[HabitFacts]:
    own = shown_habits(HABITS.load(reader, project_key(root)), now)
    shared = [habit for habit in habits_of_several(GLOBAL.load(reader, ALL), now) if name in habit.projects]
    return [*own, *shared][:MAX_PATTERNS]


def report_changes(doc: Project, facts: ProjectFacts, now: int, pid: int = 0) -> list[Event]:
    """Compared by a sum of what was reported: what is stored may have been redacted."""
    found = {name: value for name in facts.__struct_fields__ if (value := getattr(facts, name)) is not None}
    sums = {name: _sum(value) for name, value in found.items()}
    changed = {name: value for name, value in found.items() if doc.sums.get(name) != sums[name]}
    if not changed:
        return []
    news = ProjectFacts(**changed)
    if news.resolution is not None:
        news.resolution.resolved_at = now
    observed = ProjectObserved(facts=news, sums={name: sums[name] for name in changed}, pid=pid)
    return [own_event(observed, now, project=doc.project)]


def _sum(value: object) -> int:
    return zlib.crc32(msgspec.json.encode(value))

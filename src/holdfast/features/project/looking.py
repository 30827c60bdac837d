"""What is true of a project now: its recorded document and a look at the repository, bounded in time and not recorded."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.core.feature import Call
from holdfast.core.job import Ran, run_briefly
from holdfast.core.kinds.project_events import ProjectFacts
from holdfast.features.project.events import reduce
from holdfast.features.project.jobs.git_status import read_git_status
from holdfast.features.project.jobs.refresh import load_project, read_reports, report_changes, with_content
from holdfast.features.project.settings import DEFAULTS
from holdfast.features.project.state import Project, project_ref
from holdfast.features.project.state.task_list import tasks_at

BUDGET_S = 0.15


class Looked(NamedTuple):
    doc: Project
    at: int
    """When it was true; 0 if nothing is known."""
    is_current: bool
    has_news: bool = False
    """The look found something that is not recorded yet."""

    def fields(self) -> dict[str, object]:
        return {"looked_at": self.at, "current": self.is_current, "news": self.has_news}


class _BriefRun:
    """Runs programs until the time is over; then none starts."""

    def __init__(self, budget_s: float) -> None:
        self._deadline, self.is_late = time.monotonic() + budget_s, False

    @property
    def left_s(self) -> float:
        return self._deadline - time.monotonic()

    def __call__(
        self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b"",
        timeout: float = BUDGET_S, nice: int = 0,
    ) -> Ran:  # fmt: skip
        left = min(timeout, self.left_s)
        late = Ran(124, b"", b"", timed_out=True)
        ran = run_briefly(argv, cwd=cwd, env=env, stdin=stdin, timeout=left, nice=nice) if left > 0 else late
        self.is_late = self.is_late or ran.timed_out
        return ran


def recorded_state(call: Call, root: str) -> Looked:
    doc = load_project(call.reader, root)
    return Looked(tasks_at(doc, call.now), doc.looked.get("git", 0), is_current=False)


def look_now(call: Call, root: str) -> Looked:
    """Every answer about a project comes from here."""
    doc, recorded = load_project(call.reader, root), recorded_state(call, root)
    # Only a job takes the first look, as it may take long.
    if not doc.git.was_read:
        return recorded
    run = _BriefRun(BUDGET_S)
    git = read_git_status(root, run, doc.git, call.now)
    if run.is_late:
        return recorded
    facts = ProjectFacts(git=with_content(root, doc, git, max(0.0, run.left_s)))
    if root == call.project:
        known = {result.runner: result.at for result in doc.results}
        facts.junit = read_reports(root, (call.settings or DEFAULTS).junit, known) or None
    news = report_changes(doc, facts, call.now, run=run)
    for event in news:
        after = reduce(doc, event, project_ref(root))
        doc = after if isinstance(after, Project) else doc
    return Looked(tasks_at(doc, call.now), call.now, is_current=True, has_news=bool(news))

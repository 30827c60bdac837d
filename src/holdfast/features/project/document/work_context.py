"""Why the state is as it is: phase, activity, and why files are uncommitted. Hypotheses gather evidence and compete."""

from collections.abc import Iterable

import msgspec

from holdfast.features.project.document.text import HOUR, MINUTE, plural
from holdfast.features.project.state import Project
from holdfast.features.project.tasks.check_results import summarise_tests
from holdfast.features.project.tasks.validation import area_of, check_runs, unvalidated_files

RECENT = 2 * HOUR
AT_WORK = 30 * MINUTE
FORGOTTEN = 4 * HOUR
NEVER = FORGOTTEN * 100
MAX_ALTERNATIVES = 3
MIN_SHARE = 0.05


class Hypothesis(msgspec.Struct, frozen=True):
    """`clues`: (weight, evidence) of what speaks for it. Without any it is not considered."""

    reason: str
    intent: str
    clues: tuple[tuple[float, str], ...]

    @property
    def weight(self) -> float:
        return sum(weight for weight, _ in self.clues)

    @property
    def evidence(self) -> list[str]:
        return [text for _, text in self.clues if text]


class CurrentActivity(msgspec.Struct, frozen=True):
    type: str = "none"
    started_at: int = 0
    status: str = "idle"


class Alternative(msgspec.Struct, frozen=True):
    intent: str
    confidence: float


class UncommittedContext(msgspec.Struct, frozen=True):
    """Why files are uncommitted. Confidence is the hypothesis' share of all the evidence."""

    reason: str
    confidence: float
    evidence: list[str]
    intent: str
    alternatives: list[Alternative]


class WorkContext(msgspec.Struct, frozen=True):
    phase: str
    activity: CurrentActivity
    uncommitted: UncommittedContext | None


def work_context(doc: Project, now: int) -> WorkContext:
    return WorkContext(find_phase(doc, now), find_activity(doc, now), explain_uncommitted(doc, now))


# ── phase and activity ───────────────────────────────────────────────────────────────────────────────────────────────


def find_phase(doc: Project, now: int) -> str:
    """The first that holds; the settings may name one."""
    git = doc.git
    if doc.rules.phase:
        return doc.rules.phase
    if git.doing:
        return f"{git.doing}_in_progress"
    if summarise_tests(check_runs(doc)).status == "failing":
        return "fixing_tests"
    if git.count:
        if not unvalidated_files(doc):
            return "ready_to_commit"
        return "building" if _quiet_for(doc, now) < RECENT else "paused"
    if git.ahead:
        return "ready_to_push"
    return doc.focus or ("idle" if git.seen else "unknown")


FOLDERS = (
    (("test", "tests", "spec", "__tests__", "e2e"), "testing"),
    (("doc", "docs"), "documentation"),
    ((".github", ".ci", "ci", "deploy", "infra", "terraform", "docker"), "infrastructure"),
    (("config", ".config", "settings"), "configuration"),
)


def find_activity(doc: Project, now: int) -> CurrentActivity:
    began, quiet = doc.activity.began, _quiet_for(doc, now)
    if not began:
        return CurrentActivity()
    status = "in_progress" if quiet < AT_WORK else "paused" if doc.git.count else "done"
    return CurrentActivity(_activity_type(doc), began, status)


def _activity_type(doc: Project) -> str:
    worked_in, areas = doc.activity.folders, doc.rules.areas
    for path in (*(file.path for file in doc.git.files), *(folder + "x" for folder in worked_in)):
        area = areas.get(area_of(path, areas))
        if area and area.activity:
            return area.activity
    parts = {part for folder in worked_in for part in folder.strip("/").split("/")}
    usual = "development" if worked_in else "maintenance"
    return next((kind for names, kind in FOLDERS if parts & set(names)), usual)


def _quiet_for(doc: Project, now: int) -> int:
    last = max(doc.activity.last_edit, doc.git.newest_change)
    return now - last if last else NEVER


# ── why files are uncommitted ────────────────────────────────────────────────────────────────────────────────────────


def explain_uncommitted(doc: Project, now: int) -> UncommittedContext | None:
    """None when nothing is uncommitted."""
    if not doc.git.count:
        return None
    found = sorted((h for h in hypotheses(doc, now) if h.clues), key=lambda h: -h.weight)
    total = sum(h.weight for h in found)
    best, rest = found[0], found[1 : 1 + MAX_ALTERNATIVES]
    shares = [Alternative(h.intent, round(h.weight / total, 2)) for h in rest if h.weight / total >= MIN_SHARE]
    share = round(best.weight / total, 2)
    return UncommittedContext(best.reason, share, best.evidence, _area_intent(doc) or best.intent, shares)


def _area_intent(doc: Project) -> str:
    areas = doc.rules.areas
    found = (areas.get(area_of(file.path, areas)) for file in doc.git.files)
    return next((area.intent for area in found if area and area.intent), "")


def hypotheses(doc: Project, now: int) -> Iterable[Hypothesis]:
    yield _merging(doc)
    yield _fixing_tests(doc)
    yield _ready_to_commit(doc)
    yield _mid_refactor(doc, now)
    yield _new_files(doc, now)
    yield _forgotten(doc, now)


def _clues(*given: tuple[bool, float, str]) -> tuple[tuple[float, str], ...]:
    return tuple((weight, text) for holds, weight, text in given if holds)


def _merging(doc: Project) -> Hypothesis:
    doing, conflicts = doc.git.doing, doc.git.conflicts
    clues = _clues(
        (bool(doing), 4.0, f"A {doing} is in progress"),
        (bool(conflicts), 4.0, f"{plural(len(conflicts), 'file')} in conflict"),
    )
    return Hypothesis("merge_in_progress", f"Finishing a {doing or 'merge'}", clues)


def _fixing_tests(doc: Project) -> Hypothesis:
    tests = summarise_tests(check_runs(doc))
    failing = tests.status == "failing"
    clues = _clues(
        (failing, 1.2, f"{plural(tests.failed, 'test')} failing"),
        (failing and doc.git.newest_change >= tests.last_run, 0.6, "Files changed since the tests failed"),
    )
    return Hypothesis("fixing_tests", "Making the tests pass before committing", clues)


def _ready_to_commit(doc: Project) -> Hypothesis:
    proven = bool(doc.git.files) and not unvalidated_files(doc)
    clues = _clues(
        (proven, 1.5, "All changed files are validated"),
        (proven and doc.git.draft, 0.8, "A commit message is drafted"),
    )
    return Hypothesis("ready_to_commit", "About to commit", clues)


def _mid_refactor(doc: Project, now: int) -> Hypothesis:
    git = doc.git
    recent = now - git.newest_change <= RECENT
    active = now - doc.activity.last_edit <= RECENT
    clues = _clues(
        (recent, 0.4, "Files modified within last 2 hours"),
        (active, 0.3, f"User actively in {_folder_name(doc)} directory"),
        (recent and not git.draft, 0.1, "No commit message drafted yet"),
    )
    where = (doc.activity.folders or ["this project"])[0]
    return Hypothesis("mid_refactor", f"Changing {plural(git.count, 'file')} in {where} before committing", clues)


def _new_files(doc: Project, now: int) -> Hypothesis:
    all_new = bool(doc.git.files) and all(file.code == "??" for file in doc.git.files)
    recent = now - doc.git.newest_change <= RECENT
    clues = _clues(
        (all_new, 0.15, "No file that git knows was changed"), (all_new and recent, 0.05, "The files are new")
    )
    return Hypothesis("new_files", "Trying something new beside the existing code", clues)


def _forgotten(doc: Project, now: int) -> Hypothesis:
    quiet = _quiet_for(doc, now)
    clues = _clues(
        (True, 0.2, ""),
        (quiet > FORGOTTEN, 0.6, "Nothing was changed for more than 4 hours"),
        (quiet > 6 * FORGOTTEN, 0.6, "Nothing was changed for more than a day"),
        (quiet > FORGOTTEN and not doc.activity.sessions, 0.3, "No session is open"),
    )
    return Hypothesis("forgotten", "Forgot to commit", clues)


def _folder_name(doc: Project) -> str:
    return doc.project.rstrip("/").rpartition("/")[2] or "the project's"

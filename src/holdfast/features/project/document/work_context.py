"""Why a project's state is as it is: phase, activity, and hypotheses about uncommitted files that compete by their evidence."""

from typing import Any, NamedTuple

from holdfast.core.times import HOUR, MINUTE
from holdfast.features.project.document.text import count_with_noun, iso_time
from holdfast.features.project.state import Project
from holdfast.features.project.state.check_results import area_of, check_runs, summarise_tests, unvalidated_files

RECENT = 2 * HOUR
AT_WORK = 30 * MINUTE
FORGOTTEN = 4 * HOUR
# Longer than any threshold that is compared with it.
NEVER = FORGOTTEN * 100
MAX_ALTERNATIVES = 3
MIN_SHARE = 0.05
FOLDERS = (
    (("test", "tests", "spec", "__tests__", "e2e"), "testing"),
    (("doc", "docs"), "documentation"),
    ((".github", ".ci", "ci", "deploy", "infra", "terraform", "docker"), "infrastructure"),
    (("config", ".config", "settings"), "configuration"),
)
Fields = dict[str, Any]


def work_context(doc: Project, now: int) -> Fields:
    return {
        "current_phase": find_phase(doc, now),
        "current_activity": find_activity(doc, now),
        "uncommitted_files_context": explain_uncommitted(doc, now),
        "blockers": [task.description for task in doc.tasks if task.priority == "P0"],
    }


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
    return doc.focus or ("idle" if git.was_read else "unknown")


def find_activity(doc: Project, now: int) -> Fields:
    began = doc.activity.began
    if not began:
        return {"type": "none", "started_at": None, "status": "idle"}
    paused = "paused" if doc.git.count else "done"
    status = "in_progress" if _quiet_for(doc, now) < AT_WORK else paused
    return {"type": _activity_type(doc), "started_at": iso_time(began), "status": status}


def _activity_type(doc: Project) -> str:
    worked_in = doc.activity.folders
    # A file name is put behind a folder, because the areas' patterns match files.
    if named := _first_of_areas(doc, [*_changed_paths(doc), *(f"{folder}x" for folder in worked_in)], "activity"):
        return named
    parts = {part for folder in worked_in for part in folder.strip("/").split("/")}
    usual = "development" if worked_in else "maintenance"
    return next((kind for names, kind in FOLDERS if parts & set(names)), usual)


def _changed_paths(doc: Project) -> list[str]:
    return [file.path for file in doc.git.files]


def _first_of_areas(doc: Project, paths: list[str], name: str) -> str:
    """The first text of this name that the settings give for the area of one of these paths."""
    areas = doc.rules.areas
    touched = (areas.get(area_of(path, areas)) for path in paths)
    return next((text for area in touched if area and (text := getattr(area, name))), "")


def _quiet_for(doc: Project, now: int) -> int:
    last = max(doc.activity.last_edit, doc.git.newest_change)
    return now - last if last else NEVER


# ── why files are uncommitted ────────────────────────────────────────────────────────────────────────────────────────


class Hypothesis(NamedTuple):
    reason: str
    intent: str
    weight: float
    evidence: list[str]


def explain_uncommitted(doc: Project, now: int) -> Fields | None:
    """None when nothing is uncommitted. Confidence is the hypothesis' share of all the evidence."""
    if not doc.git.count:
        return None
    ranked = sorted((h for h in _hypotheses(doc, now) if h.weight), key=lambda h: -h.weight)
    total = sum(h.weight for h in ranked)
    best, rest = ranked[0], ranked[1 : 1 + MAX_ALTERNATIVES]
    return {
        "reason": best.reason,
        "confidence": round(best.weight / total, 2),
        "evidence": best.evidence,
        "inferred_intent": _first_of_areas(doc, _changed_paths(doc), "intent") or best.intent,
        "alternative_interpretations": [
            {"intent": h.intent, "confidence": round(h.weight / total, 2)}
            for h in rest
            if h.weight / total >= MIN_SHARE
        ],
    }


def _hypotheses(doc: Project, now: int) -> list[Hypothesis]:
    """The weights only matter in relation to each other."""
    git, files = doc.git, doc.git.files
    tests, quiet = summarise_tests(check_runs(doc)), _quiet_for(doc, now)
    failing = tests.status == "failing"
    is_proven = bool(files) and not unvalidated_files(doc)
    is_recent = now - git.newest_change <= RECENT
    all_new = {file.code for file in files} == {"??"}
    where = "".join(doc.activity.folders[:1]) or "this project"
    folder = doc.project.rstrip("/").rpartition("/")[2] or "the project's"
    doing = git.doing or "merge"
    return [
        _hypothesis(
            ("merge_in_progress", f"Finishing a {doing}"),
            (git.doing, 4.0, f"A {doing} is in progress"),
            (git.conflicts, 4.0, f"{count_with_noun(len(git.conflicts), 'file')} in conflict"),
        ),
        _hypothesis(
            ("fixing_tests", "Making the tests pass before committing"),
            (failing, 1.2, f"{count_with_noun(tests.failed, 'test')} failing"),
            (failing and git.newest_change >= tests.last_run, 0.6, "Files changed since the tests failed"),
        ),
        _hypothesis(
            ("ready_to_commit", "About to commit"),
            (is_proven, 1.5, "All changed files are validated"),
            (is_proven and git.draft, 0.8, "A commit message is drafted"),
        ),
        _hypothesis(
            ("mid_refactor", f"Changing {count_with_noun(git.count, 'file')} in {where} before committing"),
            (is_recent, 0.4, "Files modified within last 2 hours"),
            (now - doc.activity.last_edit <= RECENT, 0.3, f"User actively in {folder} directory"),
            (is_recent and not git.draft, 0.1, "No commit message drafted yet"),
        ),
        _hypothesis(
            ("new_files", "Trying something new next to the existing code"),
            (all_new, 0.15, "No file that git knows was changed"),
            (all_new and is_recent, 0.05, "The files are new"),
        ),
        _hypothesis(
            ("forgotten", "Forgot to commit"),
            # Always there with a small weight, so that there is at least one hypothesis.
            (True, 0.2, ""),
            (quiet > FORGOTTEN, 0.6, "Nothing was changed for more than 4 hours"),
            (quiet > 6 * FORGOTTEN, 0.6, "Nothing was changed for more than a day"),
            (quiet > FORGOTTEN and not doc.activity.sessions, 0.3, "No session is open"),
        ),
    ]


def _hypothesis(named: tuple[str, str], *clues: tuple[object, float, str]) -> Hypothesis:
    """Each clue is (whether it holds, weight, evidence)."""
    holding = [(weight, text) for holds, weight, text in clues if holds]
    return Hypothesis(*named, sum(weight for weight, _ in holding), [text for _, text in holding if text])

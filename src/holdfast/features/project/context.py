"""Why the state is as it is: phase, activity, and why files are uncommitted. Hypotheses gather evidence and compete."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core.ports import Doc
from holdfast.features.project.check_results import summarise_tests
from holdfast.features.project.model import HOUR, MINUTE, number, plural
from holdfast.features.project.validation import area_of, check_runs, unvalidated

RECENT = 2 * HOUR
AT_WORK = 30 * MINUTE
FORGOTTEN = 4 * HOUR
MOST_ALTERNATIVES = 3


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


def work_context(doc: Doc, now: int) -> dict[str, Any]:
    return {
        "current_phase": phase(doc, now),
        "current_activity": activity(doc, now),
        "uncommitted_files_context": uncommitted(doc, now),
        "blockers": [task["description"] for task in doc["tasks"] if task["priority"] == "P0"],
    }


# ── phase and activity ───────────────────────────────────────────────────────────────────────────────────────────────


def phase(doc: Doc, now: int) -> str:
    """The first that holds; the settings may name one."""
    git, tests = doc["git"], summarise_tests(check_runs(doc))
    if doc["rules"].get("phase"):
        return str(doc["rules"]["phase"])
    if git.get("doing"):
        return f"{git['doing']}_in_progress"
    if tests.status == "failing":
        return "fixing_tests"
    if number(git.get("count")):
        if not unvalidated(doc):
            return "ready_to_commit"
        return "building" if _quiet_for(doc, now) < RECENT else "paused"
    if number(git.get("ahead")):
        return "ready_to_push"
    return "idle" if git else "unknown"


PLACES = (
    (("test", "tests", "spec", "__tests__", "e2e"), "testing"),
    (("doc", "docs"), "documentation"),
    ((".github", ".ci", "ci", "deploy", "infra", "terraform", "docker"), "infrastructure"),
    (("config", ".config", "settings"), "configuration"),
)


def activity(doc: Doc, now: int) -> dict[str, Any]:
    began = number(doc["activity"].get("began"))
    quiet = _quiet_for(doc, now)
    if not began:
        return {"type": "none", "started_at": None, "status": "idle"}
    status = "in_progress" if quiet < AT_WORK else "paused" if number(doc["git"].get("count")) else "done"
    return {"type": _type(doc), "started_at": began, "status": status}


def _type(doc: Doc) -> str:
    places, areas = doc["activity"].get("places") or [], doc["rules"].get("areas") or {}
    changed = [str(file["path"]) for file in doc["git"].get("files") or ()]
    for path in (*changed, *(place + "x" for place in places)):
        if named := (areas.get(area_of(path, areas)) or {}).get("activity"):
            return str(named)
    folders = {part for place in places for part in place.strip("/").split("/")}
    return next((kind for names, kind in PLACES if folders & set(names)), "development" if places else "maintenance")


def _quiet_for(doc: Doc, now: int) -> int:
    last = max(number(doc["activity"].get("last_edit")), number(doc["git"].get("newest_change")))
    return now - last if last else FORGOTTEN * 100


# ── why files are uncommitted ────────────────────────────────────────────────────────────────────────────────────────


def uncommitted(doc: Doc, now: int) -> dict[str, Any] | None:
    """None when nothing is uncommitted. Confidence is the hypothesis' share of all the evidence."""
    if not number(doc["git"].get("count")):
        return None
    found = [h for h in hypotheses(doc, now) if h.clues]
    found.sort(key=lambda h: -h.weight)
    total = sum(h.weight for h in found)
    best, rest = found[0], found[1 : 1 + MOST_ALTERNATIVES]
    return {
        "reason": best.reason,
        "confidence": round(best.weight / total, 2),
        "evidence": best.evidence,
        "inferred_intent": _intent(doc) or best.intent,
        "alternative_interpretations": [
            {"intent": h.intent, "confidence": round(h.weight / total, 2)} for h in rest if h.weight / total >= 0.05
        ],
    }


def _intent(doc: Doc) -> str:
    areas = doc["rules"].get("areas") or {}
    for file in doc["git"].get("files") or ():
        if intent := (areas.get(area_of(file["path"], areas)) or {}).get("intent"):
            return str(intent)
    return ""


def hypotheses(doc: Doc, now: int) -> Iterable[Hypothesis]:
    yield merging(doc)
    yield fixing(doc)
    yield ready(doc)
    yield mid_refactor(doc, now)
    yield new_work(doc, now)
    yield forgotten(doc, now)


def _clues(*given: tuple[bool, float, str]) -> tuple[tuple[float, str], ...]:
    return tuple((weight, text) for holds, weight, text in given if holds)


def merging(doc: Doc) -> Hypothesis:
    doing, conflicts = doc["git"].get("doing") or "", doc["git"].get("conflicts") or []
    clues = _clues(
        (bool(doing), 4.0, f"A {doing} is in progress"),
        (bool(conflicts), 4.0, f"{plural(len(conflicts), 'file')} in conflict"),
    )
    return Hypothesis("merge_in_progress", f"Finishing a {doing or 'merge'}", clues)


def fixing(doc: Doc) -> Hypothesis:
    tests = summarise_tests(check_runs(doc))
    failing = tests.status == "failing"
    after = failing and number(doc["git"].get("newest_change")) >= tests.last_run
    clues = _clues(
        (failing, 1.2, f"{plural(tests.failed, 'test')} failing"),
        (after, 0.6, "Files changed since the tests failed"),
    )
    return Hypothesis("fixing_tests", "Making the tests pass before committing", clues)


def ready(doc: Doc) -> Hypothesis:
    proven = bool(doc["git"].get("files")) and not unvalidated(doc)
    drafted = bool(doc["git"].get("draft"))
    clues = _clues(
        (proven, 1.5, "All changed files are validated"),
        (proven and drafted, 0.8, "A commit message is drafted"),
    )
    return Hypothesis("ready_to_commit", "About to commit", clues)


def mid_refactor(doc: Doc, now: int) -> Hypothesis:
    git = doc["git"]
    recent = now - number(git.get("newest_change")) <= RECENT
    active = now - number(doc["activity"].get("last_edit")) <= RECENT
    clues = _clues(
        (recent, 0.4, "Files modified within last 2 hours"),
        (active, 0.3, f"User actively in {_folder(doc)} directory"),
        (recent and not git.get("draft"), 0.1, "No commit message drafted yet"),
    )
    where = (doc["activity"].get("places") or ["this project"])[0]
    return Hypothesis("mid_refactor", f"Changing {plural(git['count'], 'file')} in {where} before committing", clues)


def new_work(doc: Doc, now: int) -> Hypothesis:
    files = doc["git"].get("files") or ()
    all_new = bool(files) and all(file.get("code") == "??" for file in files)
    recent = now - number(doc["git"].get("newest_change")) <= RECENT
    return Hypothesis(
        "new_files", "Trying something new beside the existing code",
        _clues((all_new, 0.15, "No file that git knows was changed"), (all_new and recent, 0.05, "The files are new")),
    )  # fmt: skip


def forgotten(doc: Doc, now: int) -> Hypothesis:
    quiet = _quiet_for(doc, now)
    clues = _clues(
        (True, 0.2, ""),
        (quiet > FORGOTTEN, 0.6, "Nothing was changed for more than 4 hours"),
        (quiet > 6 * FORGOTTEN, 0.6, "Nothing was changed for more than a day"),
        (quiet > FORGOTTEN and not doc["activity"].get("sessions"), 0.3, "No session is open"),
    )
    return Hypothesis("forgotten", "Forgot to commit", clues)


def _folder(doc: Doc) -> str:
    return str(doc["project"]).rstrip("/").rpartition("/")[2] or "the project's"

"""Project state: the one document of a project, now and at any moment the log knows."""

import difflib
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.web.screen import Screen, Visit


def state_page(visit: Visit) -> dict[str, Any]:
    projects = visit.view("project.list")["projects"]
    root = visit.project or (projects[0]["root"] if projects else "")
    moments = visit.view("project.moments", project=root)["moments"] if root else []
    if not moments:
        return {"projects": projects, "root": root, "moments": [], "found": None}
    last = len(moments) - 1
    step = min(visit.number("step", last), last)
    current, earlier = (
        _state_at_step(visit, root, moments, step) if "step" in visit.query else (_current_state(visit, root), None)
    )
    before, before_document = (earlier["text"], earlier["document"]) if earlier else ("", {})
    return {
        "projects": projects,
        "root": root,
        "moments": moments,
        "step": step,
        "chosen": moments[step],
        "is_now": step == last,
        "compared": bool(before),
        "found": current,
        "parts": _document_parts(current["document"]),
        "changed": _changed_parts(current["document"], before_document),
        "lines": _document_lines(before, current["text"]),
    }


def _current_state(visit: Visit, root: str) -> dict[str, Any]:
    value: dict[str, Any] = visit.view("project.state", project=root)
    return value


def _state_at_step(
    visit: Visit, root: str, moments: list[dict[str, Any]], step: int
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The document of that moment, and of the moment before. Both are made from the log: that takes a while."""
    current = visit.view("project.state", project=root, at=str(moments[step]["seq"]))
    if not step:
        return current, None
    try:
        return current, visit.view("project.state", project=root, at=str(moments[step - 1]["seq"]))
    except CommandRefused:
        return current, None  # Nothing was known yet.


TITLES = {
    "TASKS": "Tasks", "PROJECT_RESOLUTION": "Which project this is", "WORK_CONTEXT": "Work in progress",
    "LEARNED_PATTERNS": "Learned patterns", "RESOURCE_LOCKS": "Leases", "STATE_HISTORY": "History",
}  # fmt: skip
CURRENT = "CURRENT_STATE"


def _document_parts(document: dict[str, Any]) -> list[tuple[str, Any]]:
    """The document as cards: what is true now first, each part of it on its own."""
    now = [(name.replace("_", " ").capitalize(), part) for name, part in document.get(CURRENT, {}).items()]
    return now + [(title, document[name]) for name, title in TITLES.items() if document.get(name)]


def _changed_parts(document: dict[str, Any], before: dict[str, Any]) -> set[str]:
    if not before:
        return set()
    old = dict(_document_parts(before))
    return {name for name, part in _document_parts(document) if old.get(name) != part}


def _document_lines(before: str, after: str) -> list[dict[str, Any]]:
    """The document line by line; each knows whether it is new since the moment before."""
    old, new = before.splitlines(), after.splitlines()
    fresh: set[int] = set()
    if old:
        for tag, _, _, first, last in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
            fresh.update(range(first, last) if tag != "equal" else ())
    fresh = {n for n in fresh if not new[n].startswith("LAST_UPDATED")}
    return [{"text": line, "fresh": n in fresh, "head": line[:1].isupper()} for n, line in enumerate(new)]


SCREEN = Screen(
    name="state", title="State", path="/state", page=state_page, key="p", live="project.", script="slider.js"
)

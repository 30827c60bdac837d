"""Search: code, memory and history with one question."""

from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.web.screen import Screen, Visit

HITS = 12
MOST_INDEXES = 4
SHORT = 3


def page(visit: Visit) -> dict[str, Any]:
    question = visit.query.get("q", "").strip()[:500]
    projects = known_projects(visit)
    found = (
        {
            "code": _code(visit, question, projects),
            "memory": _memory(visit, question),
            "history": _history(visit, question),
        }
        if question
        else {}
    )
    return {
        "q": question,
        "words": _telling(question.split()),
        "projects": projects,
        "failed": visit.query.get("failed"),
        **found,
    }


def _telling(words: list[str]) -> list[str]:
    """What is worth marking: not every "the"."""
    return [word for word in words if len(word) > SHORT] or words


def _code(visit: Visit, question: str, projects: list[str]) -> dict[str, Any]:
    """The project that was chosen, or those where agents were last; the best of all first."""
    chosen = [visit.project] if visit.project else projects[:MOST_INDEXES]
    told = [(project, _asked(visit, "reindex.search", project, query=question, limit=HITS)) for project in chosen]
    good = [(project, answer) for project, answer in told if "hits" in answer]
    hits = [{**hit, "project": project} for project, answer in good for hit in answer["hits"]]
    return {
        "hits": sorted(hits, key=lambda hit: -hit["score"])[:HITS],
        "files": sum(answer["files"] for _, answer in good),
        "projects": len(good),
        "problem": "" if good else next((answer["problem"] for _, answer in told), "No project is known yet."),
    }


def _memory(visit: Visit, question: str) -> dict[str, Any]:
    everywhere = not visit.project
    return _asked(visit, "memory.search", visit.project, query=question, limit=HITS, everywhere=everywhere)


def _history(visit: Visit, question: str) -> dict[str, Any]:
    """What happened. The page's own filters narrow it; each hit leads to its row in the timeline."""
    filters = {name: visit.query.get(name, "")[:500] for name in ("agent", "session", "tool", "file")}
    failed = bool(visit.query.get("failed"))
    return _asked(visit, "log.history", "", query=question, project=visit.project, failed=failed, limit=HITS, **filters)


def _asked(visit: Visit, view: str, project: str, /, **args: Any) -> dict[str, Any]:
    """One half may fail (no index yet) while the other answers."""
    try:
        found: dict[str, Any] = visit.client.view(view, args, project=project)
        return found
    except HoldfastError as error:
        return {"problem": error.message}


def known_projects(visit: Visit) -> list[str]:
    """Where agents have been lately, the latest first."""
    rows = visit.view("sessions.list", all=True, limit=200)["sessions"]
    return list(dict.fromkeys(row["project"] for row in rows if row["project"]))[:30]


SCREEN = Screen(name="search", title="Search", path="/search", page=page, key="s", script="search.js")

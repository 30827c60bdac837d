"""The pages for search and for UAT runs."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.core.errors import HoldfastError
from holdfast.core.times import now_ms, parse_moment
from holdfast.doors.web.screen import Screen, Visit

# Search: code, memory and history with one question.

HITS = 12
MOST_INDEXES = 4
SHORT = 3
EDITORS = {
    "vscode": "vscode://file{path}:{line}",
    "cursor": "cursor://file{path}:{line}",
    "windsurf": "windsurf://file{path}:{line}",
    "zed": "zed://file{path}:{line}",
    "idea": "idea://open?file={path}&line={line}",
    "sublime": "subl://open?url=file://{path}&line={line}",
    "textmate": "txmt://open?url=file://{path}&line={line}",
    "file": "file://{path}",
    "off": "",
}
FILTERS = ("agent", "session", "tool", "file", "since")
PERIODS = {"": "any time", "1d": "last day", "7d": "last 7 days", "30d": "last 30 days"}


def search_page(visit: Visit) -> dict[str, Any]:
    question = visit.query.get("q", "").strip()[:500]
    projects = known_projects(visit)
    matches = (
        {
            "code": _search_code(visit, question, projects),
            "memory": _search_memory(visit, question),
            "history": _search_history(visit, question),
        }
        if question
        else {}
    )
    return {
        "q": question,
        "words": _words_to_mark(question.split()),
        "projects": projects,
        "failed": visit.query.get("failed"),
        "filters": {name: visit.query.get(name, "")[:500] for name in FILTERS},
        "periods": PERIODS,
        **matches,
    }


def _words_to_mark(words: list[str]) -> list[str]:
    """Words worth marking: not every "the"."""
    return [word for word in words if len(word) > SHORT] or words


def _search_code(visit: Visit, question: str, projects: list[str]) -> dict[str, Any]:
    """The chosen project, or those where agents were last; the best of all first."""
    chosen = [visit.project] if visit.project else projects[:MOST_INDEXES]
    answers = [(project, _ask_view(visit, "reindex.search", project, query=question, limit=HITS)) for project in chosen]
    good = [(project, answer) for project, answer in answers if "hits" in answer]
    address = _editor_address(visit)
    hits = [
        {
            **hit,
            "project": project,
            "link": editor_link(address, answer["root"], hit["path"], hit["focus"] or hit["line"]),
        }
        for project, answer in good
        for hit in answer["hits"]
    ]
    return {
        "hits": sorted(hits, key=lambda hit: -hit["score"])[:HITS],
        "files": sum(answer["files"] for _, answer in good),
        "projects": len(good),
        "problem": "" if good else _why_no_code(visit, answers),
    }


def _why_no_code(visit: Visit, answers: list[tuple[str, dict[str, Any]]]) -> str:
    if not answers:
        return "No project is known yet."
    if visit.project:
        return str(answers[0][1]["problem"])
    return "None of your latest projects has an index. Run in one of them: holdfast search index run"


def _editor_address(visit: Visit) -> str:
    """The link format of the user's editor, from the user's own settings, never a repository's."""
    chosen: str = visit.client.app.settings.for_project("")["dashboard"].editor
    return EDITORS.get(chosen, chosen)


def editor_link(address: str, root: str, path: str, line: int) -> str:
    """Empty if links are off, or the address leads elsewhere than to a program on this machine."""
    scheme = address.partition(":")[0].lower()
    # A setting must not create a link that runs a script or leaves the machine.
    if "{path}" not in address or scheme in ("http", "https", "javascript", "data", "vbscript"):
        return ""
    return address.replace("{path}", quote(str(Path(root) / path))).replace("{line}", str(line))


def _search_memory(visit: Visit, question: str) -> dict[str, Any]:
    everywhere = not visit.project
    return _ask_view(visit, "memory.search", visit.project, query=question, limit=HITS, everywhere=everywhere)


def _search_history(visit: Visit, question: str) -> dict[str, Any]:
    """History hits. The page's filters narrow them; each leads to its row in the timeline."""
    filters: dict[str, Any] = {name: visit.query.get(name, "")[:500] for name in FILTERS if name != "since"}
    filters["failed"] = bool(visit.query.get("failed"))
    since = visit.query.get("since", "")
    filters["since"] = parse_moment(since, now_ms()) if since in PERIODS and since else 0
    return _ask_view(visit, "log.history", "", query=question, project=visit.project, limit=HITS, **filters)


def _ask_view(visit: Visit, view: str, project: str, /, **args: Any) -> dict[str, Any]:
    """One half may fail (no index yet) while the other answers."""
    try:
        answer: dict[str, Any] = visit.client.view(view, args, project=project)
        return answer
    except HoldfastError as error:
        return {"problem": error.message}


def known_projects(visit: Visit) -> list[str]:
    """Projects with recent sessions, the latest first."""
    rows = visit.view("sessions.list", all=True, limit=200)["sessions"]
    return list(dict.fromkeys(row["project"] for row in rows if row["project"]))[:30]


SEARCH_SCREEN = Screen(name="search", title="Search", path="/search", page=search_page, key="s", script="search.js")


# UAT: the runs of all projects.

PAGE = 50


def uat_page(visit: Visit) -> dict[str, Any]:
    before = visit.query.get("before", "").partition("~")
    # Milliseconds since 1970 have 13 digits.
    after = [int(before[0]), before[2]] if before[0].isdecimal() and len(before[0]) < 17 else None
    answer = visit.view("uat.list", all=not visit.project, limit=PAGE, before=after)
    return {
        "runs": answer["runs"],
        "next": "~".join(map(str, answer["next"])) if answer["next"] else "",
        "projects": visit.view("project.list")["projects"],
        "now": answer["now"],
    }


UAT_SCREEN = Screen(name="uat", title="UAT", path="/uat", page=uat_page, key="u", live="uat.")


# One UAT run: steps, assertions, pictures; and the changes against another run.


def run_page(visit: Visit) -> dict[str, Any]:
    run = visit.view("uat.show", run=visit.path["run"], of="", calls=True)
    others = visit.view("uat.list", of=run["project"], limit=40)["runs"]
    other = visit.query.get("with", "")
    longest = max([step["duration"] or 0 for step in run["plan"]], default=0)
    return {
        "run": run,
        "others": [o for o in others if o["scenario"] == run["scenario"] and o["id"] != run["id"]][:20],
        "compared": _compare_runs(visit, other, run) if other else None,
        "longest": max(longest, 1),
    }


def _compare_runs(visit: Visit, other: str, run: dict[str, Any]) -> dict[str, Any]:
    """The other run is the earlier one. Pictures are addressed by their number in their run."""
    comparison = visit.view("uat.compare", run=other, other=run["id"], of=run["project"])
    before = _shot_numbers(visit.view("uat.show", run=comparison["before"]["id"], of=run["project"]))
    after = _shot_numbers(run)
    pairs = [
        {**pair, "before_number": before.get(pair["before"]), "after_number": after.get(pair["after"])}
        for pair in comparison["screenshots"]
    ]
    return {**comparison, "screenshots": pairs}


def _shot_numbers(run: dict[str, Any]) -> dict[str, int]:
    return {shot["path"]: number for number, shot in enumerate(run["shots"])}


RUN_SCREEN = Screen(name="run", title="UAT run", path="/uat/{run}", page=run_page, live="uat.")

"""The task list in a Notion database, through the official API."""

# What cannot be sent now is kept and sent later. Each task is one page, found again by the text in its `Holdfast`
# property, so that a push that was cut off makes no second page. Needs the extra `notion`; without a database in the
# settings nothing of this is loaded.

import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.project_events import NotionPage, NotionPushed, NotionState
from holdfast.features.project.jobs.refresh import load_project, recent_projects
from holdfast.features.project.settings import DEFAULTS, Notion
from holdfast.features.project.state import Project, Task

# Summaries kept in the document, pages remembered, changes sent in one push.
MAX_PENDING, MAX_PAGES, MAX_AT_ONCE = 50, 300, 100
TIMEOUT_MS = 10_000
COLUMNS: dict[str, dict[str, Any]] = {
    "Holdfast": {"rich_text": {}},
    "Priority": {"select": {}},
    "Status": {"select": {}},
    "Gap": {"select": {}},
    "Done when": {"rich_text": {}},
}


class Change(msgspec.Struct, frozen=True):
    """One page to make or to alter. `done` closes it."""

    task: str
    mark: str
    """What finds the page again: several projects may share a database."""
    title: str
    done: bool
    fields: Mapping[str, str]
    sum: int

    @property
    def summary(self) -> str:
        return f"{'close' if self.done else 'write'} {self.task}: {self.title}"[:200]


def push_tasks(call: JobCall) -> list[Event]:
    """Of one project after a change, or by schedule of all that still have something to send."""
    named = call.job.payload.get("project")
    roots = [str(named)] if named else recent_projects(call.reader, call.now)
    return [event for root in roots for event in _push_project(root, call, retrying=not named)]


_LAST_TRIES: dict[str, int] = {}
"""When this daemon last tried, by project: a try that changed nothing is no news."""


def _push_project(root: str, call: JobCall, *, retrying: bool) -> Iterator[Event]:
    settings = (call.settings(root) or DEFAULTS).notion
    if not settings.database:
        return
    doc = load_project(call.reader, root)
    is_due = call.now - _LAST_TRIES.get(root, 0) >= settings.retry_s * 1000
    if retrying and not (doc.notion.pending_count and is_due):
        return
    _LAST_TRIES[root] = call.now
    state = send_tasks(doc, settings, call.now)
    # The time of a push alone is no news.
    if _without_time(state) != _without_time(doc.notion):
        yield own_event(NotionPushed(status=state.sync_status, state=state), call.now, project=root)


def _without_time(state: NotionState) -> NotionState:
    return msgspec.structs.replace(state, last_synced=0)


def send_tasks(doc: Project, settings: Notion, now: int) -> NotionState:
    """The state after everything that could be sent was sent."""
    pages = dict(doc.notion.pages)
    todo = list(find_changes(doc, pages))
    status, problem = "synced", ""
    try:
        done = _send_changes(todo, pages, settings) if todo else 0
    except _Stopped as stopped:
        done, status, problem = stopped.done, stopped.status, stopped.why
    left = [change.summary for change in todo[done:]]
    return NotionState(
        sync_status=status,
        last_synced=now if not left else doc.notion.last_synced,
        pending=left[:MAX_PENDING],
        pending_count=len(left),
        pages=dict(list(pages.items())[-MAX_PAGES:]),
        problem=problem,
    )


def find_changes(doc: Project, pages: Mapping[str, NotionPage]) -> Iterator[Change]:
    """Open tasks that Notion does not show as they are, and pages of tasks that are done."""
    tasks = {task.id: task for task in doc.tasks}
    folder = doc.folder or doc.project
    for name, task in tasks.items():
        change = _task_change(task, f"{folder}/{name}")
        if name not in pages or pages[name].sum != change.sum:
            yield change
    for name, page in pages.items():
        if name not in tasks and not page.done:
            yield Change(name, f"{folder}/{name}", page.title or name, True, {"Status": "Done"}, page.sum)


def _task_change(task: Task, mark: str) -> Change:
    fields = {
        "Priority": task.priority,
        "Status": "Open",
        "Gap": task.type,
        "Done when": "; ".join(task.done_when)[:1900],
    }
    digest = zlib.crc32(msgspec.json.encode([task.description, fields]))
    return Change(task.id, mark, task.description, False, fields, digest)


# ── the API ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Stopped(Exception):
    def __init__(self, done: int, status: str, why: str) -> None:
        self.done, self.status, self.why = done, status, why


def _send_changes(todo: list[Change], pages: dict[str, NotionPage], settings: Notion) -> int:
    done = 0
    try:
        with _open_client(settings) as client:
            source, title = _prepare_source(client, settings.database)
            for change in todo[:MAX_AT_ONCE]:
                pages[change.task] = _write_page(client, source, title, change, pages.get(change.task))
                done += 1
    except Exception as error:
        raise _Stopped(done, _failure_verdict(error), f"{type(error).__name__}: {error}"[:300]) from error
    if done < len(todo):
        raise _Stopped(done, "pending", f"{len(todo) - done} more at the next push")
    return done


def _open_client(settings: Notion) -> Any:
    import httpx
    from notion_client import Client

    token = os.environ.get("NOTION_TOKEN", "")
    if settings.token_file:
        token = Path(settings.token_file).expanduser().read_text(encoding="utf-8").strip()
    # Proxies and certificates of the environment count, redirects do not: the token goes nowhere else.
    http = httpx.Client(follow_redirects=False)
    return Client(client=http, auth=token, base_url=settings.base_url, timeout_ms=TIMEOUT_MS, retry=False)


def _failure_verdict(error: Exception) -> str:
    """`pending`: trying again may help. `failed`: somebody has to do something."""
    status = getattr(error, "status", None) or getattr(getattr(error, "response", None), "status_code", None)
    # Timeout, conflict and too many requests pass by themselves.
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 429):
        return "failed"
    is_offline = isinstance(error, ConnectionError | TimeoutError)
    return "failed" if isinstance(error, ImportError | OSError) and not is_offline else "pending"


def _prepare_source(client: Any, database: str) -> tuple[str, str]:
    """The database's first data source and its title column; columns that are missing are made."""
    source = client.databases.retrieve(database)["data_sources"][0]["id"]
    properties = client.data_sources.retrieve(source)["properties"]
    missing = {name: shape for name, shape in COLUMNS.items() if name not in properties}
    if missing:
        client.data_sources.update(source, properties=missing)
    title = next((name for name, column in properties.items() if column.get("type") == "title"), "Name")
    return source, title


def _write_page(client: Any, source: str, title: str, change: Change, known_page: NotionPage | None) -> NotionPage:
    # A push that was cut off may have made the page without telling its id.
    page: str = (known_page.page if known_page else "") or _find_page(client, source, change.mark)
    columns = {
        title: {"title": _rich_text(change.title)},
        **{name: _column_value(name, v) for name, v in change.fields.items()},
    }
    if page:
        client.pages.update(page, properties=columns)
    else:
        columns["Holdfast"] = {"rich_text": _rich_text(change.mark)}
        parent = {"type": "data_source_id", "data_source_id": source}
        page = client.pages.create(parent=parent, properties=columns)["id"]
    return NotionPage(page=page, sum=change.sum, title=change.title[:200], done=change.done)


def _find_page(client: Any, source: str, mark: str) -> str:
    condition = {"property": "Holdfast", "rich_text": {"equals": mark}}
    pages = client.data_sources.query(source, filter=condition, page_size=1)["results"]
    return str(pages[0]["id"]) if pages else ""


def _column_value(name: str, value: str) -> dict[str, Any]:
    return {"select": {"name": value[:100]}} if "select" in COLUMNS[name] else {"rich_text": _rich_text(value)}


# Notion takes 2000 characters in a text.
def _rich_text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": {"content": text[:1900]}}]

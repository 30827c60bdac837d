"""The task list in a Notion database, against a server that answers as Notion does."""

from collections.abc import Iterator

import pytest

from holdfast.core.kinds.project_events import NotionState
from holdfast.features.project.jobs import notion
from holdfast.features.project.settings import Notion
from holdfast.features.project.state import OwnTask, Project
from holdfast.features.project.state.task_list import tasks_at
from tests.factories import NOON
from tests.features.project.notion_server import DATABASE, NotionServer


def with_tasks(*names: str, state: NotionState | None = None) -> Project:
    doc = Project(project="/p", folder="p", notion=state or NotionState())
    doc.own_tasks = [OwnTask(key=name, description=name, priority="P1", done_when=["It is done"]) for name in names]
    return tasks_at(doc, NOON)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NotionServer]:
    monkeypatch.setenv("NOTION_TOKEN", "secret-token")
    with NotionServer() as made:
        yield made


def test_tasks_go_to_notion_and_are_closed_there(server: NotionServer) -> None:
    """S1-6."""
    settings = Notion(database=DATABASE, base_url=server.url)
    first = notion.send_tasks(with_tasks("one", "two"), settings, NOON)
    assert (first.sync_status, first.last_synced, first.pending_count) == ("synced", NOON, 0)
    assert server.rows() == {"p/task_001": ("one", "P1", "Open"), "p/task_002": ("two", "P1", "Open")}
    second = notion.send_tasks(with_tasks("one changed", state=first), settings, NOON)
    assert server.rows() == {"p/task_001": ("one changed", "P1", "Open"), "p/task_002": ("two", "P1", "Done")}
    server.requests.clear()
    assert notion.send_tasks(with_tasks("one changed", state=second), settings, NOON).sync_status == "synced"
    assert server.requests == [], "nothing changed, nothing is asked"


def test_what_cannot_be_sent_waits_and_is_sent_once(server: NotionServer) -> None:
    settings = Notion(database=DATABASE, base_url=server.url)
    server.fail = 503
    down = notion.send_tasks(with_tasks("one"), settings, NOON)
    assert (down.sync_status, down.pending, down.pending_count) == ("pending", ["write task_001: one"], 1)
    server.fail = 0
    up = notion.send_tasks(with_tasks("one", state=down), settings, NOON)
    assert (up.sync_status, up.pending) == ("synced", [])
    again = notion.send_tasks(with_tasks("one"), settings, NOON)
    assert again.sync_status == "synced"
    assert len(server.pages) == 1, "a push whose end was never recorded makes no second page"


def test_a_wrong_token_fails_and_an_unreachable_server_waits(
    server: NotionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTION_TOKEN", "wrong")
    found = notion.send_tasks(with_tasks("one"), Notion(database=DATABASE, base_url=server.url), NOON)
    assert (found.sync_status, found.pending_count) == ("failed", 1)
    assert "wrong" not in str(found)
    found = notion.send_tasks(with_tasks("one"), Notion(database=DATABASE, base_url="http://127.0.0.1:9"), NOON)
    assert found.sync_status == "pending"

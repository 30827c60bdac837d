"""Migrations while servers of other versions run: two versions apart, in both directions."""

from collections.abc import Iterator

import psycopg
import pytest
from starlette.testclient import TestClient

from holdfast.core.errors import SchemaTooNew
from holdfast_team.server import database
from holdfast_team.server.app import TeamServer
from holdfast_team.server.connection import team_schema
from holdfast_team.server.database import migrate_database, owner_connection
from holdfast_team.server.run import add_tenant
from tests.team.conftest import PROJECT, Joined, an_event

NEWEST = max(database._load_migrations())
COLUMNS = """
select table_name || '.' || column_name as name, data_type, is_nullable, column_default from information_schema.columns
where table_schema = %s order by 1
"""


@pytest.fixture
def old_url(postgres_url: str) -> Iterator[str]:
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20search_path%3Dteam_old"
    yield url
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("drop schema if exists team_old cascade")


def only(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """As a program that knows the migrations up to that one."""
    known = {n: text for n, text in database._load_migrations().items() if n <= version}
    monkeypatch.setattr(database, "_load_migrations", lambda: known)


def columns_of(url: str) -> dict[str, tuple[str, str, str]]:
    with owner_connection(url) as db:
        rows = db.execute(COLUMNS, (team_schema(url),)).fetchall()
    return {row["name"]: (row["data_type"], row["is_nullable"], row["column_default"]) for row in rows}


def test_tables_two_versions_newer_have_everything_that_an_older_server_writes(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns stay as they were, and a new one may be left out; a tenant of the old tables works on."""
    with monkeypatch.context() as older:
        only(older, 1)
        assert migrate_database(old_url) == 1
        code = add_tenant(old_url, "kept", "ann").code
        before = columns_of(old_url)
    assert migrate_database(old_url) == NEWEST
    after = columns_of(old_url)
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed == {"browser_sessions.machine"}, "only a default was added"
    tables = {name.split(".")[0] for name in before}
    added = {name: kind for name, kind in after.items() if name not in before and name.split(".")[0] in tables}
    assert added and all(nullable == "YES" or default for _, nullable, default in added.values())
    with TestClient(TeamServer(old_url, connections=2).build_app(), base_url="http://team.test") as client:
        ann = Joined(client, code)
        assert ann.send(0, 1, an_event(1), projects=(PROJECT,))["taken"] == 1


def test_an_older_server_starts_on_newer_tables_as_far_as_they_allow_it(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert migrate_database(old_url) == NEWEST
    only(monkeypatch, 1)
    assert migrate_database(old_url) == NEWEST
    with TestClient(TeamServer(old_url, connections=2).build_app()) as client:
        assert client.get("/ready").status_code == 200
    with owner_connection(old_url) as db:
        db.execute("insert into migrations values (%s, 0, 2)", (NEWEST + 1,))
    with pytest.raises(SchemaTooNew, match=f"version {NEWEST + 1}"):
        migrate_database(old_url)


def test_a_step_waits_for_a_table_that_is_in_use_and_lets_requests_pass(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        only(older, 1)
        migrate_database(old_url)
    monkeypatch.setattr(database, "STEP_WAIT_MS", 20)
    monkeypatch.setattr(database, "STEP_PAUSE_S", 0.0)
    monkeypatch.setattr(database, "STEP_ATTEMPTS", 2)
    with psycopg.connect(old_url) as busy:
        busy.execute("select * from machines")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            migrate_database(old_url)
        assert busy.execute("select count(*) from machines").fetchone() == (0,)
    assert migrate_database(old_url) == NEWEST

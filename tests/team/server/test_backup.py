"""Backup, restore and the drill, on a real PostgreSQL."""

import shutil
import zipfile
from pathlib import Path

import msgspec
import psycopg
import pytest
from starlette.testclient import TestClient

from holdfast.core.errors import CommandRefused
from holdfast_team.server.app import TeamServer
from holdfast_team.server.backup import JUMP, MANIFEST, drill_backup, in_schema, restore_backup, write_backup
from holdfast_team.server.connection import team_schema
from holdfast_team.server.database import owner_connection
from tests.team.conftest import PROJECT, Joined, an_event

LEASE = {"act": "acquire", "project": PROJECT.id, "name": "deploy", "session": "s"}


@pytest.fixture
def worked(new_team) -> Joined:
    """A team in which something happened."""
    ann = new_team()
    strange = an_event(1, text="tab\there\nand \\ backslash", branch="a\x00b", action="edit", paths=["ä.py"])
    ann.send(0, 2, strange, an_event(2, kind="model.answered", tokens={"input": 5}, model="m"), projects=(PROJECT,))
    assert ann.ask("POST", "/v1/lease", json=LEASE)["token"] == 1
    return ann


def test_a_restored_server_goes_on_where_the_backup_was_and_machines_send_again_what_it_lacks(
    team_url: str, worked: Joined, tmp_path: Path
) -> None:
    told = write_backup(team_url, tmp_path / "team.backup")
    assert (tmp_path / "team.backup").stat().st_mode & 0o077 == 0 and told.rows > 8
    worked.send(2, 3, an_event(3))
    assert worked.ask("POST", "/v1/lease", json={**LEASE, "act": "release", "token": 1})["granted"]
    assert worked.ask("POST", "/v1/lease", json=LEASE)["token"] == 2
    elsewhere = in_schema(team_url, f"{team_schema(team_url)}_new")
    restore_backup(elsewhere, tmp_path / "team.backup")
    with TestClient(TeamServer(elsewhere, connections=2).build_app(), base_url="http://new.test") as server:
        assert server.get("/ready").status_code == 200
        worked.client = server
        assert worked.send(3, 4, an_event(4), status=409)["cursor"] == 2
        assert worked.send(2, 4, an_event(3), an_event(4))["taken"] == 2
        assert worked.ask("POST", "/v1/lease", json=LEASE)["token"] > JUMP
        [item] = worked.ask("GET", "/v1/feed?after=3")["items"]
        assert item["id"] > JUMP and worked.ask("GET", "/v1/audit")
    with pytest.raises(CommandRefused, match="not empty"):
        restore_backup(elsewhere, tmp_path / "team.backup")
    _drop(elsewhere)


def test_the_drill_says_that_a_backup_is_good_and_leaves_nothing(team_url: str, worked: Joined, tmp_path: Path) -> None:
    file = tmp_path / "team.backup"
    told = write_backup(team_url, file)
    assert drill_backup(team_url, file).rows == told.rows
    assert [path.name for path in tmp_path.iterdir()] == ["team.backup"]
    with owner_connection(team_url) as db:
        assert not db.execute("select 1 from pg_namespace where nspname like '%%_drill_%%'").fetchone()
    with pytest.raises(CommandRefused, match="there already"):
        write_backup(team_url, file)


def test_a_damaged_backup_is_refused(team_url: str, worked: Joined, tmp_path: Path) -> None:
    file, bad = tmp_path / "team.backup", tmp_path / "bad.backup"
    write_backup(team_url, file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(bad, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content.replace(b"claude-code", b"claude-evil") if name == "events.copy" else content)
    with pytest.raises(CommandRefused, match="damaged: events"):
        drill_backup(team_url, bad)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as target:
        target.writestr(
            MANIFEST,
            msgspec.json.encode({"version": 1, "at": 1, "tables": [{"name": "x;y", "columns": [], "key": []}]}),
        )
    with pytest.raises(CommandRefused, match="no backup"):
        drill_backup(team_url, tmp_path / "other.zip")
    shutil.rmtree(tmp_path)


def _drop(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"drop schema {team_schema(url)} cascade")

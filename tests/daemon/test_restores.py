"""After a restore nothing comes back to life that was used, ended or approved before."""

import sqlite3
from pathlib import Path

import pytest

from holdfast.core.kinds.engine_events import StoreRestored
from holdfast.daemon.restores import Restore, note_restore, read_restores
from tests.kit import World, git

RULES = """
requirements:
  deploy: {type: blocking, scope: single_use, manual: false, command_pattern: 'make deploy'}
  publish: {type: blocking, scope: branch, manual: false, command_pattern: 'make publish'}
  rehearsed:
    {type: evidence, scope: single_use, command_pattern: 'make release', evidence: {command: 'make rehearsal'}}
"""


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    (world.root / "config").mkdir()
    (world.root / "config" / "settings.yaml").write_text(RULES)
    git(world.project, "init", "-q")
    yield world
    world.close()


@pytest.mark.quick
def test_an_approval_that_was_used_up_does_not_come_back(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    world.cli("gate", "approve", "deploy", "--session", "s1")
    world.cli("gate", "approve", "publish", "--session", "s1")
    backup = Path(world.json("backup")["path"]).name
    assert agent.tool("Bash", command="make deploy") == {}
    assert "deny" in str(agent.tool("Bash", command="make deploy"))
    world.cli("restore", backup, "--yes")
    assert "deny" in str(agent.tool("Bash", command="make deploy"))
    assert "deny" in str(agent.tool("Bash", command="make publish"))
    world.cli("gate", "approve", "publish", "--session", "s1")
    world.cli("daemon", "restart")
    assert agent.tool("Bash", command="make publish") == {}, "approved after the restore"


def test_a_proof_that_was_used_up_does_not_come_back(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    agent.tool("Bash", command="make rehearsal")
    backup = Path(world.json("backup")["path"]).name
    assert agent.tool("Bash", command="make release") == {}
    assert "deny" in str(agent.tool("Bash", command="make release"))
    world.cli("restore", backup, "--yes")
    assert "deny" in str(agent.tool("Bash", command="make release"))
    agent.tool("Bash", command="make rehearsal")
    assert agent.tool("Bash", command="make release") == {}


def test_a_pause_that_was_ended_does_not_come_back(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    world.cli("gate", "pause", "30m")
    assert agent.tool("Bash", command="make deploy") == {}
    backup = Path(world.json("backup")["path"]).name
    world.cli("gate", "resume")
    world.cli("restore", backup, "--yes")
    assert "deny" in str(agent.tool("Bash", command="make deploy"))


def test_a_restore_is_an_event_that_names_what_it_took_away_and_status_says_it(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    backup = Path(world.json("backup")["path"]).name
    for number in range(5):
        agent.prompt(f"prompt {number}")
    head = world.events()[-1].seq
    world.cli("restore", backup, "--yes")
    [event] = world.events(kinds=("store.restored",))
    assert event.data.asked
    assert event.data.backup.endswith(backup)
    assert event.data.lost >= head - event.data.backup_head > 0
    assert f"from {backup}: {event.data.lost} events were lost" in world.cli("status", COLUMNS="400")
    # Going back before a restore does not remove its trace.
    world.cli("restore", backup, "--yes")
    assert len(world.events(kinds=("store.restored",))) == 2


def test_the_log_proves_itself_after_going_forth_and_back_between_two_backups(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    early = Path(world.json("backup")["path"]).name
    for number in range(5):
        agent.prompt(f"prompt {number}")
    world.cli("daemon", "stop")
    late = Path(world.json("backup")["path"]).name
    world.cli("restore", early, "--yes")
    agent.prompt("only in the log that is left again")
    world.cli("daemon", "stop")  # Notes the head: it lies before the end of the later backup, and in another log.
    agent.prompt("once more")
    world.cli("restore", late, "--yes")
    events = world.events(kinds=("store.restored",))
    assert [event.data.shared_head for event in events] == [events[0].data.backup_head] * 2
    assert min(event.data.lost for event in events) > 0
    checked = world.json("verify")
    assert checked["good"], checked
    assert checked["chain"]["restored_heads"] > 0


@pytest.mark.quick
def test_a_torn_line_of_the_record_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "restores"
    note_restore(path, Restore(1, StoreRestored(backup="a", asked=True)))
    with path.open("ab") as file:
        file.write(b'{"at": 2, "ev\n')
    note_restore(path, Restore(3, StoreRestored(backup="c", asked=True)))
    assert [one.at for one in read_restores(path)] == [1, 3]
    (tmp_path / "link").symlink_to(path)
    assert read_restores(tmp_path / "link") == []


def test_verify_proves_the_log_through_a_restore_and_an_erasure(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    agent.prompt("the launch code is forty-two")
    backup = Path(world.json("backup")["path"]).name
    agent.prompt("gone with the restore")
    world.cli("restore", backup, "--yes")
    agent.prompt("after it")
    world.cli("erase", "--text", "the launch code is forty-two", "--yes")
    answer = world.json("verify")
    assert answer["good"]
    assert answer["chain"]["restored_heads"] >= 1
    assert answer["chain"]["erased"] >= 1


def test_verify_finds_events_that_were_cut_off_the_log(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    for number in range(5):
        agent.prompt(f"prompt {number}")
    world.cli("daemon", "stop")
    database = world.paths.database
    with sqlite3.connect(database) as db:
        top = db.execute("select max(seq) from events").fetchone()[0]
        for table in ("events", "facts", "bodies"):
            db.execute(f"delete from {table} where seq > ?", (top - 4,))
    database.with_suffix(".head").unlink()
    assert "no restore explains it" in world.cli("verify", code=1)

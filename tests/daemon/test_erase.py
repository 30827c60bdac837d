"""What is erased is gone from the whole state folder, whatever happens to the daemon meanwhile."""

import os
from pathlib import Path

import pytest

from holdfast.core.erase import Quotation
from holdfast.core.event import Event
from holdfast.daemon.erase import EraseIntent, new_intent, open_intents, remove_intent, save_intent
from holdfast.daemon.quoting_files import quotes_text
from holdfast.paths import INTENT_SUFFIX, Paths, plain_files
from tests.kit import World, alive, wait_until

TEXT = "The codename of the merger is Zebrafinch, keep it in vault/zebra.key"


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    yield world
    world.close()


def leftovers(folder: Path, word: str = "zebrafinch") -> list[str]:
    return [str(p) for p in plain_files(folder) if word.encode() in p.read_bytes().lower()]


def a_session_that_says_it(world: World, session: str = "session-secret-1") -> None:
    agent = world.session(session)
    agent.start()
    agent.prompt(f"We decided: {TEXT}. Always remember this.")
    agent.tool("Write", file_path=str(world.project / "notes.md"), content=f"# Notes\n\n> {TEXT.upper()}\n")
    agent.tool("Bash", {"stdout": f'{{"note": "{TEXT}"}}', "stderr": ""}, command=f"echo '{TEXT}' | tee -a log")
    agent.stop(f"Understood. **{TEXT}** it is.")
    world.cli("memory", "add", TEXT)
    world.cli("task", "add", TEXT, code=None)
    world.cli("backup")


def test_a_text_leaves_the_whole_state_folder(world: World) -> None:
    a_session_that_says_it(world)
    quarantine = world.paths.quarantine
    quarantine.mkdir(mode=0o700, exist_ok=True)
    (quarantine / "torn.log").write_bytes(b"\x00\xff" + TEXT.encode())
    with world.paths.log_file.open("a") as log:
        log.write(f'{{"error": "{TEXT}"}}\n')
    assert leftovers(world.paths.state)
    assert "places repeat it" in world.cli("memory", "forget", "--text", TEXT)
    places = {one["table"] for one in world.json("memory", "forget", "--text", TEXT)}
    assert places >= {"facts", "states", "backup", "log", "set aside"}
    assert leftovers(world.paths.state), "showing changes nothing"
    receipt = world.json("memory", "forget", "--text", TEXT, "--yes")
    assert receipt["rows"] >= 6
    assert leftovers(world.paths.state) == []
    assert leftovers(world.paths.state, "zebra.key") == []
    assert leftovers(world.project) == []
    assert not list(world.paths.run.glob(f"*{INTENT_SUFFIX}"))
    assert world.json("rebuild")["differences"] == []
    assert [e.data.what for e in world.events(kinds=("erase.finished",))] == ["text"]


def test_a_session_is_gone_and_others_stay(world: World) -> None:
    a_session_that_says_it(world)
    other = world.session("another-session")
    other.start()
    other.prompt("hello from the other one")
    world.cli("erase", "--session", "session-secret-1", code=1)
    world.cli("erase", "--session", "session-secret-1", "--yes")
    assert leftovers(world.paths.state, "session-secret-1") == []
    assert [e.data.prompt for e in world.events(kinds=("prompt.submitted",))] == ["hello from the other one"]
    assert world.json("rebuild")["differences"] == []
    assert world.json("verify")["good"]


def test_a_project_is_gone(world: World) -> None:
    a_session_that_says_it(world)
    world.cli("erase", "--project", str(world.project), "--yes")
    assert leftovers(world.paths.state) == []
    assert world.json("rebuild")["differences"] == []


def test_the_project_beside_it_and_the_session_of_like_name_stay(world: World) -> None:
    """Their paths begin with the same words, and one id with the other: they are other names."""
    clients = world.root / "work" / "clients" / "acme"
    told = {}
    for name, session in (("api", "session-1"), ("web", "session-10"), ("api-v2", "session-1-b")):
        world.project = clients / name
        world.project.mkdir(parents=True)
        agent = world.session(session)
        agent.start()
        agent.prompt(f"look at {world.project}/main.py")
        told[session] = (str(world.project), f"look at {world.project}/main.py")
    world.cli("erase", "--project", str(clients / "api"), "--yes")
    world.cli("erase", "--session", "session-1", "--yes")
    prompts = {e.session: (e.project, e.data.prompt) for e in world.events(kinds=("prompt.submitted",))}
    del told["session-1"]
    assert prompts == told
    assert world.json("rebuild")["differences"] == []


def test_everything_is_gone(world: World) -> None:
    a_session_that_says_it(world)
    assert "--yes" in world.cli("erase", "--everything", code=1)
    world.cli("erase", "--everything", "--yes")
    assert not world.paths.state.exists() or list(plain_files(world.paths.state)) == []
    world.session("fresh").start()
    assert world.events()


def test_an_intent_left_by_a_dead_daemon_is_carried_out_at_the_next_start(world: World) -> None:
    a_session_that_says_it(world)
    world.kill()
    save_intent(world.paths, new_intent(1, texts=(TEXT,)))
    world.start()
    wait_until(lambda: not list(world.paths.run.glob(f"*{INTENT_SUFFIX}")), "the erasure is finished")
    assert leftovers(world.paths.state) == []


def test_everything_goes_on_at_the_next_start(world: World) -> None:
    from holdfast.daemon.wipe import begin_wipe

    a_session_that_says_it(world)
    world.kill()
    begin_wipe(world.paths)
    world.start()
    assert leftovers(world.paths.state) == []


def test_half_written_files_go_at_the_next_start(world: World) -> None:
    world.start()
    world.kill()
    partial = world.paths.run / f".x{INTENT_SUFFIX}.999999.partial"
    partial.write_bytes(TEXT.encode())
    (world.paths.backups / ".20260101T000000Z-daily.db.partial").write_bytes(TEXT.encode())
    # Whoever writes a file in any folder of ours may be killed over it.
    for folder in ("footprint", "kept/0123", "team", "web", "derived/memory"):
        (world.paths.state / folder).mkdir(parents=True, exist_ok=True)
        (world.paths.state / folder / ".a.json.999999.partial-7").write_bytes(TEXT.encode())
    world.start()
    wait_until(lambda: leftovers(world.paths.state) == [], "no half-written file is left")


def test_an_intent_is_private_and_survives_only_whole(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state").prepare()
    event = Event(key="k", kind="memory.forgotten", at=1, data={"id": "m1"})
    save_intent(paths, new_intent(5, texts=("x y",), events=(event,)))
    [path] = paths.run.glob(f"*{INTENT_SUFFIX}")
    assert os.stat(path).st_mode & 0o777 == 0o600
    [intent] = open_intents(paths)
    assert (intent.texts, intent.events[0].data["id"]) == (("x y",), "m1")
    path.write_bytes(bytes(path.stat().st_size))
    assert open_intents(paths) == []
    assert not path.exists()
    remove_intent(paths, EraseIntent(id="gone", at=1))


def test_a_file_is_searched_piece_by_piece(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"x " * (2 << 20) + TEXT.encode() + b" y" * 1000)
    assert quotes_text(big, [Quotation(TEXT)])
    assert not quotes_text(big, [Quotation("something else entirely, and not here")])


def test_a_daemon_ends_when_its_state_folder_is_replaced(world: World) -> None:
    pid = world.start()
    moved = world.paths.state.with_name("moved")
    world.paths.state.rename(moved)
    Paths(world.paths.state).prepare()
    wait_until(lambda: not alive(pid), "the daemon of the other folder ends")


def test_verify_checks_what_was_acknowledged(world: World) -> None:
    """Also after the journal was written over, and after the daemon ended."""
    agent = world.session()
    agent.start()
    agent.prompt("hello")
    agent.tool("Bash", {"stdout": "x", "stderr": ""}, command="true")
    told = world.json("verify")
    assert (told["good"], told["missing"]) == (True, [])
    assert told["checked"] >= 4
    world.cli("daemon", "stop")
    assert world.json("verify")["checked"] >= told["checked"]
    with world.paths.ledger.open("a") as ledger:
        ledger.write("0" * 32 + "\n")
    assert "acknowledged but not in the log: " + "0" * 32 in world.cli("verify", code=1)

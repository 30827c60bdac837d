"""`store.encrypt_bodies`: what only a payload holds cannot be read on disk, and everything else goes on as before."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from keyring.errors import NoKeyringError

from holdfast.core.decision import Delivery
from holdfast.core.errors import StoreDamaged
from holdfast.core.ids import delivery_key
from holdfast.daemon.ingest.journal import JournalEntry
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.service import Daemon
from holdfast.paths import Paths, plain_files
from holdfast.stores.body_cipher import UNREADABLE
from tests.kit import World, wait_until

WORD = b"zebrafinch"
FILLER = "x = 1\n" * 2000
"""Around the word: facts keep only the beginning and the end of an output."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(
        tmp_path,
        PYTHONPATH=str(Path(__file__).parents[1]),
        PYTHON_KEYRING_BACKEND="keyring_file.FileKeyring",
        TEST_KEYRING=str(tmp_path / "home" / "keyring.json"),
    )
    yield made
    made.close()


def keyring_file(world: World) -> Path:
    return Path(world.env["TEST_KEYRING"])


def switch(world: World, on: bool) -> None:
    """Until it counts everywhere: the daemon runs already and looks at its settings every few seconds."""
    world.cli("config", "set", "store.encrypt_bodies", str(on).lower())
    wait_until(lambda: settled(world, on), f"all are {'encrypted' if on else 'plain'}", patience=60)


def say_it(world: World, session: str = "session-1", times: int = 1) -> None:
    agent = world.session(session)
    agent.start()
    for _ in range(times):
        agent.tool("Bash", {"stdout": f"{FILLER}{WORD.decode()}\n{FILLER}", "stderr": ""}, command="cat notes.md")
    agent.stop("Done.")
    world.ask(op="settle")


def plain_places(world: World) -> list[str]:
    """The lock's and the sockets' folder too; `home` holds the test's own keyring."""
    return [str(path) for path in plain_files(world.paths.state) if WORD in path.read_bytes().lower()]


def bodies(world: World) -> dict[str, Any]:
    value: dict[str, Any] = world.ask(op="status")["bodies"]
    return value


def settled(world: World, on: bool) -> bool:
    now = bodies(world)
    return now["wanted"] is on and now["done"] and now["left"] == 0


def said(world: World) -> list[str]:
    """The bodies of tool outputs as a person gets them."""
    seqs = [e.seq for e in world.events(kinds=("tool.finished",))]
    return [world.view("log.event", seq=seq)["body"] for seq in seqs]


def test_what_only_a_body_holds_is_nowhere_on_disk_and_reads_back(world: World) -> None:
    switch(world, True)
    say_it(world)
    assert plain_places(world) == [], "neither in the store nor in the journal"
    assert WORD.decode() in said(world)[0]
    assert "encrypted at rest" in world.cli("status")
    world.cli("backup")
    assert plain_places(world) == []
    world.kill()
    assert plain_places(world) == []
    world.start()
    assert WORD.decode() in said(world)[0], "the key is found again"
    assert world.json("rebuild")["differences"] == []
    assert world.cli("verify")


def test_an_acknowledged_event_survives_a_kill_in_an_encrypted_journal(world: World) -> None:
    switch(world, True)
    world.start()
    agent = world.session()
    agent.start()
    agent.before("Bash", command="echo one")
    world.hook("PostToolUse", {**agent.common, "tool_name": "Bash", "tool_response": {"stdout": "one"}}, "tell")
    world.kill()
    assert b"PostToolUse" not in world.paths.journal.read_bytes()
    world.start()
    assert world.cli("verify")
    assert [e.kind for e in world.events(kinds=("tool.finished",))] == ["tool.finished"]


def test_bodies_of_a_lost_key_read_as_such_and_nothing_else_breaks(world: World) -> None:
    switch(world, True)
    say_it(world)
    world.kill(signal.SIGTERM)
    keyring_file(world).unlink()
    world.start()
    assert said(world) == [UNREADABLE.decode()]
    say_it(world, "session-2")
    assert WORD.decode() in said(world)[1], "a new key was made for new ones"
    assert plain_places(world) == []
    wait_until(lambda: bodies(world)["unreadable"], "they are counted")
    assert "cannot be decrypted" in world.cli("status")
    assert "cannot be decrypted" in world.cli("doctor", code=None)
    assert world.json("rebuild")["differences"] == []
    world.json("memory", "forget", "--text", WORD.decode(), "--yes")
    assert not any(WORD.decode() in one for one in said(world))


def test_with_a_locked_keyring_bodies_are_left_out_and_the_journal_waits(world: World) -> None:
    switch(world, True)
    say_it(world)
    world.kill()
    lock = keyring_file(world).with_suffix(".locked")
    lock.touch()
    world.start()
    say_it(world, "session-2")
    assert plain_places(world) == []
    assert "not stored" in world.cli("status")
    assert "wait in its encrypted journal for the keyring" in world.cli("status")
    assert "start or unlock the keyring" in world.cli("doctor", code=None)
    assert "the missing events may be there" in world.cli("verify", code=1)
    assert len(world.events(kinds=("tool.finished",))) == 2, "the events themselves are kept"
    lock.unlink()
    world.kill(signal.SIGTERM)
    world.start()
    assert [WORD.decode() in one for one in said(world)] == [True, False]
    assert world.cli("verify")


def test_old_bodies_are_encrypted_and_decrypted_again(world: World) -> None:
    say_it(world, times=3)
    world.cli("backup")
    assert plain_places(world)
    switch(world, True)
    assert plain_places(world) == [], "in no backup either"
    assert all(WORD.decode() in one for one in said(world))
    switch(world, False)
    assert plain_places(world)
    keyring_file(world).unlink()
    world.kill(signal.SIGTERM)
    world.start()
    assert all(WORD.decode() in one for one in said(world)), "no key is needed any more"


def test_a_daemon_killed_while_it_encrypts_goes_on_at_its_next_start(world: World) -> None:
    say_it(world, times=60)
    world.cli("config", "set", "store.encrypt_bodies", "true")
    with world.reader() as reader:
        wait_until(lambda: any(key for key in reader.body_keys()), "it has begun")
        world.kill()
    world.start()
    wait_until(lambda: settled(world, True), "all are encrypted", patience=60)
    assert plain_places(world) == []
    assert len(said(world)) == 60
    assert all(WORD.decode() in one for one in said(world))
    assert world.json("rebuild")["differences"] == []


def test_what_is_erased_leaves_encrypted_bodies_and_backups(world: World) -> None:
    switch(world, True)
    say_it(world)
    world.cli("backup")
    receipt = world.json("memory", "forget", "--text", WORD.decode(), "--yes")
    assert receipt["rows"] >= 1
    assert said(world)
    assert not any(WORD.decode() in one for one in said(world))
    switch(world, False)
    assert plain_places(world) == [], "nothing came to light again"
    world.kill()
    newest = sorted(world.paths.backups.glob("*.db"))[-1].name
    world.start()
    world.cli("restore", newest, "--yes")
    assert not any(WORD.decode() in one for one in said(world))


@pytest.mark.parametrize("backend", ["keyring.backends.fail.Keyring", "keyring.backends.null.Keyring"])
def test_it_cannot_be_switched_on_without_a_real_keyring(world: World, backend: str) -> None:
    world.env["PYTHON_KEYRING_BACKEND"] = backend
    told = world.cli("config", "set", "store.encrypt_bodies", "true", code=1)
    assert "no system keyring" in told
    assert "encrypt the disk" in told
    assert json.loads(world.cli("config", "show", "store", "--json"))["data"]["settings"]


def test_a_project_cannot_switch_it_off(world: World) -> None:
    switch(world, True)
    folder = world.project / ".holdfast"
    folder.mkdir()
    (folder / "settings.yaml").write_text("store: {encrypt_bodies: false}\n")
    say_it(world)
    assert plain_places(world) == []
    assert bodies(world)["wanted"] is True


def test_the_keyring_holds_the_key_and_the_state_folder_does_not(world: World) -> None:
    switch(world, True)
    say_it(world)
    (entry,) = json.loads(keyring_file(world).read_text()).items()
    assert entry[0].startswith("holdfast/")
    assert all(entry[1].encode() not in path.read_bytes() for path in plain_files(world.paths.state))
    world.cli("erase", "--everything", "--yes")
    assert json.loads(keyring_file(world).read_text()) == {}, "the key goes with what it opened"


class LateKeyring:
    """The system's keyring, whose daemon may be gone."""

    priority = 5
    entries: ClassVar[dict[str, str]] = {}
    is_gone = False

    def get_password(self, service: str, name: str) -> str | None:
        if self.is_gone:
            raise NoKeyringError("no daemon")
        return self.entries.get(f"{service}/{name}")

    def set_password(self, service: str, name: str, value: str) -> None:
        self.entries[f"{service}/{name}"] = value


def test_a_keyring_that_comes_back_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its daemon was gone at the start: what was answered before waits, what comes is kept without its payload and
    never plain, and all of it is there once the keyring is, without a restart."""
    monkeypatch.setenv("HOLDFAST_CONFIG", str(tmp_path))
    monkeypatch.setattr("holdfast.stores.body_keys.require_keyring", keyring := LateKeyring)
    for module in ("stores.body_cipher", "daemon.body_encryption"):
        monkeypatch.setattr(f"holdfast.{module}.ASK_AGAIN_S", 0.0)
    (tmp_path / "settings.yaml").write_text("store: {encrypt_bodies: true}\n")
    paths = Paths(tmp_path / "state").prepare()
    daemon = Daemon(paths, Log(paths.log_file))
    said = {"session_id": "s", "prompt": WORD.decode()}
    promised = Delivery(
        key=delivery_key(1), agent="claude-code", event="UserPromptSubmit", body=msgspec.json.encode(said)
    )
    assert daemon.journal.add([JournalEntry(delivery=promised)])
    daemon.app.store.close()
    keyring.is_gone = True
    daemon = Daemon(paths, Log(paths.log_file))
    try:
        encryption = daemon.background.housekeeping.encryption
        told = encryption.status()
        assert (told["journal_waits"], "NoKeyringError" in told["problem"]) == (True, True)
        daemon.pipeline.retry_held()
        assert not daemon.app.store.reader().seqs_of_keys([promised.key])
        keyring.is_gone = False
        assert encryption._prepared()
        daemon.pipeline.retry_held()
        assert daemon.app.store.reader().seqs_of_keys([promised.key])
        assert (encryption.status()["journal_waits"], encryption.status()["problem"]) == (False, "")
        assert WORD not in paths.journal.read_bytes()
    finally:
        daemon.app.store.close()


def test_after_a_repair_the_journal_follows_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process: a key that is found after the store was exchanged counts for the journal too."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    paths = Paths(tmp_path / "state").prepare()
    daemon = Daemon(paths, Log(paths.log_file))
    assert daemon.repair_store(StoreDamaged("a page is torn", where="here"), daemon.app.store)
    # Switched on: what the settings say is looked up at most every few seconds.
    monkeypatch.setattr(daemon.app.cipher, "_wanted", lambda: True)
    daemon.app.cipher.use_key(bytes(32))
    daemon.journal.open()
    assert daemon.journal.add([JournalEntry(delivery=Delivery(key="1", agent="claude-code", event="Stop", body=WORD))])
    assert WORD not in paths.journal.read_bytes()
    daemon.journal.close()
    daemon.app.store.close()

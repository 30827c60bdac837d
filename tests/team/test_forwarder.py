"""The forwarder against the real server: the log of a machine as a queue, in one process."""

import shutil
from copy import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.paths import Paths
from holdfast.stores.sqlite import SqliteStore
from holdfast_team import core, forwarder, membership
from holdfast_team.membership import Membership, TeamFiles, TeamUnreachable, need_membership
from holdfast_team.server.database import owner_connection
from tests.team.test_privacy import a_repository

from .conftest import Joined

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Wire:
    """The server's own application in the place of the network; it can be cut."""

    def __init__(self, joined: Joined) -> None:
        self._joined, self.down, self.lose_answers = joined, False, False

    def send(
        self, method: str, path: str, content: bytes, timeout: float = 0.0, meanwhile: Any = bool
    ) -> tuple[int, bytes]:
        if self.down:
            raise TeamUnreachable("cut")
        meanwhile()
        answer = self._joined.client.request(method, path, content=content, headers=self._joined.headers)
        if self.lose_answers:
            raise TeamUnreachable("the answer was lost")
        return answer.status_code, answer.content

    def request(self, method: str, path: str, type_: Any, body: Any = None) -> Any:
        import msgspec

        return msgspec.json.decode(self.send(method, path, msgspec.json.encode(body))[1], type=type_)


class NoDaemon:
    """What the daemon would be told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def ask(self, _op: str, *, start: bool, name: str, args: Any) -> None:
        self.told.append((name, args))


class Machine:
    def __init__(self, folder: Path, joined: Joined, level: str = "facts") -> None:
        self.paths = Paths(folder / "state").prepare()
        self.project = str(a_repository(folder / "clone", "git@example.org:a/b.git"))
        self.store = SqliteStore(self.paths.database)
        self.joined, self.wire = joined, Wire(joined)
        membership = Membership(
            url="http://localhost", token="t", tenant="x", person="ann", role="admin", machine=joined.machine
        )
        TeamFiles(self.paths).save_membership(Membership(**{**_fields(membership), "level": level}))
        self.begin()

    def begin(self) -> None:
        """As after a crash: only what is on disk is known."""
        membership = TeamFiles(self.paths).membership()
        assert membership
        self.forwarder = forwarder.Forwarder(self.paths, membership)
        self.forwarder.connection, self.forwarder.daemon = self.wire, NoDaemon()  # type: ignore[assignment]

    def add(self, *keys: str, kind: str = "prompt.submitted", project: str = "", **data: Any) -> None:
        with self.store.transaction() as head:
            self.store.append([
                Event(key=key, kind=kind, at=n, session="s", project=project or self.project, data=data, seq=head + n)
                for n, key in enumerate(keys, 1)
            ])  # fmt: skip

    def forward(self) -> str:
        self.forwarder.state = core.after_answer(
            self.forwarder.state, -1, 0, False
        )  # without the pause after a failure
        while self.forwarder.step():
            pass
        return self.forwarder.status.state

    def stored(self, url: str) -> list[str]:
        with owner_connection(url) as db:
            rows = db.execute("select key from events where machine = %s order by stream, seq", (self.joined.machine,))
            return [row["key"] for row in rows]


def _fields(membership: Membership) -> dict[str, Any]:
    return {name: getattr(membership, name) for name in membership.__struct_fields__}


@pytest.fixture
def machine(ann: Joined, tmp_path: Path) -> Machine:
    return Machine(tmp_path, ann)


def keys(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{n:06}" for n in range(count)]


def test_a_log_longer_than_a_batch_arrives_whole_and_in_order(team_url: str, machine: Machine) -> None:
    machine.add(*keys("a", 1200))
    assert machine.forward() == "current"
    assert machine.stored(team_url) == keys("a", 1200)
    assert [name for name, _ in machine.forwarder.daemon.told] == ["team.locate"]


def test_what_came_while_the_server_was_gone_follows_and_a_lost_answer_doubles_nothing(
    team_url: str, machine: Machine
) -> None:
    machine.wire.down = True
    machine.add(*keys("a", 3))
    assert machine.forward() == "offline" and machine.forwarder.state.next_at > 0
    machine.wire.down, machine.wire.lose_answers = False, True
    assert machine.forward() == "offline"
    machine.wire.lose_answers = False
    machine.begin()
    machine.add(*keys("b", 2))
    assert machine.forward() == "current"
    assert machine.stored(team_url) == [*keys("a", 3), *keys("b", 2)]


def test_a_log_restored_from_a_backup_goes_on_without_a_loss(team_url: str, machine: Machine) -> None:
    machine.add(*keys("a", 4))
    machine.wire.lose_answers = True
    machine.forward()
    machine.store.close()
    machine.paths.database.unlink()
    machine.store = SqliteStore(machine.paths.database)
    machine.add(*keys("a", 2), *keys("new", 4))
    machine.wire.lose_answers = False
    machine.begin()
    assert machine.forward() == "current"
    assert machine.stored(team_url) == [*keys("a", 4), *keys("new", 4)]
    assert machine.forwarder.state.stream == 2


def test_a_machine_whose_whole_state_folder_came_back_from_a_snapshot_loses_nothing(
    team_url: str, machine: Machine
) -> None:
    """Its log and all that it remembers of it are older: numbers are used again, and it does not know it."""
    machine.add(*keys("a", 3))
    machine.forward()
    snapshot = machine.paths.state.with_name("snapshot")
    machine.store.close()
    shutil.copytree(machine.paths.state, snapshot)
    machine.store = SqliteStore(machine.paths.database)
    machine.add(*keys("lost", 5))
    machine.forward()
    machine.store.close()
    shutil.rmtree(machine.paths.state)
    snapshot.rename(machine.paths.state)
    machine.store = SqliteStore(machine.paths.database)
    machine.add(*keys("new", 2))
    machine.begin()
    assert machine.forward() == "current"
    machine.add(*keys("more", 4))
    assert machine.forward() == "current" and machine.forwarder.state.stream == 2
    assert machine.stored(team_url) == [*keys("a", 3), *keys("lost", 5), *keys("new", 2), *keys("more", 4)]


def test_a_copied_state_folder_is_found_and_stops_until_a_person_joins_it_anew(
    team_url: str, machine: Machine, tmp_path: Path
) -> None:
    machine.add(*keys("a", 2))
    machine.forward()
    machine.store.close()
    shutil.copytree(machine.paths.state, tmp_path / "twin" / "state")
    machine.store = SqliteStore(machine.paths.database)
    twin = copy(machine)
    twin.paths = Paths(tmp_path / "twin" / "state")
    twin.store = SqliteStore(twin.paths.database)
    twin.begin()
    machine.add(*keys("here", 3))
    twin.add(*keys("there", 2))
    assert (machine.forward(), twin.forward()) == ("current", "current"), "the copy goes on as the newer one"
    machine.add(*keys("late", 1))
    assert machine.forward() == "copied" and "state folder was copied" in machine.forwarder.status.error
    machine.begin()
    assert machine.forward() == "copied", "a new process does not take turns either"
    twin.add(*keys("on", 1))
    assert twin.forward() == "current"
    assert machine.stored(team_url) == [*keys("a", 2), *keys("here", 3), *keys("there", 2), *keys("on", 1)]


def test_the_keys_by_which_the_server_knows_the_log_are_not_taken_for_secrets(team_url: str, machine: Machine) -> None:
    """A key of a derived event is long and random: under such a name redaction would remove it."""
    key = "01a1e7e77571d926120e777e173296d8/decision"
    machine.add(key)
    assert machine.forward() == "current" and machine.stored(team_url) == [key]
    with owner_connection(team_url) as db:
        row = db.execute("select cursor_key from machines where machine = %s", (machine.joined.machine,)).fetchone()
    assert row and row["cursor_key"] == key


def test_an_event_that_the_server_will_not_take_is_left_out_and_counted(
    team_url: str, machine: Machine, monkeypatch
) -> None:
    real = machine.wire.send

    def refuse_one(method: str, path: str, content: bytes, **more: Any) -> tuple[int, bytes]:
        import zlib

        return (422, b"{}") if b',"key":"poison"' in zlib.decompress(content) else real(method, path, content, **more)

    monkeypatch.setattr(machine.wire, "send", refuse_one)
    machine.add(*keys("a", 5), "poison", *keys("b", 5))
    assert machine.forward() == "current"
    assert machine.stored(team_url) == [*keys("a", 5), *keys("b", 5)] and machine.forwarder.status.skipped == 1


def test_secrets_are_removed_again_and_what_left_is_on_record_word_for_word(
    team_url: str, ann: Joined, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, ann, "full")
    machine.add("a", prompt=f"use {SECRET} and be kind")
    machine.forward()
    [event] = [event for batch in machine.forwarder.sent_log.batches() for event in batch.events]
    assert SECRET not in event.data["prompt"] and "be kind" in event.data["prompt"]
    with owner_connection(team_url) as db:
        row = db.execute("select data from events where machine = %s", (ann.machine,)).fetchone()
    assert row and row["data"] == event.data


def test_a_project_of_level_none_and_a_folder_without_an_identity_send_nothing(
    team_url: str, machine: Machine, tmp_path: Path
) -> None:
    machine.add("outside", project=str(tmp_path))
    machine.forwarder.membership.levels = {machine.project: "none"}
    machine.add("private")
    assert machine.forward() == "current" and machine.stored(team_url) == []
    assert machine.forwarder.status.not_shared == {str(tmp_path): "it is not in a git repository"}


def test_a_revoked_machine_stops_and_the_daemon_is_told(ann: Joined, machine: Machine) -> None:
    ann.ask("POST", "/v1/leave")
    machine.add("a")
    assert machine.forward() == "revoked"
    assert machine.forwarder.daemon.told[-1] == ("team.receive", {"items": [{"id": 0, "kind": "revoked"}]})


def test_a_token_is_replaced_after_a_week_and_a_lost_answer_locks_nobody_out(
    ann: Joined, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = TeamFiles(machine.paths)
    wire = RotatingWire(ann)
    monkeypatch.setattr(membership, "connect_team", wire.connect)
    started = Membership(**{**_fields(need_membership(machine.paths)), "token": wire.token(), "joined_at": 1})
    files.save_membership(started)
    machine.begin()
    machine.add("a")
    wire.lose_answers = True
    assert machine.forward() == "offline"
    kept = need_membership(machine.paths)
    assert kept.token == started.token and kept.next_token, "what the server may know already is on disk"
    ann.ask("GET", "/v1/cursor")
    wire.lose_answers = False
    monkeypatch.setattr(forwarder, "BEAT_S", 0.0)
    machine.begin()
    machine.forward()
    now = need_membership(machine.paths)
    assert (now.token, now.next_token) == (kept.next_token, "") and now.rotated_at > 1
    ann.headers = {"authorization": f"Bearer {now.token}"}
    ann.ask("GET", "/v1/cursor")
    ann.headers = {"authorization": f"Bearer {started.token}"}
    ann.ask("GET", "/v1/cursor", status=401)


class RotatingWire(Wire):
    """Also for the connection that rotates."""

    def token(self) -> str:
        return self._joined.headers["authorization"].removeprefix("Bearer ")

    def connect(self, _membership: Membership) -> "RotatingWire":
        return self


def test_a_server_that_came_back_from_an_older_backup_gets_again_what_it_lost(
    team_url: str, machine: Machine, monkeypatch
) -> None:
    machine.add(*keys("a", 5))
    machine.forward()
    with owner_connection(team_url) as db:
        db.execute("delete from events where machine = %s and seq > 2", (machine.joined.machine,))
        db.execute("update machines set cursor = 2 where machine = %s", (machine.joined.machine,))
    monkeypatch.setattr(forwarder, "BEAT_S", 0.0)
    machine.forwarder.step()
    machine.forwarder.step()
    assert machine.stored(team_url) == keys("a", 5)


def test_what_is_erased_while_the_server_is_gone_is_forgotten_when_it_is_back(
    team_url: str, ann: Joined, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, ann, "full")
    machine.add("kept", prompt="harmless")
    machine.add("erased", prompt="the embarrassing words")
    machine.forward()
    machine.wire.down = True
    with machine.store.transaction():
        machine.store.rewrite(
            [b"the embarrassing words"], lambda content: content.replace(b"embarrassing", b"[erased]")
        )
    machine.add("done", kind="erase.finished")
    assert machine.forward() == "offline"
    machine.wire.down = False
    machine.begin()
    assert machine.forward() == "current"
    assert machine.stored(team_url) == ["kept"]
    left = [event.key for batch in machine.forwarder.sent_log.batches() for event in batch.events]
    assert left == ["kept"] and (machine.paths.state / "team" / "receipts.jsonl").exists()


def test_a_viewer_shares_nothing_and_is_not_refused_again_and_again(machine: Machine) -> None:
    machine.forwarder.membership = msgspec.structs.replace(machine.forwarder.membership, role="viewer")
    machine.wire.down = True
    machine.add(*keys("a", 3))
    assert machine.forward() == "viewing" and machine.forwarder.state.failures == 0


def test_a_refusal_is_said_in_the_servers_words(machine: Machine, ann: Joined) -> None:
    machine.joined.headers = ann.invite("low", "viewer").headers
    machine.add(*keys("a", 1))
    assert machine.forward() == "refused"
    assert "needs the role member; you are viewer" in machine.forwarder.status.error
    assert "{" not in machine.forwarder.status.error


def test_a_crash_in_the_middle_of_catching_up_sends_nothing_twice_into_the_team(
    team_url: str, machine: Machine
) -> None:
    """While more follows, the answer is not on disk yet: the server says again how much it has."""
    machine.add(*keys("a", 1200))
    assert machine.forwarder.step()
    acknowledged = machine.forwarder.state.cursor
    machine.begin()
    assert machine.forwarder.state.cursor < acknowledged
    assert machine.forward() == "current"
    assert machine.stored(team_url) == keys("a", 1200)


def test_nothing_is_asked_of_the_log_until_something_was_written_to_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the hooks, for as long as the machine runs: a look at a file's time is all that an idle forwarder costs."""
    monkeypatch.setattr(forwarder, "SAME_TICK_S", -1.0)
    machine.add("a")
    assert machine.forwarder.has_news() and machine.forward() == "current"
    machine.forwarder.has_news()
    assert not machine.forwarder.has_news()
    machine.add("b")
    assert machine.forwarder.has_news() and machine.forward() == "current"
    assert [event.key for batch in machine.forwarder.sent_log.batches() for event in batch.events] == ["a", "b"]
    machine.forwarder.has_news()
    monkeypatch.setattr(forwarder, "BEAT_S", 0.0)
    assert machine.forwarder.has_news(), "its sign of life is due"


def test_what_could_not_be_sent_is_news_until_it_was_and_a_dead_server_is_not_looked_after_all_the_time(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "SAME_TICK_S", -1.0)
    machine.add("a")
    machine.wire.down = True
    machine.forward()
    for _ in range(10):
        machine.forwarder.note_failure("offline", "cut")
    assert machine.forwarder.rest_s() == forwarder.LONGEST_REST_S
    assert machine.forwarder.has_news() and machine.forwarder.has_news()
    machine.wire.down = False
    assert machine.forward() == "current"
    machine.forwarder.has_news()
    assert not machine.forwarder.has_news() and machine.forwarder.rest_s() == forwarder.LOOK_S


def test_a_log_without_a_file_is_looked_into_every_time(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies on a server: nothing here tells when it changed."""
    machine.add("a")
    assert machine.forward() == "current"
    monkeypatch.setattr(machine.forwarder, "_signature", lambda: (0, 0, 0))
    assert machine.forwarder.has_news() and machine.forwarder.has_news()


def test_who_may_no_longer_send_has_forgotten_what_is_erased_here(team_url: str, ann: Joined, tmp_path: Path) -> None:
    machine = Machine(tmp_path, ann.invite("ben"), "full")
    machine.add("erased", prompt="words")
    machine.forward()
    ann.invite("ben", "viewer")
    with machine.store.transaction():
        machine.store.rewrite([b"words"], lambda content: content.replace(b"words", b"[erased]"))
    machine.add("done", kind="erase.finished")
    assert machine.forward() == "refused"
    assert machine.stored(team_url) == []

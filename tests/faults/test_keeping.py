"""The keeper, alone with a store that misbehaves: one bad event, a refusing store, damage that cannot be mended."""

from pathlib import Path

import pytest

from holdfast.core.decision import Delivery
from holdfast.core.errors import StoreDamaged, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.ports import EventQuery
from holdfast.daemon import repair
from holdfast.daemon.ingest.high_water import HighWaterMark, remove_high_water_mark
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.ingest.store_guard import StoreGuard
from holdfast.paths import Paths
from holdfast.stores import backup
from holdfast.stores.sqlite import SqliteStore
from tests.factories import a_counter, a_delivery, an_engine, an_event, events

SECRET = "ghp_" + "a8Kd92LmQz7XvB4nTc1RyW6pHs5JfG0eUiOq"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "state").prepare()


@pytest.fixture
def store(paths: Paths):
    store = SqliteStore(paths.database)
    yield store
    store.close()


def found(store: SqliteStore) -> list[Event]:
    reader = store.reader()
    try:
        return reader.events(EventQuery(limit=10_000, bodies=True))
    finally:
        reader.close()


def poisonous(delivery: Delivery) -> Event:
    if delivery.body.startswith(b"poison"):
        raise ValueError("\udcff cannot be read")
    return an_event(key=delivery.key)


def test_a_poisonous_event_is_kept_apart_and_the_others_as_they_are(paths: Paths, store: SqliteStore) -> None:
    """Its body is cut and redacted like any other, although nobody could read it."""
    engine = an_engine(store, a_counter(), read=poisonous)
    store_guard = StoreGuard(lambda: engine, Log(paths.log_file), lambda _error: False)
    bad = a_delivery(key="bad", body=f"poison token={SECRET} ".encode() + b"x" * 600_000)
    outcomes = store_guard.commit([a_delivery(key="one"), bad, a_delivery(key="two")])
    assert outcomes is not None
    assert all(o.seq for o in outcomes)
    kinds = {e.key: e.kind for e in found(store)}
    assert kinds == {"one": "tool.finished", "bad": "unknown", "two": "tool.finished"}
    kept = next(e for e in found(store) if e.key == "bad")
    assert SECRET.encode() not in kept.body
    assert len(kept.body) <= 256 * 1024
    assert kept.body_size == len(bad.body)


def test_a_store_that_refuses_keeps_everything_for_later(paths: Paths, store: SqliteStore) -> None:
    engine = an_engine(store)
    store_guard = StoreGuard(lambda: engine, Log(paths.log_file), lambda _error: False)
    real, engine.handle = engine.handle, _raising(StoreUnavailable("no space"))
    assert store_guard.commit([a_delivery(key="held")]) is None
    assert store_guard.refusing
    engine.handle = real
    store_guard.retry_buffered()
    assert [e.key for e in found(store)] == ["held"]
    assert not store_guard.refusing


def test_damage_that_cannot_be_mended_is_a_refusal_not_the_end(paths: Paths, store: SqliteStore) -> None:
    """Also when it shows only in the second try."""
    for mends in (False, True):
        engine = an_engine(store)
        engine.handle = _raising(StoreDamaged("malformed"))
        store_guard = StoreGuard(lambda engine=engine: engine, Log(paths.log_file), lambda _error, mends=mends: mends)
        assert store_guard.commit([a_delivery()]) is None


def _raising(error: Exception):
    def handle(*_args, **_more):
        raise error

    return handle


def test_the_log_of_the_daemon_takes_any_text(paths: Paths) -> None:
    log = Log(paths.log_file)
    log("odd", text="\udcff", number=2**100, thing=object())
    log.error("odd", ValueError("\udcff"))
    assert len(paths.log_file.read_bytes().splitlines()) == 2


def damaged(paths: Paths) -> None:
    store = SqliteStore(paths.database)
    an_engine(store).handle(events(50))
    backup.write_backup(paths.database, paths.backups)
    an_engine(store).handle(events(30, body=b"x" * 2000))
    store.close()
    with paths.database.open("r+b") as file:
        file.seek(0)
        file.write(b"\xde\xad" * 2048)


def test_mending_that_fails_leaves_everything_as_it_was(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged(paths)
    before = paths.database.read_bytes()

    def full(*_args) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(StoreUnavailable):
        repair.build_replacement(paths.database, paths, [a_counter()], 80, 1)
    assert paths.database.read_bytes() == before


def test_mending_that_was_cut_off_between_two_renames_is_finished(paths: Paths) -> None:
    """Else the next start would find no database and begin an empty one."""
    damaged(paths)
    repair.build_replacement(paths.database, paths, [a_counter()], 80, 1)
    paths.database.unlink()
    repair.check_head(paths.database, paths, 80)
    store = SqliteStore(paths.database)
    told = found(store)[-1]
    assert told.kind == "store.restored"
    assert (told.data["backup_head"], told.data["lost"], told.seq) == (50, 30, 81)
    store.close()


def test_a_log_that_ends_too_early_is_damage(paths: Paths) -> None:
    store = SqliteStore(paths.database)
    an_engine(store).handle(events(5))
    store.close()
    high_water_mark = HighWaterMark(paths.database)
    high_water_mark.saw(7)
    with pytest.raises(StoreDamaged):
        repair.check_head(paths.database, paths, HighWaterMark(paths.database).head)
    remove_high_water_mark(paths.database)
    repair.check_head(paths.database, paths, HighWaterMark(paths.database).head)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 30, b"9" * 40, b"-5\n"])
def test_a_witness_that_cannot_be_read_says_nothing(paths: Paths, content: bytes) -> None:
    paths.database.with_suffix(".head").write_bytes(content)
    assert HighWaterMark(paths.database).head == 0

"""What only SQLite does: one file, its modes and settings, migrations, and what a full disk or a damaged page does."""

import os
import shutil
import stat
import time
from pathlib import Path

import apsw
import pytest

from holdfast.core.errors import SchemaTooNew, StoreDamaged, StoreUnavailable
from holdfast.core.ports import EventQuery, Reader, StateQuery
from holdfast.paths import Paths, remove_partials
from holdfast.stores import backup, checkpointer, migrations
from holdfast.stores.rows import select_events
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite_connection import for_reading
from holdfast.stores.sqlite_reader import SqliteReader
from tests.factories import an_engine, an_event, counted, events

NEXT = migrations.newest_version() + 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "holdfast.db"


@pytest.fixture
def store(path: Path):
    store = SqliteStore(path)
    yield store
    store.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def log_of(path: Path) -> list[str]:
    reader = SqliteReader(path)
    try:
        return [event.key for event in reader.replay()]
    finally:
        reader.close()


# ---- the file


def test_a_commit_is_on_disk_before_it_returns(store: SqliteStore):
    assert store._db.pragma("journal_mode") == "wal"
    assert store._db.pragma("synchronous") == 2  # full
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_only_the_owner_reads_the_files(path: Path, store: SqliteStore):
    an_engine(store).handle([an_event()])
    assert {name.name: mode(name) for name in path.parent.iterdir()} == dict.fromkeys(
        ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm"), 0o600
    )
    assert mode(path.parent) == 0o700


def test_a_symlink_is_not_followed(tmp_path: Path):
    (tmp_path / "link.db").symlink_to(tmp_path / "target.db")
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path / "link.db")
    assert not (tmp_path / "target.db").exists()


def test_a_reader_cannot_write(path: Path, store: SqliteStore):
    reader = SqliteReader(path)
    with pytest.raises(apsw.ReadOnlyError):
        reader._db.execute("delete from events")
    reader.close()


def test_a_reader_does_not_make_a_database(tmp_path: Path):
    with pytest.raises(StoreUnavailable):
        SqliteReader(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


# ---- migrations


def test_a_newer_schema_is_refused_and_left_alone(path: Path, store: SqliteStore):
    an_engine(store).handle([an_event()])
    store._db.pragma("user_version", 99)
    store.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="schema 99"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_migration_is_applied_once_after_a_backup(path: Path, store: SqliteStore, tmp_path: Path, monkeypatch):
    an_engine(store).handle([an_event(key="old")])
    store.close()
    more = [*migrations.load_migrations(), (NEXT, "create table extra (x)")]
    monkeypatch.setattr(migrations, "load_migrations", lambda: more)
    for _ in range(2):
        migrated = SqliteStore(path, backups=tmp_path / "backups")
        assert migrated._db.execute("select count(*) from extra").get == 0
        migrated.close()
    (copy,) = backup.list_backups(tmp_path / "backups")
    assert f"before-migration-{NEXT}" in copy.name
    assert log_of(copy) == ["old"]


def test_a_failing_migration_changes_nothing(path: Path, store: SqliteStore, monkeypatch):
    store.close()
    more = [*migrations.load_migrations(), (NEXT, "create table extra (x); insert into nowhere values (1)")]
    monkeypatch.setattr(migrations, "load_migrations", lambda: more)
    with pytest.raises(apsw.SQLError):
        SqliteStore(path)
    db = for_reading(path)
    assert db.pragma("user_version") == NEXT - 1
    assert db.execute("select count(*) from sqlite_schema where name = 'extra'").get == 0


# ---- backups


def test_a_backup_is_whole_checked_and_private(path: Path, store: SqliteStore, tmp_path: Path):
    batch = events(50, body=b"b" * 5000)
    an_engine(store).handle(batch)
    copy = backup.write_backup(path, tmp_path / "backups")
    assert log_of(copy) == [e.key for e in batch]
    assert (mode(copy), mode(copy.parent)) == (0o600, 0o700)
    assert [p.name for p in copy.parent.iterdir()] == [copy.name]


def test_a_restore_that_was_cut_off_leaves_nothing_after_the_next_start(
    path: Path, store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copy = backup.write_backup(path, tmp_path / "backups")
    restored = tmp_path / "other" / "holdfast.db"
    restored.parent.mkdir()

    def cut_off(_path: Path) -> None:
        raise OSError

    monkeypatch.setattr(backup, "sync_path", cut_off)
    with pytest.raises(OSError):
        backup.put_back(copy, restored)
    assert list(restored.parent.iterdir())
    assert remove_partials(Paths(restored.parent)) == 1
    assert list(restored.parent.iterdir()) == []


def test_a_backup_ends_although_the_daemon_goes_on_writing(path: Path, store: SqliteStore, tmp_path: Path, monkeypatch):
    engine = an_engine(store)
    engine.handle(events(50, body=b"b" * 20_000))
    reading = for_reading(path)

    class Busy:
        """One page a step, and a commit between any two of them."""

        def __init__(self, copy: apsw.Backup) -> None:
            self._copy = copy

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._copy.finish()

        @property
        def done(self) -> bool:
            return self._copy.done

        def step(self, _pages: int) -> None:
            self._copy.step(20)
            engine.handle([an_event()])
            assert reading.execute("select count(*) from events").get < 500, "the copy began again and again"

    class Connection(apsw.Connection):
        def backup(self, *args):
            return Busy(super().backup(*args))

    monkeypatch.setattr(backup.apsw, "Connection", Connection)
    assert len(log_of(backup.write_backup(path, tmp_path / "backups"))) == 50


def test_the_newest_seven_are_kept(path: Path, store: SqliteStore, tmp_path: Path):
    made = []
    for n in range(9):
        an_engine(store).handle([an_event(key=f"key-{n}")])
        made.append(backup.write_backup(path, tmp_path / "backups"))
    assert backup.list_backups(tmp_path / "backups") == made[:1:-1]


def test_a_half_made_backup_is_never_listed(path: Path, store: SqliteStore, tmp_path: Path, monkeypatch):
    def damaged(_path: Path) -> None:
        raise StoreDamaged("no")

    monkeypatch.setattr(backup, "check_database", damaged)
    with pytest.raises(StoreDamaged):
        backup.write_backup(path, tmp_path / "backups")
    assert backup.list_backups(tmp_path / "backups") == []


# ---- damage (P7)


def damage(path: Path, start: int = 4096, count: int = 4096 * 20) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xde\xad" * (count // 2))


def test_a_damaged_file_is_said_to_be_damaged(path: Path, store: SqliteStore):
    an_engine(store).handle(events(100, body=b"x" * 2000))
    store.close()
    damage(path)
    with pytest.raises(StoreDamaged):
        backup.check_database(path)
    with pytest.raises(StoreDamaged):
        an_engine(SqliteStore(path)).handle(events(5))
    for read in (
        SqliteReader.head,
        SqliteReader.counts,
        SqliteReader.jobs,
        lambda reader: list(reader.replay()),
        lambda reader: reader.state(counted()),
    ):
        with pytest.raises(StoreDamaged):
            read(SqliteReader(path))


def test_something_else_is_not_taken_for_a_database(path: Path):
    path.parent.mkdir()
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(StoreDamaged):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"Dear diary")


def test_quarantine_keeps_every_byte(path: Path, store: SqliteStore, tmp_path: Path):
    an_engine(store).handle(events(10))
    was = {name.name: name.read_bytes() for name in path.parent.iterdir()}
    place = backup.quarantine_database(path, tmp_path / "quarantine")
    assert {name.name: name.read_bytes() for name in place.iterdir()} == was
    assert list(path.parent.iterdir()) == []
    assert mode(place) == 0o700


def test_the_newest_backup_that_is_whole_is_restored(path: Path, store: SqliteStore, tmp_path: Path):
    engine, folder = an_engine(store), tmp_path / "backups"
    engine.handle([an_event(key="first")])
    good = backup.write_backup(path, folder)
    engine.handle(events(100, body=b"x" * 2000))
    damage(backup.write_backup(path, folder))
    store.close()
    backup.quarantine_database(path, tmp_path / "quarantine")
    assert backup.restore_backup(folder, path) == good
    assert log_of(path) == ["first"]
    assert mode(path) == 0o600


def test_without_a_whole_backup_nothing_is_restored(path: Path, tmp_path: Path):
    assert backup.restore_backup(tmp_path / "none", path) is None
    assert not path.exists()


def test_what_can_be_read_is_salvaged_and_the_evidence_stays(path: Path, store: SqliteStore, tmp_path: Path):
    an_engine(store).handle([an_event(key=f"key-{n}", body=b"%d" % n) for n in range(1, 21)])
    (evidence := tmp_path / "quarantine").mkdir()
    for name in (path, Path(f"{path}-wal")):  # as a kill leaves them: the events are still in the write-ahead log
        shutil.copy(name, evidence)
    was = {name.name: name.read_bytes() for name in evidence.iterdir()}
    assert [row[1] for row in backup.salvage_events(evidence / path.name, after=15)] == [
        f"key-{n}" for n in range(16, 21)
    ]
    assert {name: (evidence / name).read_bytes() for name in was} == was


def test_salvage_steps_over_what_is_broken(path: Path, store: SqliteStore, tmp_path: Path):
    an_engine(store).handle(events(300, body=b"x" * 3000))
    store.close()
    torn = shutil.copy(path, tmp_path / "torn.db")
    damage(Path(torn), start=path.stat().st_size // 8192 * 4096, count=4096 * 20)  # whole pages
    rows = list(backup.salvage_events(Path(torn), after=0))
    assert 0 < len(rows) < 300
    assert all(row[-1] == b"x" * 3000 for row in rows)


# ---- a full disk


def test_a_full_disk_loses_nothing_acknowledged_and_ends(path: Path, store: SqliteStore):
    engine = an_engine(store)
    engine.handle(events(3))
    store._db.pragma("max_page_count", store._db.pragma("page_count"))
    with pytest.raises(StoreUnavailable):
        engine.handle(events(3, body=b"x" * 100_000, session="ghost"))
    store._db.pragma("max_page_count", 1_000_000)
    assert [o.seq for o in engine.handle(events(2, session="ghost"))] == [4, 5]
    reader = store.reader()
    assert (reader.state(counted("ghost")) or {})["n"] == 2
    reader.close()


# ---- growth (P11)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory):
    store = SqliteStore(tmp_path_factory.mktemp("grown") / "holdfast.db")
    engine = an_engine(store)
    for start in range(0, 20_000, 500):
        engine.handle([an_event(session=f"s-{n % 97}", project=f"/p{n % 7}") for n in range(start, start + 500)])
    reader = store.reader()
    yield reader
    reader.close()
    store.close()


@pytest.mark.parametrize(
    ("query", "step"),
    [
        (EventQuery(newest=True), "SCAN e"),  # the whole log backwards, ended by the limit
        (EventQuery(after=10_000), "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)"),
        (EventQuery(session="s-5", newest=True), "SEARCH e USING INDEX events_by_session (session=?)"),
        (
            EventQuery(session="s-5", before=9_000, newest=True),
            "SEARCH e USING INDEX events_by_session (session=? AND rowid<?)",
        ),
        (
            EventQuery(project="/p5", after=9_000, bodies=True),
            "SEARCH e USING INDEX events_by_project (project=? AND rowid>?)",
        ),
    ],
)
def test_a_page_is_read_along_an_index(grown: SqliteReader, query: EventQuery, step: str):
    wanted = select_events(query, grown._id_of)
    assert wanted
    plan = [row[3] for row in grown._db.execute(f"explain query plan {wanted[0]}", wanted[1])]
    assert plan[0] == step
    assert not any("TEMP B-TREE" in line for line in plan)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (StateQuery(kind="count"), "states_by_time"),
        (StateQuery(kind="count", before=(1, "s-1")), "states_by_time"),
        (StateQuery(kind="count", project="/p5"), "states_by_project"),
        (StateQuery(kind="count", status="odd"), "states_by_status"),
    ],
)
def test_a_list_is_read_along_an_index(grown: SqliteReader, query: StateQuery, index: str):
    asked = []
    grown._db.exec_trace = lambda _cursor, sql, values: asked.append((sql, values)) or True
    grown.states(query)
    grown._db.exec_trace = None
    sql, values = asked[-1]
    plan = [row[3] for row in grown._db.execute(f"explain query plan {sql}", values)]
    assert index in plan[0]
    assert not any("TEMP B-TREE" in line for line in plan)


def test_a_reader_is_a_reader(grown: SqliteReader):
    reader: Reader = grown
    assert reader.head() == 20_000


def test_the_write_ahead_log_is_carried_over_beside_the_commits_and_stays_small(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(checkpointer, "FULL_PAGES", 500)
    store = SqliteStore(path)
    engine = an_engine(store)
    most = 0
    for _ in range(60):
        engine.handle(events(20, body=b"x" * 8_000))
        most = max(most, path.with_name(f"{path.name}-wal").stat().st_size)
        time.sleep(0.01)
    assert path.stat().st_size > 5 << 20, "the database itself grows"
    assert most < 16 << 20
    store.close()


def test_the_journal_of_a_backup_in_progress_stays(tmp_path: Path) -> None:
    """A daemon that started meanwhile removed it, and the backup failed."""
    paths = Paths(tmp_path)
    paths.backups.mkdir()
    partial = paths.backups / f".20260101T000000Z-daily.db.{os.getppid()}.partial"
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{partial}{suffix}").touch()
    assert remove_partials(paths) == 0

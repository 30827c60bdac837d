"""Each store test gets a `place`: an empty database of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.core.engine import Engine
from holdfast.core.feature import Feature
from holdfast.core.ports import Reader, Store
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite_reader import SqliteReader
from tests.factories import an_engine


class Place:
    """Where a test's events go. Everything opened through it is closed at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: list[Store | Reader] = []

    def store(self) -> Store:
        return self._kept(SqliteStore(self.path))

    def reader(self) -> Reader:
        return self._kept(SqliteReader(self.path))

    def an_engine(self, *features: Feature) -> Engine:
        return an_engine(self.store(), *features)

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def _kept(self, opened):
        self._open.append(opened)
        return opened


@pytest.fixture
def new_place(tmp_path: Path) -> Iterator[Callable[[], Place]]:
    made: list[Place] = []

    def place() -> Place:
        made.append(Place(tmp_path / str(len(made)) / "holdfast.db"))
        return made[-1]

    yield place
    for each in made:
        each.close()


@pytest.fixture
def place(new_place: Callable[[], Place]) -> Place:
    return new_place()


@pytest.fixture
def store(place: Place) -> Store:
    return place.store()


@pytest.fixture
def reader(place: Place, store: Store) -> Reader:
    return place.reader()

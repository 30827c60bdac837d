"""Each store test gets a `place`: an empty database of its own, on either engine."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.core.engine import Engine
from holdfast.core.feature import Feature
from holdfast.core.ports import Reader, Store
from holdfast.stores import open_reader, open_store
from tests.factories import an_engine

from . import server

_schemas = itertools.count(1)


class Place:
    """Where a test's events go. Everything opened through it is closed at the end."""

    def __init__(self, engine: str, url: str) -> None:
        self.engine, self.url = engine, url
        self._open: list[Store | Reader] = []

    def store(self) -> Store:
        return self._kept(open_store(self.url))

    def reader(self) -> Reader:
        return self._kept(open_reader(self.url))

    def an_engine(self, *features: Feature) -> Engine:
        return an_engine(self.store(), *features)

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def _kept(self, opened):
        self._open.append(opened)
        return opened


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with server.postgres() as url:
        yield url


@pytest.fixture
def new_schema(postgres_url: str) -> Iterator[Callable[[], str]]:
    """Makes URLs that name an unused schema; the schemas are dropped afterwards."""
    made: list[str] = []

    def url() -> str:
        made.append(f"test_{next(_schemas)}")
        return f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20search_path%3D{made[-1]}"

    yield url
    with psycopg.connect(postgres_url, autocommit=True) as db:
        for schema in made:
            db.execute(f"drop schema if exists {schema} cascade")


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Place]]:
    made: list[Place] = []

    def place() -> Place:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path}/{len(made)}/holdfast.db"
        else:
            url = request.getfixturevalue("new_schema")()
        made.append(Place(request.param, url))
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

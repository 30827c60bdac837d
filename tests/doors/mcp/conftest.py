"""A running Holdfast with one session on record."""

from collections.abc import Callable, Iterator

import pytest

from tests.doors.mcp.clients import Connected, Served, over_http, over_stdio
from tests.kit import World, wait_until

DECISION = "Always use PostgreSQL for the event store."


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("mcp"))
    made.start()
    agent = made.session()
    agent.start()
    agent.prompt(f"Please look. {DECISION}")
    agent.stop("All right, <system>done</system>.")
    wait_until(lambda: made.view("memory.listed", everywhere=True)["observations"], "the decision is remembered")
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    made = Served(world)
    yield made
    made.stop()


@pytest.fixture(params=["stdio", "http", "stdio-stateless", "http-stateless"])
def connect(request: pytest.FixtureRequest, world: World) -> Callable[[], Connected]:
    """The same tests over both transports, with a handshake and without."""
    handshake = not request.param.endswith("stateless")
    if request.param.startswith("stdio"):
        return lambda: over_stdio(world, handshake)
    served = request.getfixturevalue("served")
    return lambda: over_http(served, handshake=handshake)

"""A team server on a real PostgreSQL, and machines that joined it: one server for the whole module, tenants of their own."""

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import psycopg
import pytest
from starlette.testclient import TestClient

from holdfast_team.core import project_id
from holdfast_team.protocol import Batch, SharedEvent, SharedProject
from holdfast_team.server.app import TeamServer
from holdfast_team.server.database import migrate_database
from holdfast_team.server.run import add_tenant
from tests.team import postgres

_numbers = itertools.count(1)


class Joined:
    """A machine with its token, speaking HTTP to the server."""

    def __init__(self, client: TestClient, code: str, machine: str = "", cursor: int = 0, label: str = "") -> None:
        self.client, self.machine = client, machine or f"machine-{next(_numbers):08}"
        request = {"code": code, "machine": self.machine, "cursor": cursor, "label": label}
        answer = client.post("/v1/enrol", json=request)
        assert answer.status_code == 200, answer.text
        self.enrolled = answer.json()
        self.headers = {"authorization": f"Bearer {self.enrolled['token']}"}

    def ask(self, method: str, path: str, status: int = 200, json: Any = None, **more: Any) -> Any:
        answer = self.client.request(method, path, json=json, headers=self.headers, **more)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return answer.json()

    def send(self, after: int, upto: int, *events: SharedEvent, status: int = 200, **more: Any) -> Any:
        batch = Batch(stream=more.pop("stream", 1), after=after, upto=upto, events=events, **more)
        body = zlib.compress(msgspec.json.encode(batch))
        answer = self.client.post("/v1/batch", content=body, headers=self.headers)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json()

    def invite(self, person: str, role: str = "member") -> "Joined":
        return Joined(self.client, self.ask("POST", "/v1/codes", json={"person": person, "role": role})["code"])


PROJECT = SharedProject(id=project_id("example.org/team/app", "a" * 40), remote="example.org/team/app", root="a" * 40)


def an_event(seq: int, kind: str = "tool.finished", session: str = "s1", **data: Any) -> SharedEvent:
    return SharedEvent(
        seq=seq, key=f"k{seq}", at=1_700_000_000_000 + seq, kind=kind, session=session, project=PROJECT.id,
        agent="claude-code", data=data,
    )  # fmt: skip


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres.postgres() as url:
        yield url


@pytest.fixture(scope="module")
def team_url(postgres_url: str) -> Iterator[str]:
    schema = f"team_{next(_numbers)}"
    yield f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20search_path%3D{schema}"
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"drop schema if exists {schema} cascade")


@pytest.fixture(scope="module")
def client(team_url: str) -> Iterator[TestClient]:
    migrate_database(team_url)
    with TestClient(TeamServer(team_url, connections=3).build_app(), base_url="http://team.test") as client:
        yield client


@pytest.fixture
def new_team(team_url: str, client: TestClient) -> Callable[[], Joined]:
    """The first admin's machine of a tenant of its own."""

    def make() -> Joined:
        return Joined(client, add_tenant(team_url, f"tenant-{next(_numbers)}", "ann").code)

    return make


@pytest.fixture
def ann(new_team: Callable[[], Joined]) -> Joined:
    return new_team()

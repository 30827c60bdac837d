"""Live: what is committed is told at once, and nobody who was away misses anything."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import wait_until

from .conftest import Door

SOON_S = 0.3


class Stream:
    """A viewer: server-sent events over one connection, as a browser reads them."""

    def __init__(self, door: Door, query: str = "", **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=20)
        self._connection.request("GET", f"/api/v1/live{query}", headers={**door.as_page, **headers})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.headers.get_content_type() == "text/event-stream"

    def messages(self) -> Iterator[dict[str, str]]:
        found: dict[str, str] = {}
        while line := self._answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                found[name] = value
            elif found.keys() & {"data", "event"}:
                yield found
                found = {}

    def events(self, wanted: int) -> list[dict[str, Any]]:
        told = (json.loads(m["data"]) | {"id": int(m["id"])} for m in self.messages() if "event" not in m)
        return [next(told) for _ in range(wanted)]

    def until(self, name: str) -> str:
        return next(m["data"] for m in self.messages() if m.get("event") == name)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def watch(door: Door) -> Iterator[Any]:
    opened: list[Stream] = []

    def opener(*args: Any, **kwargs: Any) -> Stream:
        opened.append(Stream(door, *args, **kwargs))
        return opened[-1]

    yield opener
    for one in opened:
        one.close()


def test_a_commit_is_told_at_once(door: Door, watch):
    viewer = watch()
    viewer.until("begin")
    agent = door.world.session("s-1")
    took = []
    for n in range(5):
        agent.prompt(f"Prompt {n}")
        began = time.monotonic()
        while viewer.events(1)[0]["kind"] != "prompt.submitted":
            pass
        took.append(time.monotonic() - began)
    assert sorted(took)[2] < SOON_S, took


def test_who_was_away_catches_up_in_order_without_gaps(door: Door, watch):
    agent = door.world.session("s-1")
    agent.start()
    agent.prompt("One")
    before = door.world.events()
    viewer = watch("?after=0")
    told = viewer.events(len(before))
    assert [t["seq"] for t in told] == [t["id"] for t in told] == [e.seq for e in before]
    viewer.close()
    for n in range(30):
        agent.tool("Bash", command=f"echo {n}")
    missed = door.world.events(after=told[-1]["seq"])
    again = watch("?after=0", **{"Last-Event-ID": str(told[-1]["seq"])})
    assert [t["seq"] for t in again.events(len(missed))] == [e.seq for e in missed]
    agent.stop()
    assert again.events(1)[0]["seq"] == missed[-1].seq + 1


def test_only_what_is_wanted(door: Door, watch):
    mine, other = watch("?session=mine&after=0"), watch("?kinds=prompt.+turn.&after=0")
    for name in ("other", "mine"):
        agent = door.world.session(name)
        agent.start()
        agent.prompt("Go")
    assert {t["session"] for t in mine.events(2)} == {"mine"}
    assert [(t["session"], t["kind"]) for t in other.events(2)] == [
        ("other", "prompt.submitted"),
        ("mine", "prompt.submitted"),
    ]


def test_the_daemon_may_come_and_go(door: Door, watch):
    viewer = watch()
    viewer.until("begin")
    door.world.kill()
    assert viewer.until("daemon") == "gone"
    assert door.page("/")  # What is known is still shown.
    door.world.session("s-1").prompt("Still there?")  # The hook starts it again.
    kinds = set()
    for message in viewer.messages():
        kinds.add(json.loads(message["data"])["kind"] if "event" not in message else message["data"])
        if {"back", "prompt.submitted"} <= kinds:
            break


def test_a_number_from_the_future_means_another_log(door: Door, watch):
    assert int(watch("?after=999999").until("reset")) == len(door.world.events())


def test_numbers_that_are_none(door: Door, watch):
    agent = door.world.session("s-1")
    agent.start()
    for bad in ("-1", "x", "1e9", "99999999999999999999"):
        assert door.ask("GET", f"/api/v1/live?after={bad}", **door.as_page)[0] == 422, bad
    strange = watch(**{"Last-Event-ID": "nonsense"})
    assert strange.until("begin")


def test_one_wire_for_all_viewers(door: Door, watch):
    """Fifty viewers cost the daemon no more than one."""
    viewers = [watch() for _ in range(50)]
    for viewer in viewers:
        viewer.until("begin")
    door.world.session("s-1").prompt("Hello")
    assert all(viewer.events(1) for viewer in viewers)
    assert _wires(door) == 1
    for viewer in viewers:
        viewer.close()
    # Nobody looks: the wire is let go, and the daemon may end when it is idle.
    wait_until(lambda: _wires(door) == 0, "the wire is cut")


def _wires(door: Door) -> int:
    """Connections to the daemon's side door, as the kernel counts them."""
    with open(f"/proc/{door.world.pid}/net/unix", encoding="utf-8", errors="replace") as table:
        lines = [line.split() for line in table]
    name = f"control.sock.{door.world.pid}"
    return sum(1 for line in lines if len(line) == 8 and line[7] == name and line[5] == "03")

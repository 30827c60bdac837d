"""A primary that dies under load, and its streaming replica promoted: what was acknowledged is there, once."""

import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast_team.membership import TeamConnection, TeamUnreachable
from holdfast_team.protocol import Batch, Enrolled
from tests.kit import wait_until
from tests.team import postgres as server
from tests.team.conftest import PROJECT, an_event
from tests.team.processes import TeamHost, code_for

MACHINES, BATCHES, EVENTS = 3, 16, 20


class Sender(threading.Thread):
    """A machine that sends batch after batch, each until it is acknowledged; some, and more until it is told that it is enough."""

    def __init__(self, host: TeamHost, number: int, enough: threading.Event) -> None:
        super().__init__(daemon=True)
        self._enough = enough
        self.machine, self.acknowledged, self.refused = f"machine-{number:08}", 0, 0
        request = {"code": code_for(host, f"person-{number}"), "machine": self.machine}
        told = TeamConnection(host.url).request("POST", "/v1/enrol", Enrolled, request)
        self._connection = TeamConnection(host.url, told.token)

    def run(self) -> None:
        while self.acknowledged < BATCHES * EVENTS or not self._enough.is_set():
            after = self.acknowledged
            events = tuple(an_event(after + n) for n in range(1, EVENTS + 1))
            batch = Batch(stream=1, after=after, upto=after + EVENTS, events=events, projects=(PROJECT,))
            if self._send(zlib.compress(msgspec.json.encode(batch))):
                self.acknowledged += EVENTS

    def _send(self, body: bytes) -> bool:
        try:
            status, _ = self._connection.send("POST", "/v1/batch", body)
        except TeamUnreachable:
            status = 0
        # 429 is a machine that was too quick, whoever is the primary.
        self.refused += status not in (200, 429)
        return status == 200


@pytest.fixture
def pair() -> Iterator[server.Pair]:
    if not server.has_programs("pg_basebackup", "pg_ctl"):
        pytest.skip("neither the wheel nor the system has pg_basebackup and pg_ctl")
    with server.replicated() as pair:
        yield pair


def test_a_promoted_replica_has_everything_that_was_acknowledged(pair: server.Pair, tmp_path: Path) -> None:
    host = TeamHost(pair.url, tmp_path)
    host.start()
    try:
        enough = threading.Event()
        senders = [Sender(host, number, enough) for number in range(MACHINES)]
        for sender in senders:
            sender.start()
        wait_until(lambda: all(sender.acknowledged >= BATCHES * EVENTS // 4 for sender in senders), "work is under way")
        pair.kill_primary()
        pair.promote_replica()
        # On a busy computer they would else be done before the primary was gone.
        enough.set()
        for sender in senders:
            sender.join(60)
        stored = {(row["machine"], row["n"], row["d"]) for row in host.rows(COUNT)}
        assert stored == {(sender.machine, sender.acknowledged, sender.acknowledged) for sender in senders}
        assert sum(sender.refused for sender in senders) > 0, "the failover was not under load"
    finally:
        host.kill()


COUNT = "select machine, count(*) as n, count(distinct seq) as d from events group by machine"

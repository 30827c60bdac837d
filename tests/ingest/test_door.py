"""Where the store is a server: what nobody decides on is answered while the writer waits for it, the rest when it is stored."""

import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.core.decision import Delivery
from holdfast.core.engine import Outcome
from holdfast.core.ids import delivery_key
from holdfast.core.ports import EventQuery
from holdfast.ingest.door import Door, WriterThread
from holdfast.ingest.frames import EMPTY_ANSWER, HEAD
from holdfast.ingest.server import HookServer, listen_on_socket
from holdfast.ingest.writer import WriterCalls
from tests.ingest.test_pipeline import ASKED, QUIET, Harness, SharedFile

PATIENCE_S = 30.0


def frame(event: str, body: bytes = b"{}") -> bytes:
    header = f"key={delivery_key()}\0agent=claude-code\0event={event}\0mode=ask\0at=1".encode()
    return HEAD.pack(b"HFQ1", len(header), len(body)) + header + body


class Stage:
    """A door and a writer on one store. `server_says` keeps the writer in its transaction until it is set."""

    def __init__(self, folder: Path) -> None:
        self.harness = Harness(folder, SharedFile)
        self.pipeline, self.path = self.harness.pipeline, folder / "hook.sock"
        self.calls, self.sends = WriterCalls(), WriterCalls()
        self.server_says, self.asked = threading.Event(), threading.Event()
        self.server_says.set()
        self.batches: list[int] = []
        append = self.harness.store.append

        def slow_append(events: Sequence[object]) -> None:
            self.asked.set()
            assert self.server_says.wait(PATIENCE_S)
            append(events)  # type: ignore[arg-type]

        self.harness.store.append = slow_append  # type: ignore[method-assign, assignment]
        door = Door(self.pipeline, self._accept, self.calls, self.sends)
        self.writer = WriterThread(
            self.calls, lambda: self.pipeline.has_pending, self.pipeline.flush, lambda: None, self.stop
        )
        self.server = HookServer(
            listen_on_socket(self.path), self._accept, self.sends, lambda: None, lambda: None, hand_over=door.take
        )
        self._thread = threading.Thread(target=self.server.serve)
        self.writer.start()
        self._thread.start()

    def _accept(self, deliveries: Sequence[Delivery]) -> list[Outcome] | None:
        self.batches.append(len(deliveries))
        return self.pipeline.accept(deliveries)

    def ask(self, event: str) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(PATIENCE_S)
        sock.connect(str(self.path))
        sock.sendall(frame(event))
        return sock

    def stop(self) -> None:
        self.server.stop()

    def end(self) -> None:
        self.server_says.set()
        self.stop()
        self._thread.join(PATIENCE_S)
        self.writer.stop()
        self.harness.store.close()

    def kinds(self) -> list[str]:
        reader = self.harness.store.reader()
        return [e.kind for e in reader.events(EventQuery(limit=1000)) if e.kind.startswith("tool.")]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.end()


def held(stage: Stage) -> None:
    stage.server_says.clear()
    stage.asked.clear()


def is_answered(sock: socket.socket) -> bool:
    return sock.recv(1024).startswith(EMPTY_ANSWER[:4])


def test_a_hook_that_nobody_decides_on_is_answered_while_the_writer_waits_for_the_server(stage: Stage) -> None:
    held(stage)
    decided = stage.ask(ASKED)
    assert stage.asked.wait(PATIENCE_S)
    for _ in range(3):
        assert is_answered(stage.ask(QUIET))
    assert stage.kinds() == []
    assert len(stage.pipeline._journal.pending_entries()) == 3
    stage.server_says.set()
    assert is_answered(decided)
    stage.calls.call(lambda: None, PATIENCE_S)
    assert sorted(stage.kinds()) == ["tool.finished"] * 3 + ["tool.started"]
    assert stage.pipeline._journal._at == 0, "the server has all of it"


def test_hooks_that_are_decided_on_share_the_next_way_to_the_server(stage: Stage) -> None:
    held(stage)
    first = stage.ask(ASKED)
    assert stage.asked.wait(PATIENCE_S)
    others = [stage.ask(ASKED) for _ in range(4)]
    # A quiet one comes behind them and is answered: then they are all in the writer's hands.
    assert is_answered(stage.ask(QUIET))
    stage.server_says.set()
    assert all(map(is_answered, (first, *others)))
    assert stage.batches == [1, 4]


def test_a_daemon_that_stops_answers_those_whom_it_has_taken_in(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    held(stage)
    decided, quiet = stage.ask(ASKED), stage.ask(QUIET)
    assert stage.asked.wait(PATIENCE_S) and is_answered(quiet)
    stage.stop()
    stage.server_says.set()
    assert is_answered(decided)
    stage.end()


def test_what_fails_in_the_writer_ends_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path)

    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr(stage.writer, "_flush", fail)
    assert is_answered(stage.ask(QUIET))
    stage._thread.join(PATIENCE_S)
    assert not stage._thread.is_alive()
    with pytest.raises(MemoryError):
        stage.writer.stop()
    stage.harness.crash()
    stage.harness.check(1)
    stage.harness.store.close()

"""The hook server: one thread reads all ready frames, commits them together, then answers."""

import _socket
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from holdfast.core.caller import ProcessChains
from holdfast.core.decision import Delivery
from holdfast.core.engine import Outcome
from holdfast.daemon.ingest.frames import (
    LARGE_FRAME,
    BadFrame,
    LargeFrame,
    answer_frame,
    as_delivery,
    frame_length,
    open_large_frame,
)
from holdfast.daemon.ingest.writer import WriterCalls

# Deliveries committed together: one sync serves all of them.
LARGEST_BATCH = 256
# In bytes: most frames fit into the first read; a large one is read in pieces up to the second.
FIRST_READ, MOST_READ = 64 * 1024, 1024 * 1024
# Per frame: a client that sends byte by byte must not make us keep each byte separately.
MOST_CHUNKS = 64
BACKLOG = 1024
# The highest descriptor that `select` can watch.
HIGHEST_SELECTED = 1024
# A client that connects and never sends must not hold a descriptor for ever.
LONGEST_CONNECTION_S = 30.0
TICK_S = 1.0
LINGER_S = 0.0002
"""Pause between an answer and the work after it: the client may have been woken on our processor and would wait there.
Kept short, because the work must be done before the next question."""
IDLE_S = 0.001
"""After this long without hooks, deferred work runs."""
REMEMBERED_TIMES = 2_000

CONFIRMED = b"+"
CONFIRM_AT_END_S = 0.5
"""How long a stopping daemon waits for the last answers to be confirmed."""

Handle = Callable[[Sequence[Delivery]], list[Outcome] | None]
"""None if nothing could be stored: the connections close without an answer and the hooks spool."""
Asked = tuple["Connection", Delivery]

TakeAside = Callable[[_socket.socket, Delivery], None]
"""Takes over the connection and closes it."""

# pid, uid and gid, as from SO_PEERCRED.
_CREDENTIALS = struct.Struct("3i")
_OWNER = os.geteuid()


class Connection:
    __slots__ = ("born", "chunks", "confirms", "large", "out", "outcome", "peer", "received", "sock", "wanted")

    def __init__(self, sock: _socket.socket, peer: int) -> None:
        self.sock, self.born, self.peer = sock, time.monotonic(), peer
        self.chunks: list[bytes] = []
        """The received parts of a frame."""
        self.received = self.wanted = 0
        self.large: LargeFrame | None = None
        """Receives the rest of a frame of many megabytes."""
        self.out = b""
        self.confirms = False
        self.outcome: Outcome | None = None
        """The answer given here, until the client confirms that it wrote it."""


class HookServer:
    def __init__(
        self,
        listening: socket.socket,
        handle: Handle,
        calls: WriterCalls,
        flush: Callable[[], None],
        tick: Callable[[], None],
        aside: Mapping[str, TakeAside] = MappingProxyType({}),
        undelivered: Callable[[Outcome], None] = lambda _outcome: None,
        hold: Callable[[_socket.socket, Delivery], bool] = lambda _sock, _delivery: False,
    ) -> None:
        self._listening, self._handle, self._calls, self._aside = listening, handle, calls, aside
        self._undelivered, self._flush, self._tick, self._hold = undelivered, flush, tick, hold
        self._listening_fd = listening.fileno()
        self._poll = select.epoll() if hasattr(select, "epoll") else select.poll()
        # `select` accepts small descriptors only; the daemon opens this one before any connection.
        fd = self._poll.fileno() if hasattr(self._poll, "fileno") else -1
        self._poll_fd = fd if fd < HIGHEST_SELECTED else -1
        # epoll takes seconds, poll milliseconds.
        self._unit = 1.0 if hasattr(select, "epoll") else 1000.0
        self._open: dict[int, Connection] = {}
        self._ready: list[Asked] = []
        self._flush_due = False
        """Whether answers were sent whose consequences are not written yet."""
        self._callers = ProcessChains()
        self.stopping = False
        self.took: deque[float] = deque(maxlen=REMEMBERED_TIMES)
        """Seconds from connection to answer, of the latest hooks."""

    def serve(self) -> None:
        self._poll.register(self._listening.fileno(), select.POLLIN)
        self._poll.register(self._calls.fileno(), select.POLLIN)
        next_tick = 0.0
        while not self.stopping:
            if self._flush_due:
                self._linger()
                busy = self._wait(0.0)
            else:
                put_off = self._calls.has_put_off()
                busy = self._wait(IDLE_S if put_off else max(0.0, next_tick - time.monotonic()))
            self._answer_ready()
            # Nobody else is waiting, or a command waits that must see what was acknowledged.
            if self._flush_due and (not busy or self._calls.waiting()):
                self._flush_now()  # Those at the door come first; the engine sees to it that this does not wait long.
            # Commands and jobs add events too; the flush notifies their subscribers.
            if self._calls.run_waiting() or self._calls.run_put_off(idle=not busy):
                self._flush_now()
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                self._drop_overdue()
                self._tick()
                self._flush_now()
        self._close()

    def stop(self) -> None:
        """Signal handlers and other threads may call it."""
        self.stopping = True
        self._calls.wake()

    def _flush_now(self) -> None:
        self._flush_due = False
        self._flush()

    def _linger(self) -> None:
        """Wait for a connection, or a moment: epoll has no timeout below a millisecond."""
        if self._poll_fd >= 0:
            select.select((self._poll_fd,), (), (), LINGER_S)

    def _wait(self, timeout: float) -> bool:
        """Return whether anything arrived."""
        came = self._poll.poll(timeout * self._unit)
        for fd, mask in came:
            if fd == self._listening_fd:
                self._accept()
            elif fd in self._open:
                self._serve_connection(self._open[fd], mask)
        return bool(came)

    def _accept(self) -> None:
        # At most one batch; later connections are accepted in the next round.
        while len(self._ready) < LARGEST_BATCH:
            try:
                fd, _ = self._listening._accept()  # type: ignore[attr-defined]
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                time.sleep(0.01)  # Out of descriptors: those that are open must be answered first.
                return
            # The bare C type: the wrapper class in `socket` costs more than the kernel call. It stays blocking, and
            # each call passes MSG_DONTWAIT, which saves one system call.
            sock = _socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
            peer, owner = peer_of(sock)
            # Another user's process, if the folder was opened up: not even an error is sent.
            if owner == _OWNER:
                self._read(Connection(sock, peer))
            else:
                sock.close()

    def _serve_connection(self, connection: Connection, mask: int) -> None:
        if connection.out:
            self._send(connection)
        elif connection.outcome is not None:
            self._confirm(connection)
        elif mask & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        """A client sends right after it connects, so the whole frame is mostly there and nothing need be watched."""
        try:
            while True:
                # Zero until the head is read; then the rest is read in as few calls as possible.
                missing = connection.wanted - connection.received
                chunk = connection.sock.recv(max(FIRST_READ, min(missing, MOST_READ)), socket.MSG_DONTWAIT)
                if not chunk:
                    return self._drop(connection)
                if connection.large is not None:
                    connection.large.add(chunk)
                else:
                    # Kept as received: a frame in one chunk is never copied, and of many chunks each is copied once.
                    connection.chunks.append(chunk)
                    connection.received += len(chunk)
                if self._complete(connection):
                    return None
        except (BlockingIOError, InterruptedError):
            return self._watch(connection, select.POLLIN)
        except (OSError, BadFrame):
            return self._drop(connection)

    def _complete(self, connection: Connection) -> bool:
        chunks, large = connection.chunks, connection.large
        if large is not None:
            if not large.is_complete:
                return False
            delivery = large.as_delivery(self._callers.above(connection.peer))
            connection.large = None
            return self._deliver(connection, delivery)
        if not connection.wanted or len(chunks) > MOST_CHUNKS:
            chunks[:] = [b"".join(chunks)]
        connection.wanted = connection.wanted or frame_length(chunks[0][:12])
        if not connection.wanted or connection.received < connection.wanted:
            if connection.wanted > LARGE_FRAME and (large := open_large_frame(b"".join(chunks), connection.wanted)):
                connection.large, connection.chunks = large, []
            return False
        return self._deliver(connection, as_delivery(*chunks, ancestors=self._callers.above(connection.peer)))

    def _deliver(self, connection: Connection, delivery: Delivery) -> bool:
        connection.confirms = delivery.confirms
        connection.chunks = []
        if delivery.mode in self._aside:
            self._take_aside(connection, delivery)
        else:
            self._ready.append((connection, delivery))
        return True

    def _take_aside(self, connection: Connection, delivery: Delivery) -> None:
        """No event: it is answered in its own time, and no hook waits for it."""
        fd = connection.sock.fileno()
        if self._open.pop(fd, None) is not None:
            self._poll.unregister(fd)
        self._aside[delivery.mode](connection.sock, delivery)

    def _hand_over(self, connection: Connection, delivery: Delivery) -> bool:
        """Whether somebody else answers it, when a person has decided."""
        if not self._hold(connection.sock, delivery):
            return False
        fd = connection.sock.fileno()
        if self._open.pop(fd, None) is not None:
            self._poll.unregister(fd)
        return True

    def _watch(self, connection: Connection, mask: int) -> None:
        fd = connection.sock.fileno()
        if fd in self._open:
            self._poll.modify(fd, mask)
        else:
            self._open[fd] = connection
            self._poll.register(fd, mask)

    def _answer_ready(self) -> None:
        while self._ready:
            batch, self._ready = self._ready[:LARGEST_BATCH], self._ready[LARGEST_BATCH:]
            self._answer(batch, self._handle([delivery for _, delivery in batch]))

    def _answer(self, batch: Sequence[Asked], outcomes: Sequence[Outcome] | None) -> None:
        if outcomes is None:
            for connection, _ in batch:
                self._drop(connection)
            return
        self._flush_due = True
        for (connection, delivery), outcome in zip(batch, outcomes, strict=True):
            if delivery.waits and not outcome.reply and self._hand_over(connection, delivery):
                continue
            connection.out = answer_frame(outcome.reply)
            # Silent answers need no confirmation, because nothing is lost with them.
            connection.outcome = outcome if outcome.reply else None
            self._send(connection)

    def _send(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.out, socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            # The client is gone; `_drop` reports that its answer was not delivered.
            return self._drop(connection)
        connection.out = connection.out[sent:]
        if connection.out:
            return self._watch(connection, select.POLLOUT)
        self.took.append(time.monotonic() - connection.born)
        if connection.outcome is not None and connection.confirms:
            return self._watch(connection, select.POLLIN)
        connection.outcome = None
        return self._drop(connection)

    def _confirm(self, connection: Connection) -> None:
        """One byte confirms that the answer was written; a close without it means it was not."""
        try:
            if connection.sock.recv(1, socket.MSG_DONTWAIT) == CONFIRMED:
                connection.outcome = None
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        fd = connection.sock.fileno()
        # poll, unlike epoll, keeps a closed descriptor.
        if self._open.pop(fd, None) is not None and not hasattr(select, "epoll"):
            self._poll.unregister(fd)
        connection.sock.close()  # epoll forgets a descriptor when it is closed.
        lost, connection.outcome = connection.outcome, None
        if lost is not None:
            self._undelivered(lost)

    def _drop_overdue(self) -> None:
        now = time.monotonic()
        for connection in [c for c in self._open.values() if now - c.born > LONGEST_CONNECTION_S]:
            self._drop(connection)

    def _close(self) -> None:
        # Frames already read are answered before the socket closes; all other hooks spool.
        self._answer_ready()
        self._calls.run_waiting()
        self._calls.close()
        self._await_confirmations()
        for connection in list(self._open.values()):
            self._drop(connection)
        self._listening.close()

    def _await_confirmations(self) -> None:
        until = time.monotonic() + CONFIRM_AT_END_S
        while any(one.outcome for one in self._open.values()) and (left := until - time.monotonic()) > 0:
            for fd, mask in self._poll.poll(left * self._unit):
                if fd in self._open:
                    self._serve_connection(self._open[fd], mask)


def listen_on_socket(path: Path) -> socket.socket:
    """Created 0600 and already listening when its name appears. The caller holds the lease, so an old socket is dead.

    The address is relative, because a socket's name has at most 108 bytes.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The umask makes the socket 0600 from the first moment; a later chmod would leave a gap.
    before, mask = Path.cwd(), os.umask(0o177)
    try:
        os.chdir(path.parent)
        # Renamed into place, so that nobody finds a name that refuses connections.
        born = Path(f"{path.name}.{os.getpid()}")
        born.unlink(missing_ok=True)
        sock.bind(str(born))
        sock.listen(BACKLOG)
        born.replace(path.name)
    finally:
        os.umask(mask)
        os.chdir(before)
    sock.setblocking(False)
    return sock


def peer_is_owner(sock: _socket.socket) -> bool:
    """The folder is 0700 already; this holds even if somebody opened it up."""
    return peer_of(sock)[1] == _OWNER


def peer_of(sock: _socket.socket) -> tuple[int, int]:
    """Return (process, user) of the peer; (0, ourselves) if the kernel doesn't say."""
    # Without it (macOS) the folder's mode is the only guard.
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, _OWNER
    pid, user, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user

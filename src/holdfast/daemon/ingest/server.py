"""The hook side of the daemon: one thread takes all frames that are ready, commits them together, then answers."""

import _socket
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

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
# Of one frame: a client that sends byte by byte must not make us keep each of them by itself.
MOST_CHUNKS = 64
BACKLOG = 1024
# What `select` can watch.
HIGHEST_SELECTED = 1024
# A client that connects and never sends must not hold a descriptor for ever.
LONGEST_CONNECTION_S = 30.0
TICK_S = 1.0
LINGER_S = 0.0002
"""Between an answer and what follows it. Whoever was answered may have been woken on our own processor, and would wait
there until we are through with that. Not longer: what follows must be done when the next question comes."""
IDLE_S = 0.001
"""So long nobody was at the door when work is done that can wait for any moment."""
REMEMBERED_TIMES = 2_000

CONFIRMED = b"+"
CONFIRM_AT_END_S = 0.5
"""How long it is waited until the last answers of a daemon that stops are confirmed."""

Handle = Callable[[Sequence[Delivery]], list[Outcome] | None]
"""None when nothing could be stored: then the connections close without an answer and the hooks spool."""
Asked = tuple["Connection", Delivery]

SHOW = "show"
"""The mode of a client that wants to see something and tells nothing."""
Show = Callable[[_socket.socket, Delivery], None]
"""Takes the connection over, and closes it."""

# pid, uid and gid, as SO_PEERCRED gives them.
_CREDENTIALS = struct.Struct("3i")
_OWNER = os.geteuid()


class Connection:
    __slots__ = ("born", "chunks", "confirms", "large", "out", "outcome", "peer", "received", "sock", "wanted")

    def __init__(self, sock: _socket.socket, peer: int) -> None:
        self.sock, self.born, self.peer = sock, time.monotonic(), peer
        self.chunks: list[bytes] = []
        """What has come of a frame, as it was received."""
        self.received = self.wanted = 0
        self.large: LargeFrame | None = None
        """Takes in the rest of a frame of many megabytes."""
        self.out = b""
        self.confirms = False
        self.outcome: Outcome | None = None
        """The verdict that was given here, until the client has confirmed that it was written out."""


class HookServer:
    def __init__(
        self,
        listening: socket.socket,
        handle: Handle,
        calls: WriterCalls,
        flush: Callable[[], None],
        tick: Callable[[], None],
        show: Show | None = None,
        undelivered: Callable[[Outcome], None] = lambda _outcome: None,
    ) -> None:
        self._listening, self._handle, self._calls, self._show = listening, handle, calls, show
        self._undelivered, self._flush, self._tick = undelivered, flush, tick
        self._listening_fd = listening.fileno()
        self._poll = select.epoll() if hasattr(select, "epoll") else select.poll()
        # A number that `select` takes; the daemon opens it before any connection.
        fd = self._poll.fileno() if hasattr(self._poll, "fileno") else -1
        self._poll_fd = fd if fd < HIGHEST_SELECTED else -1
        # epoll takes seconds, poll milliseconds.
        self._unit = 1.0 if hasattr(select, "epoll") else 1000.0
        self._open: dict[int, Connection] = {}
        self._ready: list[Asked] = []
        self._flush_due = False
        """Whether answers have left whose consequences are not written yet."""
        self._callers = ProcessChains()
        self.stopping = False
        self.took: deque[float] = deque(maxlen=REMEMBERED_TIMES)
        """Seconds from the connection to the answer, of the last ones."""

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
            # Nobody else is at the door, or a command waits that must see what was answered.
            if self._flush_due and (not busy or self._calls.waiting()):
                self._flush_now()  # Those at the door come first; the engine sees to it that this does not wait long.
            # Commands and jobs add events too; the flush tells subscribers of them.
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
        """Until somebody comes, or for a moment: epoll knows no time shorter than a millisecond."""
        if self._poll_fd >= 0:
            select.select((self._poll_fd,), (), (), LINGER_S)

    def _wait(self, timeout: float) -> bool:
        """Whether anything came."""
        came = self._poll.poll(timeout * self._unit)
        for fd, mask in came:
            if fd == self._listening_fd:
                self._accept()
            elif fd in self._open:
                self._serve_connection(self._open[fd], mask)
        return bool(came)

    def _accept(self) -> None:
        # At most one batch: those that wait longer are accepted in the next round.
        while len(self._ready) < LARGEST_BATCH:
            try:
                fd, _ = self._listening._accept()  # type: ignore[attr-defined]
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                time.sleep(0.01)  # Out of descriptors: those that are open must be answered first.
                return
            # The bare C type: the class around it in `socket` costs more than the kernel does.
            # It stays blocking: each call says that it does not wait, which saves one call of the kernel.
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
        """A client sends right after it connects: mostly the whole frame is there and nothing need be watched."""
        try:
            while True:
                # Zero until the head is read; then the rest is asked for in as few calls as possible.
                missing = connection.wanted - connection.received
                chunk = connection.sock.recv(max(FIRST_READ, min(missing, MOST_READ)), socket.MSG_DONTWAIT)
                if not chunk:
                    return self._drop(connection)
                if connection.large is not None:
                    connection.large.add(chunk)
                else:
                    # Kept as they come: one that is the whole frame is never copied, of many each is copied once.
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
        if delivery.mode == SHOW:
            self._show_to(connection, delivery)
        else:
            self._ready.append((connection, delivery))
        return True

    def _show_to(self, connection: Connection, delivery: Delivery) -> None:
        """No event: whoever shows something answers in a time of its own, and no hook waits for it."""
        fd = connection.sock.fileno()
        if self._open.pop(fd, None) is not None:
            self._poll.unregister(fd)
        if self._show is None:
            connection.sock.close()
        else:
            self._show(connection.sock, delivery)

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
        for (connection, _), outcome in zip(batch, outcomes, strict=True):
            connection.out = answer_frame(outcome.reply)
            # Silent answers need no confirmation: nothing is lost with them.
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
        """One byte says that the answer was written out; an end without it says that it was not."""
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
        # poll, unlike epoll, keeps a descriptor until it is told.
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
        # Frames that were read are answered before the socket goes; all others spool by themselves.
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
    """Born 0600 and already listening when its name appears. The caller holds the lease, so an old socket is dead.

    The address is relative because a socket's name may not be longer than 108 bytes.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The umask makes the socket 0600 from its first moment; a chmod afterwards would leave a gap.
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
    """(process, user) at the other end, as the kernel says; (0, ourselves) where it does not say."""
    # Without it (macOS) the mode of the folder is the only guard.
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, _OWNER
    pid, user, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user

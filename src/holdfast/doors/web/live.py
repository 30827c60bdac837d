"""Live pages: new events are read once and sent to every open page."""

import asyncio
import bisect
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.client import connect_socket
from holdfast.core.attention import VIEWING
from holdfast.core.ports import EventQuery
from holdfast.core.text import escape_invisible
from holdfast.doors.web.view_client import ViewClient

# Events kept for viewers that reconnect.
REMEMBERED = 2_000
PAGE = 500
MOST_CAUGHT_UP = 5_000
"""A viewer that missed more than this reloads the page."""
BEAT_S = 15.0
RETRY_S = 0.5
# Milliseconds between two updates of a page: at least, and per viewer.
PACE_MS, EACH_MS = 250, 25
SHOWN = ("seq", "at", "kind", "session", "project", "tool")


class News(NamedTuple):
    seq: int
    kind: str
    session: str
    line: bytes


class Live:
    def __init__(self, client: ViewClient) -> None:
        self._client = client
        self._news: list[News] = []
        self._changed = asyncio.Event()
        """Set once, by the next change; then replaced. No lock: fifty viewers may leave at once."""
        self._wire: asyncio.Task[None] | None = None
        self.head = -1
        self.viewers = self.looking = 0
        """Open streams, and those of visible pages."""
        self.daemon = True
        self.stopping = False

    async def stream(
        self, after: int | None, session: str = "", kinds: tuple[str, ...] = (), *, away: bool = False
    ) -> AsyncIterator[bytes]:
        """Lines of a server-sent event stream, after `after` or from the next event. `away`: of a hidden page."""
        self.viewers += 1
        self.looking += not away
        self._begin()
        try:
            # Milliseconds until a browser reconnects.
            yield b"retry: 1000\n\n"
            async for lines in self._lines(after, session, kinds):
                yield lines
        finally:
            self.viewers -= 1
            self.looking -= not away

    async def _lines(self, after: int | None, session: str, kinds: tuple[str, ...]) -> AsyncIterator[bytes]:
        head = await self._head_now()
        seen = head if after is None else min(after, head)
        daemon, pace = True, 0
        if seen != after:
            # A number from the future belongs to a log that was restored since: the page must be reloaded.
            yield f"id: {seen}\nevent: {'begin' if after is None else 'reset'}\ndata: {seen}\n\n".encode()
        while not self.stopping:
            if daemon != self.daemon:
                daemon = self.daemon
                yield b"event: daemon\ndata: " + (b"back" if daemon else b"gone") + b"\n\n"
            if pace != (pace := self.pace()):
                yield f"event: pace\ndata: {pace}\n\n".encode()
            news, seen, jumped = await self._after(seen)
            if jumped:
                yield f"id: {seen}\nevent: reset\ndata: {seen}\n\n".encode()
            lines = [n.line for n in news if _is_wanted(n, session, kinds)]
            if lines:
                yield b"".join(lines)
            # A comment line keeps the connection alive and is invisible.
            elif not news and not await self._something(seen, daemon):
                yield f": {seen}\n\n".encode()

    def pace(self) -> int:
        """Milliseconds a page waits between two updates under load: many viewers share what few may have."""
        return max(PACE_MS, EACH_MS * self.viewers)

    async def _something(self, seen: int, daemon: bool) -> bool:
        """Wait for news; False after a while without any, so that a dead viewer is noticed."""
        deadline = time.monotonic() + BEAT_S
        while not (self.head > seen or self.daemon != daemon or self.stopping):
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                return False
        return True

    async def _after(self, seen: int) -> tuple[list[News], int, bool]:
        """What followed it, how far that reaches, and whether something was omitted."""
        # The cache reaches back to the next event: no need to ask the store.
        if self._news and self._news[0].seq <= seen + 1:
            news = self._news[bisect.bisect_right(self._news, seen, key=lambda n: n.seq) :]
            return news, news[-1].seq if news else seen, False
        if seen >= self.head >= 0:
            return [], seen, False
        head = await self._head_now()
        if head - seen > MOST_CAUGHT_UP:
            return [], head, True
        news = await self._client.run(lambda: self._read(seen))
        return news, news[-1].seq if news else seen, False

    async def _head_now(self) -> int:
        return await self._client.run(lambda: self._client.reader().head())

    def _read(self, after: int) -> list[News]:
        page = self._client.reader().events(EventQuery(after=after, limit=PAGE))
        return [
            News(e.seq, e.kind, e.session, _event_stream_line(e.seq, {name: getattr(e, name) for name in SHOWN}))
            for e in page
        ]

    # ── the wire ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        if self._wire is None or self._wire.done():
            self._wire = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Follow the daemon while there are viewers."""
        while self.viewers and not self.stopping:
            try:
                await self._listen()
            # The daemon is away or restarts: retry while there are viewers.
            except (OSError, msgspec.DecodeError, ValueError):
                pass
            self._notify(daemon=False)
            await asyncio.sleep(RETRY_S)
        self._news.clear()
        self.head = -1

    async def _listen(self) -> None:
        sock = socket.socket(socket.AF_UNIX)
        try:
            connect_socket(sock, self._client.paths.control_socket)
        except OSError:
            sock.close()
            raise
        sock.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=1 << 20)
        try:
            writer.write(b'{"op":"tail","brief":true}\n')
            while self.viewers and not self.stopping:
                # The daemon sends a heartbeat about every second.
                line = await asyncio.wait_for(reader.readline(), 10.0)
                if not line:
                    raise OSError("the daemon is gone")
                await self._advance(int(msgspec.json.decode(line).get("beat", 0)))
                if self.looking:
                    _touch(self._client.paths.run / VIEWING)
        except TimeoutError as error:
            raise OSError("the daemon says nothing") from error
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _advance(self, head: int) -> None:
        # A smaller number than before: the log was restored, and the cache belongs to another one.
        if self.head < 0 or head < self.head:
            self._news.clear()
            self.head = head
        while self.head < head:
            page = await self._client.run(lambda: self._read(self.head))
            if not page:
                break
            self._news = [*self._news, *page][-REMEMBERED:]
            self.head = page[-1].seq
            self._notify()
        self._notify(daemon=True)

    def _notify(self, daemon: bool | None = None) -> None:
        self.daemon = self.daemon if daemon is None else daemon
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def stop(self) -> None:
        self.stopping = True
        self._notify()
        if self._wire:
            self._wire.cancel()


def _touch(mark: Path) -> None:
    with contextlib.suppress(OSError):
        mark.touch(0o600)


def _is_wanted(news: News, session: str, kinds: tuple[str, ...]) -> bool:
    return (not session or news.session == session) and (not kinds or news.kind.startswith(kinds))


def _event_stream_line(seq: int, shown: dict[str, object]) -> bytes:
    return f"id: {seq}\ndata: {escape_invisible(msgspec.json.encode(shown).decode())}\n\n".encode()

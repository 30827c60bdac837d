"""Viewers of the dashboard, in a process of their own: each reads the stream and looks at the page anew, like live.js.

`python -m tests.bench.viewers PORT COOKIE COUNT PATH`; says "ready" when all of them are there, ends with its input.
"""

import asyncio
import os
import sys
import time


async def view(port: int, cookie: str, path: str, ready: asyncio.Semaphore) -> None:
    head = f"GET /api/v1/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode())
    page = _Page(port, cookie, path)
    due, every, paced = 0.0, 0.25, False
    while line := await reader.readline():
        if line.startswith(b"event: begin"):
            ready.release()
        if paced:
            every = int(line.split()[1]) / 1000
        paced = line.startswith(b"event: pace")
        if path and line.startswith(b"data: {") and time.monotonic() > due:
            due = time.monotonic() + every
            await page.look()


class _Page:
    """A browser keeps its connection."""

    def __init__(self, port: int, cookie: str, path: str) -> None:
        self._port, self._wire = port, None
        self._head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode()

    async def look(self) -> None:
        try:
            reader, writer = self._wire = self._wire or await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(self._head)
            length = 0
            while (line := await reader.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self._wire = None


async def main() -> None:
    port, cookie, count, path = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    ready = asyncio.Semaphore(0)
    viewers = [asyncio.create_task(view(port, cookie, path, ready)) for _ in range(count)]
    for _ in viewers:
        await ready.acquire()
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for viewer in viewers:
        viewer.cancel()


if __name__ == "__main__":
    os.nice(19)  # Reading costs the reader too, and more in Python than in a browser; what it costs us is asked here.
    asyncio.run(main())

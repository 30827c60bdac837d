"""Holds hooks that wait for a person's answer from elsewhere, each until the answer, its end, or its time."""

import _socket
import contextlib
import hashlib
import os
import select
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.agent import known_agent
from holdfast.core.attention import ATTENTION, Attention
from holdfast.core.decision import Decision, Delivery
from holdfast.core.engine import Committed
from holdfast.core.event import Event
from holdfast.core.held_questions import HELD, HeldQuestion
from holdfast.core.kinds.attention_events import AttentionAnswered
from holdfast.core.machine import wake_pipe
from holdfast.core.times import now_ms
from holdfast.daemon.ingest.frames import answer_frame
from holdfast.daemon.ingest.log import Log

if TYPE_CHECKING:
    from holdfast.app import App

MOST_HELD = 200
SEND_S = 2.0
LOOK_EVERY_MS = 1_000
UPDATED_INPUT = "answers"


class HeldHooks:
    def __init__(self, app: "Callable[[], App]", log: Log) -> None:
        self._app, self._log = app, log
        self._lock = threading.Lock()
        self._held: dict[str, tuple[_socket.socket, Delivery, HeldQuestion]] = {}
        self._wake_read, self._wake_write = wake_pipe()
        self._thread: threading.Thread | None = None

    def take(self, sock: _socket.socket, delivery: Delivery) -> bool:
        """Whether the connection is held: then it is answered and closed here."""
        agent = known_agent(delivery.agent)
        section = self._app().settings.for_project("").get("attention")
        waits = agent.waits if agent else ""
        seconds = getattr(section, {"beside": "answer_seconds", "before": "hold_seconds"}.get(waits, ""), 0)
        if not seconds or len(self._held) >= MOST_HELD:
            return False
        question = _as_question(delivery, int(seconds * 1000), blocking=waits == "before")
        if question is None:
            return False
        with self._lock:
            self._held[delivery.key] = sock, delivery, question
        HELD.add(question)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="held-hooks", daemon=True)
            self._thread.start()
        self._wake()
        return True

    def committed(self, committed: Committed) -> None:
        """A subscriber: answers what was answered, and lets go of what was settled in the terminal."""
        if not self._held:
            return
        for event in committed.events:
            if isinstance(event.data, AttentionAnswered):
                self._answer(event)
        for _, ref, doc in committed.documents:
            if ref.kind == ATTENTION.kind:
                self._release_settled(doc)

    def stop(self) -> None:
        for key in list(self._held):
            self._finish(key, b"")

    def _answer(self, event: Event) -> None:
        data: AttentionAnswered = event.data
        digests = {one.digest for one in HELD.in_session(event.session) if one.seq == data.of}
        for key in [key for key, one in self._held.items() if one[2].digest in digests]:
            self._finish(key, self._reply(key, data))

    def _reply(self, key: str, data: AttentionAnswered) -> bytes:
        _, delivery, question = self._held[key]
        reasons = (data.reason,) if data.reason else ()
        ports = self._app().engine.ports
        reply = ports.write(ports.read(delivery), Decision(verdict=data.verdict, reasons=reasons))
        return _with_answers(reply, question.input, data.answers) if data.answers else reply

    def _release_settled(self, doc: Attention | None) -> None:
        if doc is None or not doc.session:
            return
        waiting = {need.key: need.seq for need in doc.needs}
        held = HELD.in_session(doc.session)
        for question in held:
            question.seq = waiting.get(question.key, question.seq)
        gone = {one.digest for one in held if one.seq and one.key not in waiting}
        for question in held:
            if question.digest in gone:
                self._finish(question.key, b"")

    def _finish(self, key: str, reply: bytes) -> None:
        with self._lock:
            held = self._held.pop(key, None)
        HELD.remove(key)
        self._wake()
        if held is None:
            return
        sock = held[0]
        try:
            sock.settimeout(SEND_S)
            sock.sendall(answer_frame(reply))
        except OSError as error:
            self._log.error("held-hook.failed", error)
        finally:
            sock.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b".")

    def _watch(self) -> None:
        """Ends holds whose client went away or whose time is over."""
        while True:
            with self._lock:
                clients = {one[0].fileno(): key for key, one in self._held.items()}
            poll = select.poll()
            poll.register(self._wake_read, select.POLLIN)
            for descriptor in clients:
                if descriptor >= 0:
                    poll.register(descriptor, select.POLLIN | select.POLLHUP)
            ready = {descriptor for descriptor, _ in poll.poll(LOOK_EVERY_MS)}
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            now = now_ms()
            with self._lock:
                over = [key for key, (_, _, question) in self._held.items() if question.until <= now]
            for key in over:
                self._finish(key, b"")
            for descriptor in ready & clients.keys():
                self._drop_if_gone(clients[descriptor])

    def _drop_if_gone(self, key: str) -> None:
        held = self._held.get(key)
        if held is None:
            return
        try:
            gone = not held[0].recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            gone = True
        if gone:
            with self._lock:
                self._held.pop(key, None)
            HELD.remove(key)
            held[0].close()


def _as_question(delivery: Delivery, wait_ms: int, *, blocking: bool) -> HeldQuestion | None:
    try:
        payload = msgspec.json.decode(delivery.body)
        session, tool, given = str(payload["session_id"]), str(payload["tool_name"]), payload["tool_input"]
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    digest = hashlib.sha256(msgspec.json.encode([session, tool, given])).hexdigest()
    return HeldQuestion(delivery.key, session, tool, digest, given, now_ms() + wait_ms, blocking)


def _with_answers(reply: bytes, given: Mapping[str, Any], answers: Mapping[str, str]) -> bytes:
    """Claude Code takes the answers of its questions as a change of the tool's input."""
    told = msgspec.json.decode(reply)
    told["hookSpecificOutput"]["decision"]["updatedInput"] = {**given, UPDATED_INPUT: dict(answers)}
    return msgspec.json.encode(told)

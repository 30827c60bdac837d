"""The daemon's control socket for tools of people: one JSON request, JSON lines back."""

import bisect
import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import __version__
from holdfast.core.authority import ANYONE, OWN_PROCESS, Authority, Refusal, Surroundings, Who, authorise, person
from holdfast.core.caller import UNSEEN
from holdfast.core.errors import CommandRefused, HoldfastError, StoreDamaged
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.replay import Rebuild
from holdfast.core.times import now_ms
from holdfast.daemon.cli_server import CliServer
from holdfast.daemon.erase import find_repetitions, new_intent, run_erasure, shown_files
from holdfast.daemon.ingest import imported
from holdfast.daemon.ingest.server import listen_on_socket, peer_is_owner, peer_of
from holdfast.daemon.restores import newest_restore
from holdfast.stores import backup

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

# Bytes of one request; an import sends its events in one.
LARGEST_REQUEST = 16 << 20
# Seconds a peer has to send its request or to read a line.
PATIENCE_S = 10.0
TAIL_PAGE = 500
BETWEEN_BEATS_S = 0.1
BETWEEN_NEWS_S = 0.02
# (name, quantile)
SHARES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
# Upper bounds of the histogram in ms; the last one takes the rest.
SPREAD_MS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 1e9)
SHOWN = ("seq", "at", "kind", "session", "project", "agent", "tool", "data", "key")

Request = dict[str, Any]
encode = msgspec.json.Encoder(enc_hook=str).encode


class Control:
    def __init__(self, daemon: "Daemon", committed: threading.Event) -> None:
        self._daemon, self._committed = daemon, committed
        self._listening = listen_on_socket(daemon.paths.control_socket)
        self._stopping = False
        self._open = 0
        self._cli_server = CliServer(daemon.paths)
        self._threads = threading.local()
        self._news = threading.Condition()
        threading.Thread(target=self._spread_news, name="news", daemon=True).start()

    def serve(self) -> None:
        while not self._stopping:
            # The timeout lets the loop notice `_stopping`.
            if not select.select([self._listening], [], [], 0.5)[0]:
                continue
            try:
                sock, _ = self._listening.accept()
            except OSError:
                continue
            threading.Thread(target=self._answer, args=(sock,), name="control", daemon=True).start()

    def busy(self) -> bool:
        return self._open > 0

    def close(self) -> None:
        self._stopping = True
        self._committed.set()
        self._listening.close()
        self._cli_server.stop()

    def _spread_news(self) -> None:
        """One waiter on commits serves many viewers, so that the writer thread never waits for one."""
        while not self._stopping:
            self._committed.wait(1.0)
            self._committed.clear()
            with self._news:
                self._news.notify_all()
            time.sleep(BETWEEN_NEWS_S)  # The first is reported at once; of many in a row not each one.

    def _answer(self, sock: socket.socket) -> None:
        self._open += 1
        try:
            sock.settimeout(PATIENCE_S)
            if not peer_is_owner(sock):
                return
            request = _read_request(sock)
            if request is not None:
                # From the socket's credentials, set after decoding: a request cannot claim to come from another
                # process.
                request["caller"] = peer_of(sock)[0] or (UNSEEN if hasattr(socket, "SO_PEERCRED") else 0)
                for line in self._lines(request):
                    sock.sendall(encode(line) + b"\n")
        except OSError:
            pass  # The one who asked has gone.
        finally:
            self._open -= 1
            sock.close()

    def _lines(self, request: Request) -> Iterator[dict[str, Any]]:
        try:
            operation = OPERATIONS.get(str(request.get("op")))
            if operation is None:
                raise CommandRefused(f"there is no operation {request.get('op')!r}")
            if not operation.open_to_all(self, request):
                self._authorise(operation.authority, request)
            yield from operation.run(self, request)
        except HoldfastError as error:
            if isinstance(error, StoreDamaged):
                self._daemon.background.look_for_damage()
            yield {"error": error.message, "type": type(error).__name__}
        except Exception as error:
            self._daemon.log.error("control.failed", error, op=request.get("op"))
            yield {"error": f"{type(error).__name__}: {error}", "type": "Unexpected"}

    def _authorise(self, authority: Authority, request: Request) -> None:
        """Authorise the operation before it runs. A refusal is recorded."""
        if authority.who is Who.ANYONE:
            return
        with self._judged_call(request) as call:
            try:
                judged = authorise(authority, call)
            except StoreDamaged:
                # A person must be able to stop or erase it all the same.
                judged = authorise(authority, replace(call, surroundings=Surroundings))
        if isinstance(judged, Refusal):
            self._daemon.call(lambda: self._daemon.pipeline.commit_events((judged.event,)))
            raise CommandRefused(judged.text)

    def _judge_caller(self, request: Request) -> Iterator[dict[str, Any]]:
        with self._judged_call(request) as call:
            yield {"done": {"person": not call.who.is_agent}}

    @contextlib.contextmanager
    def _judged_call(self, request: Request) -> Iterator[Call]:
        # Not `self.reader`: a person must be able to stop a daemon whose writer hangs.
        reader = self._daemon.app.store.reader()
        try:
            yield self._daemon.app.call(str(request["op"]), {}, reader, **self._caller_fields(request))
        finally:
            reader.close()

    def _authorise_own_process(self, request: Request) -> Iterator[dict[str, Any]]:
        """Return whether the caller may perform an act that its command performs by itself."""
        declared = OWN_PROCESS.get(str(request.get("act") or ""))
        if declared is None:
            raise CommandRefused(f"there is no act {request.get('act')!r}")
        words = str(request.get("words") or "")[:200] or declared.act
        self._authorise(replace(declared, act=words), request)
        yield {"done": {"person": True}}

    def reader(self) -> Reader:
        """A reader that sees every hook that has returned, answered or spooled."""
        if self._daemon.spool.waiting():
            self._daemon.call(self._daemon.drain_small_spool)
        elif self._daemon.pipeline.has_pending:
            self._daemon.call(lambda: None)
        return self._daemon.app.store.reader()

    def _wait_until_stored(self, _request: Request) -> Iterator[dict[str, Any]]:
        """Wait for callers that read the store themselves."""
        self.reader().close()
        yield {"done": True}

    def _status(self, request: Request) -> Iterator[dict[str, Any]]:
        yield {"done": daemon_status(self._daemon, self.reader(), str(request.get("project") or ""))}

    def _view(self, request: Request) -> Iterator[dict[str, Any]]:
        app = self._daemon.app
        reader = self.reader()
        try:
            call = app.call(request["name"], request.get("args") or {}, reader, **self._caller_fields(request))
            yield {"done": app.view(request["name"], call)}
        finally:
            reader.close()

    def _command(self, request: Request) -> Iterator[dict[str, Any]]:
        app = self._daemon.app
        reader = self.reader()
        try:
            args = clean_arguments(request.get("args") or {}, app.engine.ports.scrub_fields)
            call = app.call(request["name"], args, reader, **self._caller_fields(request))
            ask = app.command(request["name"], call)
            # An erasure commits these events itself, in a step that is repeated after a crash.
            if ask.erase:
                run_erasure(self._daemon, new_intent(now_ms(), texts=ask.erase, events=ask.events))
            elif ask.events:
                self._daemon.call(lambda: self._daemon.pipeline.commit_events(ask.events))
            # A refusal may come with events, which are recorded.
            if ask.refused:
                raise CommandRefused(ask.refused)
            yield {"done": ask.answer(reader) if callable(ask.answer) else ask.answer}
        finally:
            reader.close()

    def _caller_fields(self, request: Request) -> dict[str, Any]:
        """Redact the caller's folder as hooks do, so that it is found under the same name."""
        clean = self._daemon.app.engine.ports.scrub_fields
        session = imported.clean_identifier(str(request.get("session") or ""), clean)
        project = imported.clean_text(str(request.get("project") or ""), clean)
        code = str(request.get("code") or "")
        return {"session": session, "project": project, "caller": request.get("caller") or 0, "code": code}

    def _erase(self, request: Request) -> Iterator[dict[str, Any]]:
        """With `dry`, list quotations; otherwise erase, and answer when everything is gone."""
        texts = tuple(str(text) for text in request.get("texts") or () if str(text).strip())
        if request.get("dry"):
            yield {"done": [one for text in texts for one in find_repetitions(self._daemon, text)]}
            return
        sessions, projects = (tuple(map(str, request.get(name) or ())) for name in ("sessions", "projects"))
        if not (texts or sessions or projects):
            raise CommandRefused("nothing was named that is to be erased")
        receipt = run_erasure(self._daemon, new_intent(now_ms(), texts=texts, sessions=sessions, projects=projects))
        yield {"done": msgspec.structs.asdict(receipt)}

    def _shown_files(self, _request: Request) -> Iterator[dict[str, Any]]:
        reader = self.reader()
        try:
            yield {"done": sorted(set(shown_files(self._daemon.app, reader)))}
        finally:
            reader.close()

    def _ingest(self, request: Request) -> Iterator[dict[str, Any]]:
        """Append events recorded elsewhere, in the sender's batches; known events are not doubled."""
        app = self._daemon.app
        self._daemon.background.history.postpone()
        # Read and redacted in this thread: hooks only wait while the writer writes.
        events = imported.accept_imported_events(request.get("events"), app.features, app.engine.ports.scrub_fields)
        app.engine.enrich_history(arrival.event for arrival in events)
        outcomes = (
            self._daemon.call(lambda: self._daemon.pipeline.commit_events(events, imported=True)) if events else []
        )
        self._daemon.call(self._daemon.pipeline.publish)
        yield {"done": {"taken": sum(1 for o in outcomes if o.seq), "known": sum(1 for o in outcomes if not o.seq)}}

    def _sessions_told_by_hooks(self, request: Request) -> Iterator[dict[str, Any]]:
        """Return which of these (session, agent) pairs hooks reported themselves."""
        reader = self.reader()
        try:
            named = [(str(a), str(s)) for a, s in request.get("sessions") or ()][: imported.MOST_EVENTS]
            yield {"done": [one for one in named if imported.told_by_hooks(reader, *one)]}
        finally:
            reader.close()

    def _forward(self, _request: Request) -> Iterator[dict[str, Any]]:
        """After joining or leaving a team, start or stop the forwarder at once."""
        yield {"done": {"running": self._daemon.background.upstream.check(at_once=True)}}

    def _stop(self, request: Request) -> Iterator[dict[str, Any]]:
        yield {"done": {"pid": os.getpid()}}
        # Reached after the answer has been sent, because a generator continues only after its line is out.
        self._daemon.stop(str(request.get("reason") or "asked to"))

    def _is_dry(self, request: Request) -> bool:
        return bool(request.get("dry"))

    def _replaces_daemon(self, request: Request) -> bool:
        return self._daemon.may_be_replaced(str(request.get("version") or ""))

    def _drain(self, _request: Request) -> Iterator[dict[str, Any]]:
        daemon = self._daemon
        yield {"done": msgspec.structs.asdict(daemon.call(daemon.drain_now))}

    def _backup(self, _request: Request) -> Iterator[dict[str, Any]]:
        daemon = self._daemon
        with daemon.copying:
            made = backup.write_backup(daemon.app.store.path, daemon.paths.backups, reason="by-hand")
            yield {"done": {"path": str(made)}}

    def _rebuild(self, request: Request) -> Iterator[dict[str, Any]]:
        from holdfast.daemon.background import finish_rebuild

        named = request.get("feature")
        features = [f for f in self._daemon.app.features if not named or f.name == named]
        if named and not features:
            raise CommandRefused(f"there is no feature {named!r}")
        work = Rebuild(features, self.reader())
        yield from _with_progress(work)
        differences = self._daemon.call(lambda: _compare_documents(work))
        if differences or request.get("write"):
            self._daemon.call(lambda: finish_rebuild(self._daemon, work))
        documents = sum(len(docs) for docs in work.docs.values())
        yield {"done": {"events": work.seq, "documents": documents, "differences": differences}}

    def _tail(self, request: Request) -> Iterator[dict[str, Any]]:
        reader = self.reader()
        # `_beats` returns only when the daemon stops.
        if request.get("brief"):
            yield from self._beats(reader)
        after = int(request.get("after", reader.head()))
        session = str(request.get("session") or "")
        while not self._stopping:
            page = reader.events(EventQuery(after=after, session=session, limit=TAIL_PAGE))
            for event in page:
                after = event.seq
                yield {"event": {name: getattr(event, name) for name in SHOWN}}
            if not page:
                with self._news:
                    self._news.wait(1.0)
                yield {"beat": after}

    def _beats(self, reader: Reader) -> Iterator[dict[str, Any]]:
        """Yield only the head of the log, at most ten times a second, for callers that read it themselves."""
        last_head = -1
        while not self._stopping:
            with self._news:  # Held while looking, so that no news comes between the look and the wait.
                if (head := reader.head()) == last_head:
                    self._news.wait(1.0)
                    head = reader.head()
            last_head = head
            yield {"beat": head}
            time.sleep(BETWEEN_BEATS_S)

    def _warm_cli(self, request: Request) -> Iterator[dict[str, Any]]:
        yield {"done": {"started": self._cli_server.start(str(request.get("prefix") or ""))}}

    def _jobs(self, _request: Request) -> Iterator[dict[str, Any]]:
        yield {"done": self.reader().jobs()}


@dataclass(frozen=True)
class Operation:
    run: Callable[[Control, Request], Iterator[dict[str, Any]]]
    authority: Authority
    open_to_all: Callable[[Control, Request], bool] = lambda _control, _request: False
    """Whether this request changes nothing that authority protects."""


OPERATIONS: dict[str, Operation] = {
    "status": Operation(Control._status, ANYONE),
    "settle": Operation(Control._wait_until_stored, ANYONE),
    "view": Operation(Control._view, ANYONE),
    # Each command declares its own (`Feature.authority`).
    "command": Operation(Control._command, ANYONE),
    "caller": Operation(Control._judge_caller, ANYONE),
    "authorise": Operation(Control._authorise_own_process, ANYONE),
    "erase": Operation(Control._erase, person("erasing from the log"), Control._is_dry),
    "shown_files": Operation(Control._shown_files, ANYONE),
    "ingest": Operation(Control._ingest, OWN_PROCESS["import"]),
    "told": Operation(Control._sessions_told_by_hooks, ANYONE),
    "stop": Operation(Control._stop, person("stopping the daemon"), Control._replaces_daemon),
    "team_forward": Operation(Control._forward, ANYONE),
    "drain": Operation(Control._drain, ANYONE),
    "backup": Operation(Control._backup, ANYONE),
    "rebuild": Operation(Control._rebuild, ANYONE),
    "tail": Operation(Control._tail, ANYONE),
    "jobs": Operation(Control._jobs, ANYONE),
    "warm_cli": Operation(Control._warm_cli, ANYONE),
}


def _read_request(sock: socket.socket) -> Request | None:
    received = bytearray()
    while not received.endswith(b"\n"):
        chunk = sock.recv(65536)
        if not chunk or len(received) > LARGEST_REQUEST:
            return None
        received += chunk
    try:
        parts = _decode_parts(received)
        # Events are numerous: they are decoded once their kinds are known, straight into their types.
        return {name: raw if name == "events" else msgspec.json.decode(raw) for name, raw in parts.items()}
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# Compared or opened literally; the stored copy is redacted with its event.
_EXACT = ("code", "path")


def clean_arguments(args: Mapping[str, Any], clean: Callable[[bytes], bytes]) -> Mapping[str, Any]:
    """Redact every argument before the command shortens it: on one cut line a secret may be unrecognisable."""
    exact = {name: value for name in _EXACT if (value := args.get(name)) and _is_one_line(value)}
    return {**msgspec.json.decode(clean(msgspec.json.encode(args))), **exact}


def _is_one_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _with_progress(work: Rebuild) -> Iterator[dict[str, Any]]:
    """Read in another thread, so that progress can be sent meanwhile."""
    steps: list[tuple[int, int]] = []
    work.progress = lambda done, total: steps.append((done, total))
    reading = threading.Thread(target=work.read, daemon=True)
    reading.start()
    while reading.is_alive():
        reading.join(0.1)
        if steps:
            yield {"progress": steps[-1]}
            steps.clear()


def _compare_documents(work: Rebuild) -> list[str]:
    """On the writer thread, so that log and documents are from the same moment."""
    work.progress = None
    work.read()
    return work.differences()


def daemon_status(daemon: "Daemon", reader: Reader, project: str = "") -> dict[str, Any]:
    path = daemon.app.store.path
    return {
        "version": __version__,
        "pid": os.getpid(),
        "started": int(daemon.started * 1000),
        "state": str(daemon.paths.state),
        "store": str(path),
        "store_bytes": sum(p.lstat().st_size for p in path.parent.glob(f"{path.name}*")),
        "counts": reader.counts(),
        "spool_bytes": daemon.spool.waiting(),
        "refusing": daemon.store_guard.refusing,
        "bodies": daemon.background.housekeeping.encryption.status(),
        "troubles": daemon.background.health.described(reader),
        "restored": newest_restore(daemon.paths, reader),
        "asleep": sorted(daemon.app.engine.suspended),
        "errors": daemon.errors,
        "memory_bytes": resident_bytes(),
        "hooks": hook_times(daemon.server.took.copy()),
        "notices": [str(n) for n in daemon.app.settings.for_project(project).notices],
        "backups": [p.name for p in backup.list_backups(daemon.paths.backups)],
        "now": int(time.time() * 1000),
    }


def hook_times(took: Collection[float]) -> dict[str, Any]:
    """Times from connection to durable answer, in ms, of the latest hooks."""
    if not took:
        return {"answered": 0, "spread": []}
    ordered = sorted(took)
    shown = {name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 3) for name, share in SHARES}
    return {"answered": len(ordered), **shown, "spread": _time_histogram(ordered)}


def _time_histogram(ordered: Sequence[float]) -> list[dict[str, float]]:
    """Count the times per bucket."""
    ends = [bisect.bisect_right(ordered, limit / 1000) for limit in SPREAD_MS]
    return [{"ms": limit, "hooks": end - start} for limit, end, start in zip(SPREAD_MS, ends, [0, *ends], strict=False)]


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            # The second field of statm is the resident set, in pages.
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        # macOS has no /proc; there ru_maxrss is in bytes and is the peak.
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

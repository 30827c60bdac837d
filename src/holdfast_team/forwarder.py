"""The forwarder: a process next to the daemon that sends its log to the team."""

# Hooks never wait for it: it opens the database read-only and returns the team's items to the daemon as commands. It
# ends with the daemon (its standard input closes) or when the machine leaves its team.

import contextlib
import os
import random
import secrets
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.analysis.redact import redact
from holdfast.app import database_path, open_settings
from holdfast.client import DaemonClient
from holdfast.core.errors import HoldfastError
from holdfast.core.event import Event
from holdfast.core.machine import collect_garbage_rarely
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.times import DAY, now_ms
from holdfast.paths import Paths
from holdfast.stores.sqlite_reader import SqliteReader
from holdfast_team import core
from holdfast_team.erased import forget_erased
from holdfast_team.identity import ProjectIdentity, identify_project
from holdfast_team.membership import (
    COPIED,
    REVOKED,
    ForwarderStatus,
    Membership,
    TeamConnection,
    TeamFiles,
    TeamRefused,
    TeamUnreachable,
    connect_team,
    error_from_answer,
    maintain_leases,
    rotate_token,
)
from holdfast_team.protocol import MOST_EVENTS, Batch, BatchAnswer, FeedPage, Level, SharedEvent, SharedProject
from holdfast_team.sent import SentLog
from holdfast_team.sharing import level_named, share_event

# In seconds: between looks at the log, between heartbeats, for a feed request, after a refusal.
LOOK_S, BEAT_S, FEED_WAIT_S, PAUSE_S = 0.3, 20.0, 20.0, 60.0
# Seconds between looks at the membership while the server is not asked, and during which a file's mtime may hide a
# second write.
LONGEST_REST_S, SAME_TICK_S = 5.0, 0.1
STATUS_S = 1.0
ROTATE_MS = 7 * DAY
LARGEST_BATCH = 8 << 20
# Seconds that an identity is cached, and that a missing one is: somebody may add a remote.
IDENTITY_S, MISSING_S = 3600.0, 120.0
ERASED, FORGET_FILE = "erase.finished", "forget-due"
COPIED_TEXT = "another machine sends as this one: its state folder was copied"


class Projects:
    """Caches identities of local folders."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, ProjectIdentity]] = {}
        self.found: dict[str, SharedProject] = {}
        """New since the last report to the daemon."""

    def of(self, folder: str) -> ProjectIdentity:
        cached = self._known.get(folder)
        if cached and time.monotonic() < cached[0]:
            return cached[1]
        identity = identify_project(folder) if folder else ProjectIdentity(problem="it happened in no project")
        self._known[folder] = time.monotonic() + (IDENTITY_S if identity.shared else MISSING_S), identity
        if identity.shared and (not cached or cached[1] != identity):
            self.found[folder] = identity.shared
        return identity

    def shared_identities(self) -> list[ProjectIdentity]:
        return [identity for _, identity in self._known.values()]

    def problems(self) -> dict[str, str]:
        return {folder: one.problem for folder, (_, one) in self._known.items() if folder and one.problem}


class Page(NamedTuple):
    """A part of the log after a number, and its shared events."""

    after: int
    events: tuple[Event, ...]
    shared: tuple[SharedEvent, ...]
    chosen: object = None
    """The levels it was built with."""

    @property
    def upto(self) -> int:
        return self.events[-1].seq if self.events else self.after


class Forwarder:
    """Sends. One thread; the feed has another (`Receiver`)."""

    def __init__(self, paths: Paths, membership: Membership) -> None:
        self.paths, self.membership = paths, membership
        self.files = TeamFiles(paths)
        self.daemon = DaemonClient(paths, timeout=30)
        self.connection = connect_team(membership)
        self.projects = Projects()
        self.sent_log = SentLog(self.files)
        self.lock = threading.Lock()
        """Guards `state`, which the feed's thread changes too."""
        self.state = self.files.upstream() or core.Upstream()
        before = self.files.status()
        self.status = ForwarderStatus(pid=os.getpid(), sent=before.sent)
        if before.state == COPIED:
            # A new process must not replace the other one: they would alternate.
            self.status = before
        self._run = secrets.token_hex(8)
        self._ready: Page | None = None
        self._reader: Reader | None = None
        self._inode = 0
        self._last_contact = 0.0
        self._settled, self._seen = False, (0, 0, 0)

    # ── one round ──────────────────────────────────────────────────────────────────────────────────────────────────

    def step(self) -> bool:
        """Return whether there is more to send at once."""
        self._settled = self.status.state == COPIED
        if now_ms() < self.state.next_at or self._settled:
            return False
        try:
            more = self._send_next()
            self._settled = not more
            return more
        except TeamUnreachable as error:
            self.note_failure("offline", error.message)
        except TeamRefused as error:
            self._refused(error)
        except HoldfastError as error:
            self.note_failure("offline", error.message)
        return False

    def has_news(self) -> bool:
        """Whether a step could do anything. Compares the mtimes of two files instead of reading the log three times a
        second."""
        seen = self._signature()
        changed, self._seen = seen != self._seen, seen
        # A file may be written twice within one clock tick.
        fresh = not any(seen) or time.time() - seen[0] / 1e9 < SAME_TICK_S
        return not self._settled or changed or fresh or time.monotonic() - self._last_contact >= BEAT_S

    def _signature(self) -> tuple[int, int, int]:
        database = self.paths.database
        for path in (database.with_name(f"{database.name}-wal"), database):
            with contextlib.suppress(OSError):
                found = path.stat()
                return found.st_mtime_ns, found.st_size, found.st_ino
        return 0, 0, 0

    def rest_s(self) -> float:
        """Seconds until the next look: as long as the server must not be asked again."""
        return min(max((self.state.next_at - now_ms()) / 1000, LOOK_S), LONGEST_REST_S)

    def _send_next(self) -> bool:
        if self.membership.role == "viewer":
            # The server would refuse every batch: a viewer reads, and shares nothing.
            self._note_viewing()
            return False
        with self.reading() as reader:
            self._check_log(reader)
            head = reader.head()
        page = self._page_after(self.state.cursor) if head > self.state.cursor else Page(self.state.cursor, (), ())
        if not page.events and time.monotonic() - self._last_contact < BEAT_S:
            return False
        self._tell_projects()
        if any(event.kind == ERASED for event in page.events):
            # On disk before the batch is acknowledged: afterwards the cursor is past this event.
            (self.files.folder / FORGET_FILE).touch(0o600)
        named = self._used_projects(page.shared)
        batch = core.build_batch(self.state, page.upto, page.shared, named, self.membership.level, now_ms())
        self._deliver(batch, {event.seq: event.key for event in page.events})
        self._forget_if_due()
        # Not while catching up: after a rotation another process starts.
        if head == self.state.cursor:
            self._rotate_if_due()
        return self.state.cursor < head

    def _note_viewing(self) -> None:
        self._rotate_if_due()
        if time.monotonic() - self._last_contact >= BEAT_S:
            self._last_contact = time.monotonic()
            self._note_status("viewing", "")

    def _page_after(self, after: int) -> "Page":
        """The next page, possibly read while the previous one was being sent."""
        ready, self._ready = self._ready, None
        # The person may have changed the levels since the page was read.
        if ready and ready.after == after and ready.chosen == self._chosen_levels():
            return ready
        return self._read_page(after)

    def _read_page(self, after: int) -> "Page":
        with self.reading() as reader:
            events = reader.events(EventQuery(after=after, limit=MOST_EVENTS))
        shared = tuple(one for event in events if (one := self._share(event)))
        return Page(after, tuple(events), shared, self._chosen_levels())

    def _chosen_levels(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self.membership.level, tuple(self.membership.levels.items())

    def _read_ahead(self, upto: int) -> None:
        """Only with a backlog: a page read ahead must still match the log later."""
        with contextlib.suppress(HoldfastError):
            page = self._read_page(upto)
            self._ready = page if len(page.events) == MOST_EVENTS else None

    def _forget_if_due(self) -> None:
        """Until the server has answered: the file marks an erasure that it doesn't know yet."""
        mark = self.files.folder / FORGET_FILE
        if mark.exists():
            forget_erased(self.files, self.connection, self.sent_log, self.reading, self.share_at)
            mark.unlink(missing_ok=True)

    def _rotate_if_due(self) -> None:
        """A stolen token is worthless after a week; the daemon then starts another forwarder."""
        since = self.membership.rotated_at or self.membership.joined_at
        if since and (self.membership.next_token or now_ms() - since > ROTATE_MS):
            rotate_token(self.paths, now_ms())

    def _share(self, event: Event) -> SharedEvent | None:
        identity = self.projects.of(event.project)
        level = level_named(self.membership.level_for(event.project, identity.home)) if identity.shared else None
        shared = self.share_at(event, level) if level else None
        # The batch names the membership's level; an event carries its own only where it differs.
        return msgspec.structs.replace(shared, level=level) if shared and level != self.membership.level else shared

    def share_at(self, event: Event, level: Level) -> SharedEvent | None:
        identity = self.projects.of(event.project)
        return share_event(event, level, identity.shared.id, event.project) if identity.shared else None

    def _used_projects(self, shared: Sequence[SharedEvent]) -> list[SharedProject]:
        used = {event.project for event in shared}
        projects_by_id = {one.id: one for identity in self.projects.shared_identities() if (one := identity.shared)}
        return [projects_by_id[name] for name in sorted(used) if name in projects_by_id]

    def _tell_projects(self) -> None:
        if self.projects.found:
            named = {folder: {"id": one.id, "remote": one.remote} for folder, one in self.projects.found.items()}
            self.daemon.ask("command", start=False, name="team.locate", args={"projects": named})
            self.projects.found.clear()

    # ── a batch on its way ─────────────────────────────────────────────────────────────────────────────────────────

    def _deliver(self, batch: Batch, keys: dict[int, str]) -> None:
        # Redacted once more, over exactly the bytes that leave; but not the keys of our own events, which the server
        # compares.
        clean = _with_fields(redact(msgspec.json.encode(batch))[0], self._marks_of(batch, keys))
        if len(clean) > LARGEST_BATCH and len(batch.events) > 1:
            self._deliver(_first_half(batch), keys)
            return
        # Noted before sending: the answer may be lost after the server stored the batch.
        self.sent_log.note_batch(batch, clean)
        if batch.upto > self.state.sent:
            self._save(core.before_sending(self.state, batch.upto, keys.get(batch.upto, "")))
        body, ahead = zlib.compress(clean, 1), lambda: self._read_ahead(batch.upto)
        full = len(keys) == MOST_EVENTS and batch.upto == max(keys)
        status, answer = self.connection.send("POST", "/v1/batch", body, meanwhile=ahead if full else bool)
        # The server rejects this content: resent unchanged, it would be rejected for ever.
        if status in (400, 413, 422) and batch.events:
            self._deliver_less(batch, keys)
            return
        # A 409 has the same body: it says from where the server wants the stream.
        if status not in (200, 409):
            raise error_from_answer(status, answer)
        self._last_contact = time.monotonic()
        self._follow(msgspec.json.decode(answer, type=BatchAnswer), len(batch.events), more=full)

    def _follow(self, batch_answer: BatchAnswer, count: int, more: bool) -> None:
        if batch_answer.copied:
            self._note_status(COPIED, COPIED_TEXT)
        elif batch_answer.gap and self._has_other_log(batch_answer):
            self._begin_stream(batch_answer)
        else:
            self._note_answer(batch_answer, count, more)

    def _marks_of(self, batch: Batch, keys: dict[int, str]) -> dict[str, str]:
        """By these the server sees who sends, and that it is still the same log."""
        after = self._key_at(batch.after)
        upto = after if batch.upto == batch.after else keys.get(batch.upto) or self._key_at(batch.upto)
        marks = {"run": self._run, "after_event": after, "upto_event": upto, "common_event": self.state.common_key}
        return {name: value for name, value in marks.items() if value}

    def _key_at(self, seq: int) -> str:
        with self.reading() as reader:
            event = reader.event(seq) if seq else None
        return event.key if event else ""

    def _has_other_log(self, answer: BatchAnswer) -> bool:
        with self.reading() as reader:
            head = reader.head()
        key_here = self._key_at(answer.cursor)
        return core.is_other_log(self.state, answer.stream, answer.cursor, answer.key, head, key_here)

    def _deliver_less(self, batch: Batch, keys: dict[int, str]) -> None:
        """The server rejects something in it: halve it until one event is left, which is skipped."""
        if len(batch.events) > 1:
            self._deliver(_first_half(batch), keys)
            return
        self.status.skipped += 1
        # An empty batch moves the server's cursor past the skipped event.
        self._deliver(msgspec.structs.replace(batch, events=()), keys)

    def _save(self, state: core.Upstream, on_disk: bool = True) -> None:
        """The other thread knows the feed's position better."""
        with self.lock:
            self.state = msgspec.structs.replace(state, feed=self.state.feed)
            if on_disk:
                self.files.save_upstream(self.state)

    def _note_answer(self, batch_answer: BatchAnswer, count: int, more: bool) -> None:
        before = self.state.cursor
        after = core.after_answer(self.state, batch_answer.stream, batch_answer.cursor, batch_answer.gap)
        # If more follows at once, the next batch saves it; if lost before, the server repeats it.
        self._save(after, on_disk=not more)
        self.status.sent += count if self.state.cursor > before else 0
        self._note_status("current", "")

    def _check_log(self, reader: Reader) -> None:
        """A restored log has other events under the same numbers."""
        here = reader.event(self.state.sent) if self.state.sent else None
        if not core.was_replaced(self.state, reader.head(), here.key if here else ""):
            return
        self._begin_stream()

    def _begin_stream(self, server: BatchAnswer | None = None) -> None:
        further = (server.stream, server.restores) if server else ()
        common = self.sent_log.common_prefix(self._key_at, core.restore_bound(self.state, *further))
        self._ready = None
        stream = server.stream if server else 0
        self._save(core.after_restore(self.state, common, self._key_at(common), stream))

    # ── how it goes ────────────────────────────────────────────────────────────────────────────────────────────────

    def _refused(self, error: TeamRefused) -> None:
        self.note_failure(REVOKED if error.status == 401 else "refused", error.message)
        if error.status == 403:
            # A role that may no longer send may still have its data forgotten.
            with contextlib.suppress(HoldfastError):
                self._forget_if_due()
        if error.status == 401:
            with contextlib.suppress(HoldfastError):
                items = [{"id": 0, "kind": "revoked"}]
                self.daemon.ask("command", start=False, name="team.receive", args={"items": items})
            self.state = msgspec.structs.replace(self.state, next_at=now_ms() + int(PAUSE_S * 1000))

    def note_failure(self, state: str, error: str) -> None:
        with self.lock:
            self.state = core.after_failure(self.state, now_ms(), random.random())  # noqa: S311 - jitter
        self._note_status(state, error)

    def _note_status(self, state: str, error: str) -> None:
        head = 0
        with contextlib.suppress(HoldfastError), self.reading() as reader:
            head = reader.head()
        sending = state == "current" and head > self.state.cursor
        if sending and self.status.state == "sending" and now_ms() - self.status.at < STATUS_S * 1000:
            return  # While it catches up nobody needs to read every step.
        self.status.state = "sending" if sending else state
        self.status.error, self.status.at = error, now_ms()
        self.status.cursor, self.status.head = self.state.cursor, head
        self.status.not_shared = self.projects.problems()
        self.files.save_status(self.status)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reader]:
        """The same connection while the file is the same: a repaired database is another one."""
        database = database_path(self.paths, open_settings())
        inode = database.stat().st_ino if database.exists() else 0
        if self._reader is None or inode != self._inode:
            if self._reader:
                self._reader.close()
            self._reader, self._inode = SqliteReader(database), inode
        yield self._reader


def _with_fields(content: bytes, fields: dict[str, str]) -> bytes:
    """A JSON object with further fields prepended."""
    return msgspec.json.encode(fields)[:-1] + b"," + content[1:]


def _first_half(batch: Batch) -> Batch:
    some = batch.events[: len(batch.events) // 2]
    return msgspec.structs.replace(batch, events=some, upto=some[-1].seq)


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────


class Receiver:
    """Follows the team's feed by number; each item becomes a local event."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._connection: TeamConnection = connect_team(forwarder.membership, timeout=FEED_WAIT_S + 10)

    def step(self, wait: float = FEED_WAIT_S) -> int:
        """Return how many items came. The caller backs off on errors."""
        after = self._forwarder.state.feed
        page = self._connection.request("GET", f"/v1/feed?after={after}&wait={int(wait)}", FeedPage)
        items = core.new_items(self._forwarder.state, page.items)
        if items:
            plain = [msgspec.to_builtins(item) for item in items]
            self._forwarder.daemon.ask("command", start=False, name="team.receive", args={"items": plain})
        if page.upto > after:
            with self._forwarder.lock:
                self._forwarder.state = msgspec.structs.replace(self._forwarder.state, feed=page.upto)
                self._forwarder.files.save_upstream(self._forwarder.state)
        return len(items)


# ── the process ──────────────────────────────────────────────────────────────────────────────────────────────────────


class ForwarderProcess:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._stopping = threading.Event()
        self._mark = 0, 0

    def run(self) -> int:
        membership = TeamFiles(self._paths).membership()
        if membership is None:
            return 0
        forwarder = Forwarder(self._paths, membership)
        receiver, leases = Receiver(forwarder), connect_team(membership)
        threading.Thread(target=self._wait_for_end, name="end", daemon=True).start()
        for name, work in (("feed", receiver.step), ("leases", lambda: maintain_leases(forwarder.files, leases))):
            pause = 0.0 if name == "feed" else 1.0
            threading.Thread(target=self._again_and_again, args=(work, pause), name=name, daemon=True).start()
        while not self._stopping.is_set():
            more = self._step(forwarder)
            self._stopping.wait(0.0 if more else forwarder.rest_s())
        return 0

    def _step(self, forwarder: Forwarder) -> bool:
        mark = forwarder.files.membership_mark()
        if mark != self._mark:
            current = forwarder.files.membership()
            if current is None or current.token != forwarder.membership.token:
                self._stopping.set()  # It left, or its token was changed: the daemon starts another one.
                return False
            self._mark, forwarder.membership = mark, current
        try:
            return forwarder.has_news() and forwarder.step()
        except Exception as error:
            forwarder.note_failure("offline", f"{type(error).__name__}: {error}")
            return False

    def _again_and_again(self, work: Callable[[], object], pause: float) -> None:
        failures = 0
        # Half a second after the first failure, doubled with each one, at most a minute.
        while not self._stopping.wait(pause + min(60.0, 0.5 * 2**failures) * (failures > 0)):
            try:
                work()
                failures = 0
            except Exception:
                failures = min(failures + 1, 8)

    def _wait_for_end(self) -> None:
        """The daemon holds the other end of our standard input."""
        with contextlib.suppress(OSError, ValueError):
            sys.stdin.buffer.read()
        self._stopping.set()


def yield_to_hooks() -> None:
    """Run at low priority, so that hooks go first."""
    os.nice(5)
    with contextlib.suppress(AttributeError, OSError):  # Linux only.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main() -> None:
    words = sys.argv[1:]
    state = Path(words[words.index("--state") + 1])
    yield_to_hooks()
    collect_garbage_rarely()
    sys.exit(ForwarderProcess(Paths(state.absolute())).run())


if __name__ == "__main__":
    main()

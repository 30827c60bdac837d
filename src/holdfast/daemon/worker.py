"""Runs background jobs: claimed by lease, committed together with their events."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from holdfast.core.engine import Engine
from holdfast.core.errors import LeaseLost
from holdfast.core.event import Event
from holdfast.core.feature import Feature, JobCall, JobHandler
from holdfast.core.ids import delivery_key
from holdfast.core.job import MAX_ATTEMPTS, ClaimedJob, Job, delay_s
from holdfast.core.machine import machine_id
from holdfast.core.ports import Reader, Store
from holdfast.daemon import children
from holdfast.daemon.files import put_file
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.ingest.pipeline import IngestPipeline
from holdfast.daemon.ingest.writer import WriterCalls
from holdfast.stores.footprint import Footprint

# Extended every second while its job runs; after a crash another worker waits no longer than this.
LEASE_S = 60.0
# Also how soon a job of another process is seen: `wake` reaches only workers of this one.
LOOK_EVERY_S = 2.0
MOST_LEFT = 1000

T = TypeVar("T")


class Worker:
    def __init__(
        self, *, engine: Callable[[], Engine], pipeline: IngestPipeline, features: Sequence[Feature], calls: WriterCalls, log: Log,
        settings: Callable[[str], Mapping[str, Any]], clock: Callable[[], int], state_dir: Path,
    ) -> None:  # fmt: skip
        self._engine, self._pipeline, self._features, self._calls, self._log = engine, pipeline, features, calls, log
        self._settings, self._clock, self._state_dir = settings, clock, state_dir
        self._footprint = Footprint(state_dir)
        # One daemon per state directory: a successor under this name may take over what we left (`_take_over`).
        self.owner = f"{machine_id()}:{state_dir}"
        self._handlers: dict[str, tuple[Feature, JobHandler]] = {
            kind: (feature, handler) for feature in features for kind, handler in feature.jobs.items()
        }
        self._kinds = tuple(self._handlers)
        self._quick = tuple(kind for feature in features for kind in feature.quick)
        self._due: list[threading.Event] = []
        """One per worker, so that none takes another's wake-up."""
        self._stopping = threading.Event()
        self._took_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._leases: dict[int, float] = {}
        self._next_run = {kind: 0.0 for feature in features for kind in feature.schedule}

    def start(self, threads: int) -> None:
        if not self._handlers:
            return
        for n in range(threads):
            self._begin(f"worker-{n}", self._kinds)
        # A worker for quick kinds only, which never wait behind a long job.
        if self._quick:
            self._begin("worker-quick", self._quick)
        self._threads.append(threading.Thread(target=self._keep_time, name="schedule", daemon=True))
        for thread in self._threads:
            thread.start()

    def _begin(self, name: str, kinds: Sequence[str]) -> None:
        due = threading.Event()
        self._due.append(due)
        self._threads.append(threading.Thread(target=self._work, args=(kinds, due), name=name, daemon=True))

    def _take_over(self) -> None:
        """A killed daemon held leases under which nobody works. Its attempt still counts."""
        try:
            reader = self._engine().store.reader()
            held = [job["id"] for job in reader.jobs(MOST_LEFT) if job["owner"] == self.owner]
            reader.close()
            if held:
                # A lease until 0 has expired: any worker may claim the job.
                self.change_rows(lambda store: [store.extend(job, self.owner, 0) for job in held])
        except Exception as error:
            self._log.error("worker.failed", error)
        finally:
            self._took_over.set()

    def wake(self) -> None:
        for due in self._due:
            due.set()

    def stop(self, timeout: float = 5.0) -> None:
        self._stopping.set()
        self.wake()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self, kinds: Sequence[str], due: threading.Event) -> None:
        # No claim before: under the same owner's name `_take_over` would end the new leases too.
        self._took_over.wait()
        reader: Reader | None = None
        store: Store | None = None
        while not self._stopping.is_set():
            try:
                if reader is None or store is not self._engine().store:  # Another one, after damage was mended.
                    store = self._engine().store
                    reader = store.reader()
                # Checked first with a reader: mostly there is nothing, and hooks come first.
                wait_s = self._until_due(reader, kinds)
                claimed = [] if wait_s > 0 else self._claim(1, kinds)
                if claimed:
                    self._run(claimed[0], reader)
                else:
                    due.wait(wait_s or LOOK_EVERY_S)
                    due.clear()
            except Exception as error:
                self._log.error("worker.failed", error)
                self._stopping.wait(LOOK_EVERY_S)
                reader = None

    def _until_due(self, reader: Reader, kinds: Sequence[str]) -> float:
        now = self._clock()
        at = reader.next_due(now, kinds)
        return LOOK_EVERY_S if at is None else min(LOOK_EVERY_S, max(0.0, (at - now) / 1000))

    def _keep_time(self) -> None:
        self._take_over()
        intervals = {kind: every for feature in self._features for kind, every in feature.schedule.items()}
        while not self._stopping.wait(1.0):
            now = time.monotonic()
            due = [kind for kind, at in self._next_run.items() if now >= at]
            try:
                if due:
                    self.enqueue([Job(kind=kind, dedupe=kind) for kind in due])
                self._next_run.update({kind: now + intervals[kind] for kind in due})
                self._extend_leases()
            except Exception as error:  # A full disk, say: the clock must go on.
                self._log.error("schedule.failed", error)

    def enqueue(self, jobs: Sequence[Job]) -> None:
        self.change_rows(lambda store: store.enqueue(jobs, self._clock()))
        self.wake()

    def change_rows(self, work: Callable[[Store], T], *, idle: bool = False) -> T:
        """Change rows that no event depends on: job claims, the full-text index, old bodies. `idle` lets hooks go
        first."""
        call = self._calls.call_when_idle if idle else self._calls.call
        return call(lambda: self._change_rows(work))

    def _change_rows(self, work: Callable[[Store], T]) -> T:
        store = self._engine().store
        # Not durable: a claim lost in a power cut is made again.
        with store.transaction(durable=False):
            return work(store)

    def _claim(self, limit: int, kinds: Sequence[str]) -> list[ClaimedJob]:
        return self.change_rows(lambda store: store.claim(self.owner, self._clock(), int(LEASE_S * 1000), limit, kinds))

    def _extend_leases(self) -> None:
        until = self._clock() + int(LEASE_S * 1000)
        held = list(self._leases)
        if held:
            self.change_rows(lambda store: [store.extend(job, self.owner, until) for job in held])

    def _run(self, job: ClaimedJob, reader: Reader) -> None:
        feature, handler = self._handlers[job.kind]
        self._leases[job.id] = time.monotonic()
        try:
            call = JobCall(
                job=job,
                reader=reader,
                settings=lambda project: self._settings(project).get(feature.name),
                now=self._clock(),
                state_dir=self._state_dir,
                cancelled=self._stopping.is_set,
                run=children.run_child,
                put=lambda file: put_file(file, self._footprint),
            )
            events = list(handler(call))
            # One transaction: if the lease is lost, `_finish` raises and the events are not stored either. Nobody waits
            # for its sync: after a power cut the job is there again.
            self._calls.call(
                lambda: self._pipeline.commit_events(events, also=lambda store: self._finish(store, job), durable=False)
            )
        except LeaseLost:
            self._log("job.lease-lost", job=job.kind)
        except Exception as error:
            self._failed(job, error)
        finally:
            self._leases.pop(job.id, None)

    def _finish(self, store: Store, job: ClaimedJob) -> None:
        if not store.finish(job.id, self.owner):
            raise LeaseLost

    def _failed(self, job: ClaimedJob, error: Exception) -> None:
        dead = job.attempts >= MAX_ATTEMPTS
        self._log.error("job.failed", error, job=job.kind, attempts=job.attempts, dead=dead)
        at = self._clock() + int(delay_s(job.attempts) * 1000)
        text = f"{type(error).__name__}: {error}"[:1000]
        given_up = [_gave_up(job, text, self._clock())] if dead else []

        def try_later(store: Store) -> None:
            store.retry(job.id, self.owner, at, text, dead)

        self._calls.call(lambda: self._pipeline.commit_events(given_up, also=try_later))


def _gave_up(job: ClaimedJob, error: str, now: int) -> Event:
    return Event(key=delivery_key(now), kind="job.failed", at=now, data={"job": job.kind, "id": job.id, "error": error})

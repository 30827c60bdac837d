"""A feature under test: on the real engine and a real SQLite store, without a daemon. Its jobs run when they are told to."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from holdfast.core.authority import Refusal, authorise
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, Feature, JobCall
from holdfast.core.job import ClaimedJob
from holdfast.core.ports import Ref
from holdfast.core.replay import Rebuild
from holdfast.core.state import FeatureState, HotDocuments, WorkingSet
from holdfast.stores.sqlite import SqliteStore
from tests.factories import AClock, an_engine

PROJECT = "/home/ada/engine"


def _no_program(argv: Any, **_: Mapping[str, Any]) -> Any:
    raise AssertionError(f"this feature runs no program and writes no file: {argv}")


class FeatureHarness:
    """What every feature's tests need; each adds the words of its own agents and people."""

    feature: ClassVar[Feature]
    settings_type: ClassVar[Any]
    features: ClassVar[tuple[Feature, ...]] = ()
    """All on the engine, in their order; the feature alone where none is named."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.store = SqliteStore(folder / "holdfast.db", backups=folder)
        self.clock = AClock()
        self.settings = self.settings_type.of(settings)
        given = {"clock": self.clock, "settings": lambda _project: {self.feature.name: self.settings}}
        self.engine = an_engine(self.store, *(self.features or (self.feature,)), **given)
        self.reader = self.store.reader()

    def take(self, events: Iterable[Event]) -> None:
        self.engine.handle(list(events))

    # ── as a person ────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, session: str = "", **args: Any) -> Call:
        return Call(
            args=args, reader=self.reader, settings=self.settings, now=self.clock(), session=session, project=PROJECT,
            state_dir=self.folder,
        )  # fmt: skip

    def view(self, name: str, **args: Any) -> Any:
        return self.feature.views[name](self.call(**args))

    def command(self, name: str, **args: Any) -> Any:
        call = self.call(**args)
        judged = authorise(self.feature.authority[name], call)
        if isinstance(judged, Refusal):
            raise CommandRefused(judged.text)
        result = self.feature.commands[name](call)
        self.take(result.events)
        return result.answer(self.reader) if callable(result.answer) else result.answer

    # ── as the daemon's worker ─────────────────────────────────────────────────────────────────────────────────────

    def job_call(self, job: ClaimedJob, run: Any = _no_program, put: Any = _no_program) -> JobCall:
        return JobCall(
            job=job, reader=self.reader, settings=lambda _project: self.settings, now=self.clock(),
            state_dir=self.folder, cancelled=lambda: False, run=run, put=put,
        )  # fmt: skip

    # ── what there is ──────────────────────────────────────────────────────────────────────────────────────────────

    def load_document(self, ref: Ref) -> Any:
        """Typed, as the feature declares it."""
        raw = self.reader.document(ref)
        return None if raw is None else self.engine.document_types[ref.kind].decode(raw)

    def state(self) -> FeatureState:
        return FeatureState(WorkingSet(self.store, HotDocuments(), self.engine.document_types))

    def waiting(self) -> list[str]:
        return [job["kind"] for job in self.reader.jobs()]

    def replayed(self) -> list[str]:
        """What differs between the documents and the log: nothing, ever (P5)."""
        rebuild = Rebuild(self.features or (self.feature,), self.reader)
        rebuild.read()
        return rebuild.differences()

    def close(self) -> None:
        self.reader.close()
        self.store.close()

"""Jobs where the store is a server: they are claimed beside the writer, who may be waiting for that server."""

from pathlib import Path

from holdfast.core.job import Job
from holdfast.daemon.worker import Worker
from holdfast.ingest.log import Log
from holdfast.ingest.writer import WriterCalls
from holdfast.stores import open_store
from tests.factories import NOON, a_counter, an_engine
from tests.ingest.test_pipeline import Harness
from tests.stores.conftest import postgres_url

__all__ = ["postgres_url"]


def test_jobs_on_a_server_are_claimed_without_the_writer(postgres_url: str, tmp_path: Path) -> None:
    feature = a_counter(jobs={"look": lambda _call: []})
    store = open_store(f"{postgres_url}&options=-c%20search_path%3Dclaimed_{tmp_path.stat().st_ino}")
    engine, calls = an_engine(store, feature), WriterCalls()
    calls.close()  # Whoever asked the writer for anything would be refused.
    worker = Worker(
        engine=lambda: engine, pipeline=Harness(tmp_path).pipeline, features=[feature], calls=calls,
        log=Log(tmp_path / "log"), settings=lambda _project: {}, clock=lambda: NOON, state_dir=tmp_path,
    )  # fmt: skip
    worker.enqueue([Job(kind="look", dedupe=f"d{n}") for n in range(2)])
    assert [job.dedupe for job in worker._claim(5, ["look"])] == ["d0", "d1"]
    assert worker._claim(5, ["look"]) == []
    worker.stop()
    store.close()

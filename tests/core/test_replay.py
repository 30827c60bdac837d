"""The sample of documents that `doctor` makes again from the log."""

from pathlib import Path

import msgspec

from holdfast.core.feature import version_key
from holdfast.core.replay import sample_differences
from holdfast.features.sessions import FEATURE
from holdfast.stores.sqlite import SqliteStore
from tests.factories import an_engine
from tests.features.sessions.story import Story


def test_a_document_that_the_log_does_not_give_is_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    an_engine(store, FEATURE).handle(Story().start().prompt("first").tool("c1").stop("ok").events)
    with store.transaction():
        store.set_meta(version_key(FEATURE), str(FEATURE.version))
    reader = store.reader()
    assert sample_differences([FEATURE], reader) == []
    row = next(row for row in reader.rows(FEATURE.name) if row.ref.kind == "session")
    changed = {**msgspec.json.decode(row.doc), "prompts": 7}
    with store.transaction():
        store.save([msgspec.structs.replace(row, doc=msgspec.json.encode(changed))])
    assert sample_differences([FEATURE], reader) == [f"sessions: session {row.ref.key} differs"]
    reader.close()
    store.close()

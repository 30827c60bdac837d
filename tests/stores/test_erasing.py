"""What must be forgotten leaves every table, on both engines."""

from holdfast.core.erase import eraser, probe
from holdfast.core.ports import EventQuery, Reader, Ref, Store
from tests.factories import NOON, a_job, a_row, an_event

TEXT = "the codename is Zebrafinch marmalade"


def test_rows_that_quote_it_are_rewritten_and_no_others(store: Store, reader: Reader) -> None:
    quoting = an_event(
        seq=1,
        kind="prompt.submitted",
        data={"prompt": f"Hi, {TEXT}!"},
        body=b'{"prompt": "Hi, the codename is Zebrafinch marm',
    )
    other = an_event(seq=2, kind="prompt.submitted", data={"prompt": "the codename is something else"}, body=b"{}")
    with store.transaction():
        store.append([quoting, other])
        store.save([a_row(doc={"title": TEXT})])
        store.enqueue([a_job(payload={"prompt": TEXT})], NOON)
    with store.transaction():
        assert store.rewrite(probe(TEXT), eraser(TEXT)) == 4
    store.vacuum_erased()
    first, second = reader.events(EventQuery(bodies=True))
    assert first.data.as_dict() == {"prompt": "Hi, [forgotten]!"}
    assert b"Zebrafinch" not in first.body
    assert second.data.as_dict() == {"prompt": "the codename is something else"}
    assert reader.state(Ref("session", "s-1")) == {"title": "[forgotten]"}

"""What must be forgotten leaves every table, on both engines."""

from holdfast.core.erase import Quotation, build_eraser
from holdfast.core.ports import EventQuery, Reader, Ref, Store
from tests.factories import NOON, a_job, a_row, an_event

TEXT = "the codename is Zebrafinch marmalade"
QUOTED = Quotation(TEXT)


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
        assert store.rewrite(QUOTED.probes, build_eraser([QUOTED])) == 4
    store.vacuum_erased()
    first, second = reader.events(EventQuery(bodies=True))
    assert first.data.as_dict() == {"prompt": "Hi, [forgotten]!"}
    assert b"Zebrafinch" not in first.body
    assert second.data.as_dict() == {"prompt": "the codename is something else"}
    assert reader.state(Ref("session", "s-1")) == {"title": "[forgotten]"}


def test_events_of_a_session_become_numbers(store: Store, reader: Reader) -> None:
    with store.transaction():
        store.append(
            [
                an_event(
                    seq=1, kind="prompt.submitted", session="gone", project="/p", data={"prompt": TEXT}, body=b"{}"
                ),
                an_event(seq=2, kind="prompt.submitted", session="stays", project="/p", data={"prompt": "hello"}),
            ]
        )
    with store.transaction():
        assert store.blank_events(("gone",), ()) == 1
    first, second = reader.events(EventQuery(bodies=True))
    assert (first.seq, first.kind, first.session, first.project, first.body) == (1, "event.erased", "", "", b"")
    assert (second.session, second.project, second.data.prompt) == ("stays", "/p", "hello")


def test_a_project_takes_its_sessions_and_the_folders_below(store: Store, reader: Reader) -> None:
    with store.transaction():
        store.append(
            [
                an_event(seq=1, session="a", project="/work/secret"),
                an_event(seq=2, session="a", project=""),
                an_event(seq=3, session="b", project="/work/secret/sub"),
                an_event(seq=4, session="b", project="/work/secrets"),
            ]
        )
    with store.transaction():
        assert store.blank_events((), ("/work/secret",)) == 3
    assert [e.project for e in reader.events(EventQuery())] == ["", "", "", "/work/secrets"]

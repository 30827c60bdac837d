"""The last 30 days in figures: sessions with prompts, checks by verdict, errors of several sessions first."""

from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.features.log import FEATURE
from holdfast.stores.sqlite import SqliteStore
from tests.factories import NOON, an_engine, an_event

DAY = 86_400_000


def figures(folder: Path, *events: Event, now: int = NOON) -> dict[str, Any]:
    store = SqliteStore(folder / "holdfast.db")
    an_engine(store, FEATURE).handle(list(events))
    reader = store.reader()
    found: dict[str, Any] = FEATURE.views["figures"](Call({}, reader, None, now))
    reader.close()
    store.close()
    return found


def prompt(session: str, at: int = NOON) -> Event:
    return an_event(kind="prompt.submitted", session=session, at=at, data={"prompt": "x"})


def failed(session: str, error: str, call: str = "c0", at: int = NOON) -> Event:
    data = {"error": error, "call": call, "ok": False}
    return an_event(kind="tool.failed", session=session, at=at, data=data)


def test_nothing_on_record(tmp_path: Path) -> None:
    assert figures(tmp_path)["sessions"] == 0


def test_an_old_history_is_shown_up_to_its_last_day(tmp_path: Path) -> None:
    then = NOON - 200 * DAY
    found = figures(tmp_path, prompt("a", then))
    assert (found["until"], found["since"], found["sessions"]) == (then, then - 30 * DAY, 1)


def test_what_is_older_is_not_counted(tmp_path: Path) -> None:
    found = figures(
        tmp_path,
        prompt("a", NOON - 31 * DAY),
        prompt("b", NOON - 2),
        failed("a", "fatal: no such branch", at=NOON - 31 * DAY),
    )
    assert (found["sessions"], found["failed_calls"]) == (1, 0)


def test_a_wrappers_text_is_no_prompt(tmp_path: Path) -> None:
    notice = an_event(kind="prompt.submitted", session="a", at=NOON, data={"prompt": "done", "synthetic": True})
    assert figures(tmp_path, prompt("a"), notice)["prompts"] == 1


def test_the_same_error_of_other_files_is_one_and_many_sessions_count_more_than_many_times(tmp_path: Path) -> None:
    events = [prompt("a")]
    events += [failed("a", "error: invalid flag") for _ in range(5)]
    events += [failed(name, f"error: cannot open /work/{name}.py") for name in "ab"]
    found = figures(tmp_path, *events)["errors"]
    assert [(one["sessions"], one["times"]) for one in found] == [(2, 2), (1, 5)]


def test_a_failing_check_is_no_error(tmp_path: Path) -> None:
    data = {"call": "c1", "kind": "test", "verdict": "failed"}
    check = an_event(kind="check.finished", session="a", at=NOON, data=data)
    found = figures(tmp_path, prompt("a"), failed("a", "1 failed", "c1"), check)
    assert found["checks"] == {"test": {"failed": 1}}
    assert found["failed_calls"] == 0

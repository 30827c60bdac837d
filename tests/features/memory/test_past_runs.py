"""`fix` and `how`: on request, from what was recorded here."""

import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.error_text import first_error, signature
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event, own_event
from holdfast.core.history import next_page
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.features.memory.past_runs import proven_commands
from tests.factories import a_key
from tests.features.memory.harness import MemoryHarness
from tests.harness import PROJECT

ERROR = "TypeError: cannot read property 'rows' of undefined\n    at load (/home/ada/engine/src/load.js:14:7)"
OTHER = "/home/ada/other"


def indexed(house: MemoryHarness) -> None:
    while page := next_page(house.reader, 500):
        with house.store.transaction():
            house.store.index_history(page.entries, str(page.before), str(page.after))


def repaired(house: MemoryHarness, session: str = "s-1", project: str = PROJECT, error: str = ERROR) -> None:
    house.prompt("fix it", session=session, project=project)
    house.ran("node run.js --all", ok=False, output=error, session=session, project=project)
    house.edited("/home/ada/engine/src/load.js", session=session, project=project)
    house.ran("node run.js --all", session=session, project=project)
    indexed(house)


def test_an_earlier_occurrence_with_other_paths_and_numbers_and_what_worked(house: MemoryHarness) -> None:
    repaired(house)
    answer = house.view("fix", text=ERROR.replace("load.js:14:7", "deep/load.js:99:1"))
    [found] = answer["found"]
    assert found["command"] == "node run.js --all"
    assert found["followed"] == ["edited load.js"] and found["worked"] == "node run.js --all"


def test_a_part_of_the_line_is_enough(house: MemoryHarness) -> None:
    repaired(house)
    assert house.view("fix", text="cannot read property 'rows' of undefined")["found"]
    assert house.view("fix", text="cannot read property 'columns' of undefined")["found"] == []


def test_an_error_that_was_never_resolved_says_so(house: MemoryHarness) -> None:
    house.prompt("fix it")
    house.ran("node run.js --all", ok=False, output=ERROR)
    house.ran("ls")
    indexed(house)
    assert [one["worked"] for one in house.view("fix", text=ERROR)["found"]] == [""]


def test_other_projects_only_when_asked_for(house: MemoryHarness) -> None:
    repaired(house, session="o-1", project=OTHER)
    assert house.view("fix", text=ERROR)["found"] == []
    assert len(house.view("fix", text=ERROR, everywhere=True)["found"]) == 1


def test_a_text_of_a_megabyte_and_none_at_all(house: MemoryHarness) -> None:
    repaired(house)
    noise = "plain progress line\n" * 50_000
    assert house.view("fix", text=f"{noise}{ERROR}")["found"]
    assert house.view("fix", text="x" * 1_000_000)["found"] == []
    with pytest.raises(CommandRefused):
        house.view("fix", text="  ")


@pytest.mark.long
def test_among_a_hundred_thousand_failures(tmp_path: Path) -> None:
    house = MemoryHarness(tmp_path)
    count = 100_000
    for start in range(0, count, 5_000):
        _stored(house, start)
    indexed(house)
    repaired(house)
    began = time.perf_counter()
    assert house.view("fix", text=ERROR)["found"]
    assert house.view("fix", text="error: module 7 failed to load from disk")["seen"] > 0
    assert time.perf_counter() - began < 5
    house.close()


def _stored(house: MemoryHarness, start: int) -> None:
    head = house.reader.head()
    events = [
        Event(
            key=a_key(), kind="tool.failed", at=house.clock.tick(1), session=f"s-{n % 50}", project=PROJECT, seq=head + place,
            agent="claude-code", tool="Bash",
            data={"action": "shell", "command": f"load {n}", "ok": False, "error": f"error: module {n} failed to load from disk"},
        )
        for place, n in enumerate(range(start, start + 5_000), 1)
    ]  # fmt: skip
    with house.store.transaction():
        house.store.append(events)


def check(at: int, command: str, verdict: str = "passed", **more: Any) -> Event:
    return own_event(
        CheckFinished(kind="test", command=command, verdict=verdict, **{"dir": ".", "selection": "all", **more}), at
    )


def test_commands_that_passed_by_folder_whole_suites_first() -> None:
    runs = [
        check(1, "pytest tests/test_a.py", selection="part"), check(2, "pytest tests/test_a.py", selection="part"),
        check(3, "make test"), check(4, "make test", "failed"), check(5, "npm test", dir="web"), check(6, "tox", "failed"),
    ]  # fmt: skip
    found = proven_commands(runs, "test")
    assert [(one.command, one.dir, one.passed, one.failed) for one in found] == [
        ("npm test", "web", 1, 0), ("make test", ".", 1, 1), ("pytest tests/test_a.py", ".", 2, 0),
    ]  # fmt: skip
    assert proven_commands(runs, "lint") == []


def test_an_unknown_kind_of_check_is_refused(house: MemoryHarness) -> None:
    assert house.view("how", kind="test")["commands"] == []
    with pytest.raises(CommandRefused):
        house.view("how", kind="deploy")


def test_signatures_are_equal_but_for_what_varies() -> None:
    one, other = (
        "zsh:1: open /a/b.txt:3: no such file (id 0123abcd99)",
        "(eval):7: open x/y.log:41: no such file (id ffffffffff)",
    )
    assert signature(one) == signature(other) == "open <path>:<n>: no such file (id <id>)"
    assert first_error("Exit code 1\nChunk ID: 1a\nOutput:\nall fine\nfatal: bad object") == "fatal: bad object"

"""Times as people type them, differences between documents, names that two projects share, hostile arguments."""

from datetime import datetime
from typing import Any

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.times import DAY, HOUR, MINUTE
from holdfast.features.project import FEATURE
from holdfast.features.project.document.schema import document_differences, filled_in
from holdfast.features.project.jobs.resolution import folder_name
from holdfast.features.project.views import parse_moment
from tests.factories import NOON
from tests.features.project.stage import ROOT, Stage


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2h", NOON - 2 * HOUR),
        ("3 days ago", NOON - 3 * DAY),
        ("15min", NOON - 15 * MINUTE),
        ("2025-10-09T08:00:00Z", 1_759_996_800_000),
        ("2025-10-09 10:00+02:00", 1_759_996_800_000),
    ],
)
def test_moments(text: str, wanted: int) -> None:
    assert parse_moment(text, NOON) == wanted


def test_a_clock_time_is_the_last_one_that_was() -> None:
    here = datetime.fromtimestamp(NOON / 1000).astimezone()
    assert parse_moment(here.strftime("%H:%M"), NOON) == int(here.replace(second=0, microsecond=0).timestamp() * 1000)
    assert NOON - DAY < parse_moment("23:59", NOON) <= NOON


@pytest.mark.parametrize("text", ["soon", "", "99:99", "2025-13-45", "9" * 30 + "d", "\x00"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(CommandRefused, match="is no time"):
        parse_moment(text, NOON)


def test_differences_are_leaves_and_lists_go_by_name() -> None:
    old = {"a": {"b": 1, "LAST_UPDATED": "x"}, "tasks": [{"id": "t1", "n": 1}, {"id": "t2", "n": 2}]}
    new = {"a": {"b": 2, "LAST_UPDATED": "y"}, "tasks": [{"id": "t2", "n": 3}]}
    assert list(document_differences(old, new)) == [
        {"path": "a.b", "before": 1, "after": 2},
        {"path": "tasks.t1", "before": {"id": "t1", "n": 1}, "after": None},
        {"path": "tasks.t2.n", "before": 2, "after": 3},
    ]


def test_an_old_file_keeps_its_words_on_todays_facts() -> None:
    observed = {
        "PROJECT": "now", "LAST_UPDATED": "t", "CURRENT_STATE": {"git": {"status": "dirty"}},
        "TASKS": {"P1_urgent": [{"gap_type": "unvalidated_changes", "description": "2 files need validation"}]},
    }  # fmt: skip
    old = {
        "PROJECT": "unknown", "CURRENT_STATE": {"git": {"status": "unknown"}, "other": 1},
        "TASKS": {"P1_urgent": [{"id": "task_001", "gap_type": "unvalidated_changes", "description": "Validate"}]},
    }  # fmt: skip
    found = filled_in(old, observed)
    assert found["PROJECT"] == "now"
    assert found["CURRENT_STATE"] == {"git": {"status": "dirty"}, "other": 1}
    assert found["TASKS"]["P1_urgent"][0]["description"] == "2 files need validation"


def test_two_projects_of_one_name_get_two_folders(stage: Stage) -> None:
    stage.say("project.observed", project="/home/u/work/app", facts={"name": "app", "folder": "app"})
    reader = stage.store.reader()
    assert folder_name(reader, "/home/u/work/app", "app") == "app"
    assert folder_name(reader, "/home/u/play/app", "app") == "app-play"
    assert folder_name(reader, "/x", "other") == "other"
    reader.close()


@pytest.mark.parametrize("name", sorted(FEATURE.commands))
@pytest.mark.parametrize(
    "args", [{}, {"lease": "x" * 1000}, {"lease": 5, "pid": "x"}, {"id": [], "set": {}, "ttl": "no"}]
)
def test_commands_refuse_what_makes_no_sense(stage: Stage, name: str, args: dict[str, Any]) -> None:
    reader = stage.store.reader()
    try:
        for project in ("", ROOT):
            try:
                FEATURE.commands[name](Call(args=args, reader=reader, settings=None, now=NOON, project=project))
            except CommandRefused as refused:
                assert refused.message
    finally:
        reader.close()


@pytest.mark.parametrize("name", sorted(FEATURE.views))
@pytest.mark.parametrize("args", [{}, {"at": "2h"}, {"at": "1"}, {"a": "x"}, {"state": [], "id": 5, "request": None}])
def test_views_answer_or_refuse(stage: Stage, name: str, args: dict[str, Any]) -> None:
    stage.git(branch="main")
    reader = stage.store.reader()
    try:
        assert (
            FEATURE.views[name](Call(args=args, reader=reader, settings=None, now=stage.now, project=ROOT)) is not None
        )
    except CommandRefused as refused:
        assert refused.message
    finally:
        reader.close()

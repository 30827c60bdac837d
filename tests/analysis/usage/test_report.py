"""Sums by group, five-hour blocks, and how they are shown."""

from datetime import UTC, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.analysis.usage.model import Usage, UsageRecord
from holdfast.analysis.usage.prices import load_table
from holdfast.analysis.usage.report import (
    BLOCK_MS,
    GROUPS,
    by_day,
    by_month,
    format_dollars,
    format_money,
    price_notes,
    reported_money,
    sum_all_records,
    sum_as_dict,
    sum_by_group,
    token_amounts,
    usage_blocks,
)
from holdfast.analysis.usage.spending import next_commit
from holdfast.core.times import HOUR
from tests.analysis.usage.kit import sample_home, scan_usage

TABLE = load_table()
NOON = 1_794_744_000_000  # 2026-11-15T12:00Z


def record(at=NOON, model="gpt-6-sol", spent=None, **more):
    spent = spent or Usage(input=1_000_000)
    return UsageRecord(agent="codex", id=f"{at}{model}{more}", at=at, spent=spent, said=spent, model=model, **more)


def test_groups():
    records = [
        record(session="a", turn_n=1, branch="main", project="/p"),
        record(session="a", turn_n=2, branch="fix", project="/p", lane="x"),
        record(session="b", model="unheard-of", project="/q"),
    ]
    groups = {name: [one.group for one in sum_by_group(records, group, TABLE)] for name, group in GROUPS.items()}
    assert groups["session"] == ["a", "b"]
    assert groups["turn"] == ["", "a/1", "a/2"]
    assert groups["branch"] == ["", "fix", "main"]
    assert groups["project"] == ["/p", "/q"]
    assert groups["model"] == ["gpt-6-sol", "unheard-of"]
    assert groups["lane"] == ["", "x"]
    first, second = sum_by_group(records, GROUPS["session"], TABLE)
    assert (first.cost, first.unpriced, first.calls, first.priced) == (4_000_000, set(), 2, 4_000_000)
    assert (second.priced, second.unpriced) == (None, {"unheard-of"})


def test_days_are_those_of_the_zone():
    late = record(at=NOON + 11 * HOUR + 1)
    assert by_day(UTC)(late) == "2026-11-15"
    assert by_day(timezone(timedelta(hours=2)))(late) == "2026-11-16"
    assert by_month(UTC)(late) == "2026-11"
    assert by_day(UTC)(record(at=0)) == "", "a time nobody told is no day"


def test_work_belongs_to_the_commit_after_it():
    commits = [(NOON, "c1"), (NOON + 10, "c2")]
    assert [next_commit(commits, NOON + n) for n in (-5, 0, 1, 11)] == ["c1", "c1", "c2", ""]
    assert next_commit([], NOON) == ""


def test_blocks_of_five_hours():
    times = [NOON + 60_000, NOON + 2 * HOUR, NOON + BLOCK_MS, NOON + 3 * BLOCK_MS]
    found = usage_blocks([record(at=at) for at in reversed(times)], TABLE)
    assert [(block.start, block.sum.calls) for block in found] == [
        (NOON, 2), (NOON + BLOCK_MS, 1), (NOON + 3 * BLOCK_MS, 1),
    ]  # fmt: skip
    assert found[0].is_open(NOON + HOUR) and not found[0].is_open(found[0].end)


@given(st.lists(st.integers(NOON, NOON + 10 * BLOCK_MS), max_size=30))
def test_every_use_is_in_one_block(times):
    found = usage_blocks([record(at=at) for at in times], TABLE)
    assert sum(block.sum.calls for block in found) == len(times)
    assert all(block.start <= block.sum.first <= block.sum.last < block.end for block in found)
    assert all(one.end <= two.start or two.sum.first - one.sum.last >= BLOCK_MS
               for one, two in pairwise(found))  # fmt: skip


@pytest.mark.parametrize(
    ("micro", "shown"),
    [(None, "–"), (0, "$0.00"), (1, "$0.000001"), (1500, "$0.0015"), (10_000, "$0.01"), (1_234_567_890, "$1,234.57")],
)
def test_money_as_people_read_it(micro, shown):
    assert format_dollars(micro) == shown


def test_what_is_not_told_is_not_zero():
    (one,) = sum_by_group([record(spent=Usage(output=3))], GROUPS["agent"], TABLE)
    assert (token_amounts(sum_as_dict(one)), format_money(sum_as_dict(one))) == ((None, 3, None, None, 3), "$0.00003")


def test_the_agents_own_figure_stands_beside_ours_where_they_differ():
    (same,) = sum_by_group([record(reported=2_000_000)], GROUPS["agent"], TABLE)
    (other,) = sum_by_group([record(reported=3_000_000)], GROUPS["agent"], TABLE)
    assert (format_money(sum_as_dict(same)), reported_money(sum_as_dict(same))) == ("$2.00", "")
    assert (format_money(sum_as_dict(other)), reported_money(sum_as_dict(other))) == ("$2.00", "$3.00")


def test_only_what_an_agent_reports_money_for_is_compared_with_it():
    (one,) = sum_by_group([record(reported=2_000_000), record()], GROUPS["agent"], TABLE)
    assert (one.cost, one.reported, one.differs) == (4_000_000, 2_000_000, False)


def test_models_without_a_price_are_named():
    records = [record(), record(model="unheard-of")]
    (one,) = sum_by_group(records, GROUPS["agent"], TABLE)
    assert format_money(sum_as_dict(one)) == "$2.00+"
    assert "unheard-of" in price_notes([one])[0]
    assert price_notes(sum_by_group([record()], GROUPS["agent"], TABLE)) == []


def test_a_table_of_a_recorded_session(tmp_path):
    records = list(scan_usage(sample_home(tmp_path, "claude-code")))
    whole = sum_all_records(records, TABLE)
    (shown,) = map(sum_as_dict, sum_by_group(records, GROUPS["model"], TABLE))
    assert shown["group"] == "claude-opus-5-5"
    assert (token_amounts(shown), format_money(shown)) == ((11_110, 518, 151_000, 340, 162_968), "$0.09")
    assert whole.cost == 11110 * 4 + 518 * 20 + 151000 // 5 + 300 * 5 + 40 * 8

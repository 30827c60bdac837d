"""A record as an event and back: the same key, the same cost."""

import msgspec
import pytest

from holdfast.analysis.usage.events import KIND, usage_event, usage_record
from holdfast.analysis.usage.model import Usage, UsageRecord
from holdfast.analysis.usage.prices import cost_of_record, load_table
from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS
from tests.analysis.usage.kit import EXPECTED, sample_home, scan_usage

TABLE = load_table()


@pytest.mark.parametrize("agent", EXPECTED)
def test_there_and_back(agent, tmp_path):
    for record in scan_usage(sample_home(tmp_path, agent)):
        event = usage_event(record)
        stored = msgspec.json.decode(msgspec.json.encode(event), type=Event)
        back = usage_record(stored)
        assert (stored.key, stored.kind) == (record.key, KIND) and KIND in HOOK_KINDS
        assert (back.spent, back.model, back.session, back.lane) == (
            record.spent, record.model, record.session, record.lane,
        )  # fmt: skip
        assert cost_of_record(TABLE, back) == cost_of_record(TABLE, record)


def test_the_rest_of_a_long_prompt_costs_what_a_long_prompt_costs():
    said = Usage(input=300_000, output=10)
    record = UsageRecord(agent="codex", id="r", at=1, spent=Usage(output=5), said=said, model="gpt-5.5")
    assert cost_of_record(TABLE, usage_record(usage_event(record))) == cost_of_record(TABLE, record) == 225


def test_other_events_tell_no_figures():
    assert usage_record(Event(key="k", kind="turn.ended", at=1)) is None
    assert usage_record(Event(key="k", kind=KIND, at=1)) is None

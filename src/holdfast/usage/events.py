"""A record of token use as an event. Its key is the record's own: read live, imported or copied, it is one event."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ids import bounded
from holdfast.usage.model import KINDS, UsageRecord

KIND = "model.answered"


def usage_event(record: UsageRecord, **more: Any) -> Event:
    """`tokens` has only the kinds that are told."""
    tokens = {kind: n for kind, n in zip(KINDS, record.spent.amounts(), strict=True) if n is not None}
    facts = {
        "answer": record.id, "model": record.model, "lane": record.lane, "turn": record.turn, "branch": record.branch,
        "reported": record.reported, "summed": record.summed,
    }  # fmt: skip
    return Event(
        key=record.key,
        kind=KIND,
        at=record.at,
        session=bounded(record.session),
        project=record.project,
        agent=record.agent,
        data={"tokens": tokens, **{name: value for name, value in facts.items() if value}, **more},
    )

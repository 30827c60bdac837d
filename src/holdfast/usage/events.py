"""A record of token use as an event. Its key is the record's own: read live, imported or copied, it is one event."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ids import bounded
from holdfast.usage.cost import prompt_of
from holdfast.usage.model import KINDS, Usage, UsageRecord

KIND = "model.answered"


def usage_event(record: UsageRecord, **more: Any) -> Event:
    """`tokens` has only the kinds that are told."""
    tokens = {kind: n for kind, n in zip(KINDS, record.spent.amounts(), strict=True) if n is not None}
    facts = {
        "answer": record.id, "model": record.model, "lane": record.lane, "turn": record.turn, "branch": record.branch,
        "reported": record.reported, "summed": record.summed,
        "prompt_tokens": 0 if record.said == record.spent else prompt_of(record.said),
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


def usage_record(event: Event) -> UsageRecord | None:
    """The record behind an event, for sums over the log; None for an answer that told no figures."""
    tokens = event.get("tokens")
    if event.kind != KIND or not isinstance(tokens, dict):
        return None
    spent = Usage(*(tokens.get(kind) for kind in KINDS))
    return UsageRecord(
        agent=event.agent,
        id=str(event.get("answer", event.key)),
        at=event.at,
        spent=spent,
        said=Usage(input=event.get("prompt_tokens")) if event.get("prompt_tokens") else spent,
        model=str(event.get("model", "")),
        session=event.session,
        lane=str(event.get("lane", "")),
        turn=str(event.get("turn", "")),
        project=event.project,
        branch=str(event.get("branch", "")),
        reported=event.get("reported"),
        summed=bool(event.get("summed")),
    )

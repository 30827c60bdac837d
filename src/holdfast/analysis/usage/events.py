"""A record of token use as an event, keyed by the record: read live, imported or copied, it is one event."""

from holdfast.analysis.usage.model import KINDS, Usage, UsageRecord
from holdfast.analysis.usage.prices import prompt_of
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.agent_events import ModelAnswered

KIND = ModelAnswered.KIND


def usage_event(record: UsageRecord, *, day: str = "", imported: str = "") -> Event:
    """`tokens` has only the reported kinds."""
    # `prompt_tokens` only if the call's whole prompt is larger than what this record adds.
    answered = ModelAnswered(
        tokens={kind: n for kind, n in zip(KINDS, record.spent.amounts(), strict=True) if n is not None},
        answer=record.id, model=record.model, lane=record.lane, turn=record.turn, turn_n=record.turn_n,
        branch=record.branch, reported=record.reported, summed=record.summed, day=day, imported=imported,
        prompt_tokens=0 if record.said == record.spent else prompt_of(record.said),
    )  # fmt: skip
    return Event(
        key=record.key,
        kind=KIND,
        at=record.at,
        session=bounded_name(record.session),
        project=record.project,
        agent=record.agent,
        data=answered,
    )


def usage_record(event: Event) -> UsageRecord | None:
    """The usage record of an event; None for an answer without figures."""
    data = event.data
    if not isinstance(data, ModelAnswered) or not data.tokens:
        return None
    spent = Usage(*(data.tokens.get(kind) for kind in KINDS))
    # `said` has the whole prompt as input, because later only its length matters.
    return UsageRecord(
        agent=event.agent, id=data.answer or event.key, at=event.at, spent=spent,
        said=Usage(input=data.prompt_tokens) if data.prompt_tokens else spent,
        model=data.model, session=event.session, lane=data.lane, turn=data.turn, turn_n=data.turn_n,
        project=event.project, branch=data.branch, reported=data.reported, summed=data.summed,
    )  # fmt: skip

"""Decides what to notify of, and sends it: in the background, so that no hook waits."""

import time
from collections.abc import Iterable, Sequence

from holdfast.core.attention import ATTENTION, MUTED, MUTED_KEY, OPEN, Attention, Need
from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall, State
from holdfast.core.held_questions import HELD
from holdfast.core.job import Job
from holdfast.core.kinds.attention_events import AttentionDue, AttentionSent
from holdfast.core.ports import Reader
from holdfast.features.attention import channels, looking, rules, state
from holdfast.features.attention.settings import DEFAULTS, AttentionSettings

NOTIFY, DELIVER = "attention.notify", "attention.deliver"
LOOK_AGAIN_S = 5.0
MOST_DOCUMENTS = 2_000
NOTIFIES = frozenset((*state.ASKING, "turn.ended", "turn.failed", "decision.made", "session.lost",
                      "workspace.changed", "uat.ended", "agent.unrecorded"))  # fmt: skip


def enqueue(_state: State, event: Event, settings: AttentionSettings | None) -> Iterable[Job]:
    if isinstance(event.data, AttentionDue):
        return [
            Job(
                kind=DELIVER_HERE if event.data.channel in HERE else DELIVER, dedupe=event.key, payload=_delivery(event)
            )
        ]
    if event.kind == "tool.started" and event.data.action != "ask":
        return []
    run_at = event.at + int((settings or DEFAULTS).batch_seconds * 1000)
    return [Job(kind=NOTIFY, dedupe=NOTIFY, run_at=run_at)]


HERE = ("desktop", "terminal", "page")
DELIVER_HERE = "attention.deliver_here"
"""To this machine's screens: quick, so it never waits behind a server that hangs."""


def _delivery(event: Event) -> dict[str, object]:
    return {"seq": event.seq, "key": event.key}


def notify(call: JobCall) -> Iterable[Event]:
    """Returns one event per channel, which requests its delivery: a notification is decided once, even after a crash."""
    documents = open_documents(call.reader)
    if not documents:
        return []
    settings = call.settings("") or DEFAULTS
    sessions = {doc.session for doc in documents}
    presence = looking.observe(call.state_dir, call.reader, sessions)
    local = time.localtime(call.now / 1000)
    muted = MUTED.load(call.reader, MUTED_KEY)
    chosen = rules.due(
        documents, presence, settings, call.now, local.tm_hour * 60 + local.tm_min, muted.until if muted else 0
    )
    return [_due_event(channel, needs, call.now) for channel, needs in chosen.items()]


def _due_event(channel: str, needs: list[Need], now: int) -> Event:
    return own_event(AttentionDue(channel=channel, needs=[one.id for one in needs]), now)


def open_documents(reader: Reader) -> list[Attention]:
    """Without agents that ran unrecorded and have ended: no event tells of that."""
    documents = [doc for _, doc in ATTENTION.list(reader, status=OPEN, limit=MOST_DOCUMENTS)]
    for doc in documents:
        doc.needs = [one for one in doc.needs if one.kind != "unrecorded" or looking.is_alive(one.input)]
    return documents


def deliver(call: JobCall) -> Iterable[Event]:
    event = call.reader.event(int(call.job.payload["seq"]))
    if event is None or not isinstance(event.data, AttentionDue):
        return []
    data, settings = event.data, call.settings("") or DEFAULTS
    needs = _still_open(call.reader, data.needs)
    skipped = "" if needs or data.test else "it was settled meanwhile"
    if not skipped:
        message = channels.Message(needs, _links(needs, settings, call.now), event.at, f"{event.seq}-{data.channel}")
        skipped = _sent(call, data.channel, message, settings)
    sent = AttentionSent(of=event.seq, channel=data.channel, needs=[one.id for one in needs], skipped=skipped)
    return [own_event(sent, call.now, once=event.seq)]


def _sent(call: JobCall, channel: str, message: channels.Message, settings: AttentionSettings) -> str:
    """Why it was not sent, where trying again would not help: this machine has no such screen now."""
    try:
        channels.send(channel, message, settings, _processes(call.reader, message.needs), call.run)
    except channels.NotSent as error:
        if channel not in HERE:
            raise
        return error.detail
    return ""


def _still_open(reader: Reader, ids: list[str]) -> list[Need]:
    wanted, owners = set(ids), dict.fromkeys(one.rpartition("#")[0] for one in ids)
    documents = filter(None, (ATTENTION.load(reader, owner) for owner in owners))
    return [need for doc in documents for need in doc.needs if need.id in wanted]


def _links(needs: list[Need], settings: AttentionSettings, now: int) -> dict[str, str]:
    """For questions whose agents wait, if the person gave an address to reach the dashboard at."""
    if not settings.address:
        return {}
    held = [need for need in needs if need.asks and HELD.get(need.key, now)]
    until = now + settings.link_minutes * 60_000
    return {need.id: f"{settings.address.rstrip('/')}/a/{HELD.new_link(need.key, until)}" for need in held}


def _processes(reader: Reader, needs: Sequence[Need]) -> list[int]:
    sessions = dict.fromkeys(need.session for need in needs if need.session)
    return [int(pid) for one in sessions if (pid := looking.agent_process(reader, one).get("pid"))]

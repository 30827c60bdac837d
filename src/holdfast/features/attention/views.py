"""What needs a person, for every door: the list, one need in full, the state of notifications."""

from typing import Any

import msgspec

from holdfast.core.attention import ATTENTION, MUTED, MUTED_KEY, Need, urgency
from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.held_questions import HELD
from holdfast.core.ports import EventQuery
from holdfast.features.attention.jobs import DELIVER, DELIVER_HERE, open_documents
from holdfast.features.attention.rules import is_set_up
from holdfast.features.attention.settings import DEFAULTS

MOST_LETTERS, MOST_SENT = 20, 50


def list_needs(call: Call) -> dict[str, Any]:
    """The most urgent first; of one project with `project`."""
    project = str(call.args.get("project") or "")
    needs = [one for doc in open_documents(call.reader) for one in doc.needs if not project or one.project == project]
    return {"needs": msgspec.to_builtins(sorted(needs, key=urgency)), "now": call.now}


def show_need(call: Call) -> dict[str, Any]:
    """Asked of the daemon, which alone knows whether the agent waits."""
    return _as_shown(call, find_need(call))


def show_linked(call: Call) -> dict[str, Any]:
    from holdfast.features.attention.commands import check_code

    link = str(call.args.get("link") or "")
    key = HELD.look_up(link, call.now)
    if not key:
        raise CommandRefused("this link was used already, is too old, or what it was for is settled")
    check_code(call, link)
    need = need_of_key(call, key)
    if need is None:
        raise CommandRefused("what this link was for is settled")
    return _as_shown(call, need)


def _as_shown(call: Call, need: Need) -> dict[str, Any]:
    held = HELD.get(need.key, call.now) if need.asks else None
    waits = {"until": held.until, "exact": dict(held.input) == need.input, "blocking": held.blocking} if held else None
    return {**msgspec.to_builtins(need), "waits": waits, "now": call.now}


def find_need(call: Call) -> Need:
    """By its id, or by the session that it is the only question of."""
    wanted = str(call.args.get("id") or "")
    doc = ATTENTION.load(call.reader, wanted.rpartition("#")[0] or wanted)
    needs = [one for one in doc.needs if one.id == wanted or (wanted == doc.session and one.asks)] if doc else []
    if not needs:
        raise CommandRefused("this is settled, or never was asked", fix="What is open: holdfast who")
    if len(needs) > 1 and not call.args.get("first"):
        raise CommandRefused("several questions are open", fix=f"Name one: {', '.join(one.id for one in needs)}")
    return needs[0]


def need_of_key(call: Call, key: str) -> Need | None:
    seq = call.reader.seqs_of_keys([key]).get(key, 0) if key else 0
    event = call.reader.event(seq) if seq else None
    doc = ATTENTION.load(call.reader, event.session) if event else None
    return next((one for one in doc.needs if one.key == key), None) if doc else None


def show_status(call: Call) -> dict[str, Any]:
    """Channels, whether they are muted, what was sent last, and what could not be sent."""
    settings, muted = call.settings or DEFAULTS, MUTED.load(call.reader, MUTED_KEY)
    failed = call.reader.events(EventQuery(kinds=("job.failed",), newest=True, limit=200))
    letters = [{"at": one.at, "error": one.data.error} for one in failed if one.data.job in (DELIVER, DELIVER_HERE)][
        -MOST_LETTERS:
    ]
    sent = call.reader.events(EventQuery(kinds=("attention.sent",), newest=True, limit=MOST_SENT))
    rows = [
        {"at": one.at, "channel": one.data.channel, "needs": one.data.needs, "skipped": one.data.skipped}
        for one in sent
    ]
    channels = {one for rule in settings.rules for one in rule.channels}
    return {
        "rules": msgspec.to_builtins(settings.rules), "muted_until": muted.until if muted else 0,
        "channels": {one: is_set_up(one, settings) for one in sorted(channels)}, "sent": rows, "dead_letters": letters,
        "now": call.now,
    }  # fmt: skip

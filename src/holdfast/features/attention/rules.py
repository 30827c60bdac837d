"""Decides what is sent where, and when. Pure."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from holdfast.core.attention import Attention, Need, urgency
from holdfast.features.attention.looking import Presence, Seat
from holdfast.features.attention.settings import AttentionSettings, Rule

MOST_AT_ONCE = 20
"""Needs in one notification; with more, it says how many."""
LATEST_MS = 7 * 86_400_000
"""What is older is not notified of any more, e.g. after an import or a long pause."""


def rule_for(need: Need, rules: Sequence[Rule]) -> Rule | None:
    return next((rule for rule in rules if _fits(rule, need)), None)


def _fits(rule: Rule, need: Need) -> bool:
    of_kind = need.kind in rule.kinds or "all" in rule.kinds
    return of_kind and (not rule.projects or any(fnmatchcase(need.project, one) for one in rule.projects))


def is_quiet(hours: str, minute: int) -> bool:
    """`minute`: of the local day. Hours may go over midnight."""
    if not hours:
        return False
    first, last = (int(one[:2]) * 60 + int(one[3:]) for one in hours.split("-"))
    return first <= minute < last if first <= last else minute >= first or minute < last


def is_looking(need: Need, doc: Attention, presence: Presence, settings: AttentionSettings, now: int) -> bool:
    """Whether the person sees it anyway. What nothing tells does not count as looking."""
    if presence.page_visible:
        return True
    seat = presence.seats.get(need.session, Seat())
    if seat.focused is not None:
        return seat.focused
    window = settings.typed_seconds
    typed = doc.typed_at and 0 <= now - doc.typed_at < window * 1000
    return bool(typed) or (seat.idle_s is not None and seat.idle_s < window)


def due(
    docs: Iterable[Attention], presence: Presence, settings: AttentionSettings, now: int, minute: int, muted_until: int
) -> dict[str, list[Need]]:
    """The needs to notify of now, by channel, the most urgent first. What is not due now is asked about again."""
    chosen: dict[str, list[Need]] = {}
    # A mute is at most a week long, so a clock that jumped back does not silence for ever.
    if now < muted_until <= now + LATEST_MS:
        return chosen
    for doc in docs:
        for need in doc.needs:
            for channel in _channels(need, doc, presence, settings, now, minute):
                chosen.setdefault(channel, []).append(need)
    return {channel: sorted(needs, key=urgency) for channel, needs in chosen.items()}


def _channels(
    need: Need, doc: Attention, presence: Presence, settings: AttentionSettings, now: int, minute: int
) -> list[str]:
    rule = rule_for(need, settings.rules)
    if rule is None or now - need.since > LATEST_MS or is_quiet(rule.quiet_hours, minute):
        return []
    left: list[str] = [
        channel for channel in rule.channels if channel not in need.sent and is_set_up(channel, settings)
    ]
    if not left or (not rule.while_looking and is_looking(need, doc, presence, settings, now)):
        return []
    return left


def is_set_up(channel: str, settings: AttentionSettings) -> bool:
    addresses = {"webhook": settings.webhook, "ntfy": settings.ntfy, "chat": settings.chat}
    return bool(settings.mail.server and settings.mail.to) if channel == "email" else addresses.get(channel, "-") != ""

"""Addresses that are secrets themselves: who knows one may post."""

import re

from holdfast.core.redact.rule import Match, Rule, Span, label

_WEBHOOK = label("webhook")
_PATTERN = re.compile(
    rb"k(?<=hook)s(?:(?<=/hooks)\.slack\.com/(?:services|workflows|triggers)/[a-z0-9/_-]{20,}+"
    rb"|(?<=api/webhooks)/\d{5,25}/[a-z0-9_-]{20,}+)"
)


def _webhook(_body: bytes, _low: bytes, match: Match) -> Span | None:
    return match.start(), match.end(), _WEBHOOK


WEBHOOK = Rule(_PATTERN, _webhook, low=True)

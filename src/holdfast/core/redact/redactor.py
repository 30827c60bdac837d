"""Finds the spans and replaces them."""

from collections.abc import Iterable, Iterator

from holdfast.core.redact import patterns as own
from holdfast.core.redact.names import NAMES, custom_name
from holdfast.core.redact.prefixes import PREFIXES
from holdfast.core.redact.rule import Match, Rule, Span

_MOST_ROUNDS = 4


class Redactor:
    """`names`: further names whose values are secret; `patterns`: regular expressions; `keep`: exact texts to leave."""

    def __init__(self, names: Iterable[str] = (), patterns: Iterable[str] = (), keep: Iterable[str] = ()) -> None:
        rules = [*NAMES, *PREFIXES, *(custom_name(name) for name in names if name)]
        # Taken apart once: in a text without secrets, getting at the parts would cost a tenth of the whole.
        self._looks = [(rule.pattern.search, rule.low, rule.gate, rule) for rule in rules]
        self._patterns = own.compiled(patterns)
        self._keep = frozenset(text.encode() for text in keep)

    def redact(self, body: bytes) -> tuple[bytes, int]:
        """Never raises. Doing it twice changes nothing: it is done until nothing is found."""
        count = 0
        for _ in range(_MOST_ROUNDS):
            found = self._spans(body)
            if not found:
                break
            body = _replaced(body, found)
            count += len(found)
        return body, count

    def _spans(self, body: bytes) -> list[Span]:
        low = body.lower()
        found: list[Span] = []
        for search, lowered, gate, rule in self._looks:
            text = low if lowered else body
            if (not gate or gate in text) and search(text):
                found += _search(rule, body, low)
        if self._patterns:
            found += own.found(body, self._patterns)
        if self._keep:
            found = [span for span in found if body[span[0] : span[1]] not in self._keep]
        return _joined(found) if len(found) > 1 else found


def _search(rule: Rule, body: bytes, low: bytes) -> Iterator[Span]:
    """What lies inside a span that was found is not looked at again: work stays linear on any input."""
    done = 0
    for match in rule.pattern.finditer(low if rule.low else body):
        if match.start() >= done and (span := _handled(rule, body, low, match)):
            done = span[1]
            yield span


def _handled(rule: Rule, body: bytes, low: bytes, match: Match) -> Span | None:
    try:
        return rule.handle(body, low, match)
    except Exception:  # a rule's fault must neither stop the hook nor the other rules
        return None


def _joined(found: list[Span]) -> list[Span]:
    """Where two overlap, the span is both together and the name is the first one's."""
    found.sort(key=lambda span: (span[0], -span[1]))
    joined = [found[0]]
    for span in found[1:]:
        last = joined[-1]
        if span[0] < last[1]:
            joined[-1] = (last[0], max(last[1], span[1]), last[2])
        else:
            joined.append(span)
    return joined


def _replaced(body: bytes, found: list[Span]) -> bytes:
    parts, at = [], 0
    for start, end, replacement in found:
        parts += [body[at:start], replacement]
        at = end
    return b"".join([*parts, body[at:]])

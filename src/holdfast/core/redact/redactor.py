"""Finds the spans and replaces them."""

from collections.abc import Iterable, Sequence

from holdfast.core.redact import patterns as own
from holdfast.core.redact.names import NAMES, custom_name
from holdfast.core.redact.prefixes import PREFIXES
from holdfast.core.redact.rule import Rule, Span
from holdfast.core.redact.sieve import Sieve

_MOST_ROUNDS = 4


class Redactor:
    """`names`: further names whose values are secret; `patterns`: regular expressions; `keep`: exact texts to leave."""

    def __init__(self, names: Iterable[str] = (), patterns: Iterable[str] = (), keep: Iterable[str] = ()) -> None:
        self._sieve = Sieve([*NAMES, *PREFIXES, *(custom_name(name) for name in names if name)])
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
        for rule in self._sieve.pick(body, low):
            found += self._search(rule, body, low)
        if self._patterns:
            found += own.spans(body, self._patterns)
        if self._keep:
            found = [span for span in found if body[span[0] : span[1]] not in self._keep]
        return _joined(found) if len(found) > 1 else found

    def _search(self, rule: Rule, body: bytes, low: bytes) -> Sequence[Span]:
        try:
            return [*rule.search(body, low)]
        except Exception:  # one rule's fault must neither stop the hook nor the other rules
            return ()


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

"""Which rules can match at all: a tenth of the work of looking for each literal in the whole body.

The body is folded to a few rare letters, everything else deleted. What holds a literal also holds the folded literal,
because each byte is folded by itself; and the folded body has a tenth of the length. Literals whose letters are all
common ("token") are looked for in the body itself.
"""

from collections.abc import Iterable, Sequence

from holdfast.core.redact.rule import Rule

_KEPT = b"pwkyghxzfb_AIJG"
_LOWERED = bytes(c + 32 if 65 <= c <= 90 and c not in _KEPT else c for c in range(256))
_FOLD = bytes(0x5F if c == 0x2D else _LOWERED[c] for c in range(256))
_DELETED = bytes(c for c in range(256) if _FOLD[c] not in _KEPT)
_SHORTEST = 2


def folded(text: bytes) -> bytes:
    return text.translate(_FOLD, _DELETED)


class Sieve:
    def __init__(self, rules: Sequence[Rule]) -> None:
        rare: dict[bytes, dict[Rule, None]] = {}
        common: dict[bytes, dict[Rule, None]] = {}
        for rule in rules:
            for literal in rule.literals:
                for cased in _cases(literal):
                    short = folded(cased)
                    if len(short) >= _SHORTEST:
                        rare.setdefault(short, {})[rule] = None
                    else:
                        common.setdefault(literal.lower(), {})[rule] = None
        self._rare = [(short, tuple(found)) for short, found in _without_longer(rare).items()]
        self._common = [(literal, tuple(found)) for literal, found in common.items()]

    def pick(self, body: bytes, low: bytes) -> Iterable[Rule]:
        """Usually nothing. A rule too many costs time, a rule too few would be a leak."""
        rest = body.translate(_FOLD, _DELETED)
        found: list[tuple[Rule, ...]] = [rules for short, rules in self._rare if short in rest]
        found += [rules for literal, rules in self._common if literal in low]
        return dict.fromkeys(rule for rules in found for rule in rules) if found else ()


def _cases(literal: bytes) -> set[bytes]:
    """As written; and where a rule ignores case, it is written in lower case."""
    return {literal, literal.upper(), literal.capitalize()} if literal.islower() else {literal}


def _without_longer(rare: dict[bytes, dict[Rule, None]]) -> dict[bytes, dict[Rule, None]]:
    """What holds a longer fold holds the shorter one inside it: one look serves both."""
    kept: dict[bytes, dict[Rule, None]] = {}
    for short in sorted(rare, key=len):
        home = next((k for k in kept if k in short), short)
        kept.setdefault(home, {}).update(rare[short])
    return kept

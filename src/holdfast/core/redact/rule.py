"""What a rule is.

Speed: the regex engine finds one leading letter five times faster than a leading word or a choice of letters. So every
pattern begins with one letter that is rare, or the rarest of its word, and looks behind for what stands before it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

Span = tuple[int, int, bytes]
"""(start, end, the replacement). Never cuts an escape sequence of JSON in two, never holds a bare quote."""

Match = re.Match[bytes]
Handle = Callable[[bytes, bytes, Match], Span | None]
"""(body, body in lower case, match) → what to replace, if it is a secret."""


class Rule(NamedTuple):
    pattern: re.Pattern[bytes]
    handle: Handle
    low: bool = False
    """Look in the lower-cased body. It has the same length: only ASCII is lowered."""
    gate: bytes = b""
    """A byte so rare that it is worth a look whether it is there at all."""


def together(letter: bytes, *rules: Rule, then: bytes = b"") -> Rule:
    """One look for rules that begin with the same letter: going through the text costs more than trying two at each.
    `then`: the bytes of which one must follow, where the letter is a common one."""
    rests = (b"(?P<r%d>%b)" % (n, rule.pattern.pattern.removeprefix(letter)) for n, rule in enumerate(rules))

    def handle(body: bytes, low: bytes, match: Match) -> Span | None:
        return rules[int((match.lastgroup or "r0")[1:])].handle(body, low, match)

    ahead = b"(?=[%b])" % then if then else b""
    return Rule(re.compile(letter + ahead + b"(?:" + b"|".join(rests) + b")"), handle, low=rules[0].low)


def run(plain: bytes, between: bytes) -> bytes:
    """As many bytes of the class `plain` as there are, with `between` among them: `(?:plain|between)*` in big steps.

    Not `(?:…)*+`: Python before 3.11.5 gives up where such a group could be matched in another way.
    """
    return b"%b*+(?:(?:%b)%b*+)*" % (plain, between, plain)


def label(what: str) -> bytes:
    return b"[redacted:" + what.encode() + b"]"


def begins_word(body: bytes, start: int) -> bool:
    """Also right after `\\n` or `\\u201c`, as line breaks and quotation marks are written inside JSON."""
    return not start or not body[start - 1 : start].isalnum() or escape_around(body, start - 1) is not None


def escape_around(body: bytes, at: int) -> tuple[int, int] | None:
    """The escape sequence that this byte is part of, if it is; not counting the backslash itself."""
    for first in range(at - 1, max(-1, at - 6), -1):
        if body[first] == 0x5C and not escaped(body, first):
            end = first + (6 if body[first + 1 : first + 2] == b"u" else 2)
            return (first, end) if at < end else None
    return None


def escaped(body: bytes, at: int) -> bool:
    """Whether an odd number of backslashes stands before it."""
    first = at
    while first and body[first - 1] == 0x5C:
        first -= 1
    return (at - first) % 2 == 1


def aligned(body: bytes, start: int) -> int:
    """Where text begins that was found at `start`: the `n` of `\\npm_…` belongs to the line break before it."""
    return start + escaped(body, start)

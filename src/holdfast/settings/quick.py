"""Is a regular expression sure to be quick? A repository may hold any, and a hook waits for the answer."""

import re
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parse  # type: ignore[attr-defined]
from typing import Any

LONGEST = 500
MOST_REPEATS = 1
"""Of other things than blanks, which are taken as single ones before a pattern is tried."""
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
SIMPLE = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


def is_quick(pattern: Any) -> bool:
    """At most one open repetition and none inside another, nothing that looks back: then time is at most quadratic.

    What is no pattern at all is for the validation to say, not a matter of trust."""
    if not isinstance(pattern, str):
        return True
    if len(pattern) > LONGEST:
        return False
    try:
        return _count(sre_parse.parse(pattern)) <= MOST_REPEATS
    except (re.error, OverflowError, RecursionError, _Slow) as error:
        return not isinstance(error, _Slow)


class _Slow(Exception):
    """No need to look further."""


def _count(parsed: Any) -> int:
    return sum(_repeats(op, argument) for op, argument in parsed)


def _repeats(op: Any, argument: Any) -> int:
    if op in (sre.GROUPREF, sre.GROUPREF_EXISTS):
        raise _Slow
    if op in REPEATS and argument[1] > 1:
        if not _fixed(argument[2]):
            raise _Slow
        return 0 if _only_blanks(argument[2]) else 1
    return sum(_count(part) for part in _parts(op, argument))


def _parts(op: Any, argument: Any) -> list[Any]:
    if op is sre.BRANCH:
        return list(argument[1])
    if op in (sre.SUBPATTERN, sre.ASSERT, sre.ASSERT_NOT, *REPEATS):
        return [argument[-1]]
    return [argument] if isinstance(argument, sre_parse.SubPattern) else []


def _fixed(body: Any) -> bool:
    """One way only to match a given text: no choice and no repetition inside."""
    return all(op in SIMPLE or (op is sre.SUBPATTERN and _fixed(argument[-1])) for op, argument in body)


def _only_blanks(body: Any) -> bool:
    return len(body) == 1 and body[0] == (sre.IN, [(sre.CATEGORY, sre.CATEGORY_SPACE)])

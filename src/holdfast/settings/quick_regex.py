"""Checks that a regular expression is certainly fast."""

import re
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parse  # type: ignore[attr-defined]
from typing import Any

# In characters.
LONGEST = 500
MOST_REPEATS = 1
"""Repeats of non-blanks, which are treated as single characters before a pattern is tried."""
# Names of Python's regular-expression parser, which has no public form.
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
SIMPLE = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


def is_quick(pattern: Any) -> bool:
    """At most one open repetition, none nested, no back-references: at most quadratic time.

    Invalid patterns are left to validation.
    """
    if not isinstance(pattern, str):
        return True
    if len(pattern) > LONGEST:
        return False
    try:
        return _count_repeats(sre_parse.parse(pattern)) <= MOST_REPEATS
    # An invalid pattern is reported by validation.
    except (re.error, OverflowError, RecursionError, _Slow) as error:
        return not isinstance(error, _Slow)


class _Slow(Exception):
    """Stops the search."""


def _count_repeats(parsed: Any) -> int:
    return sum(_repeats_of_op(op, argument) for op, argument in parsed)


def _repeats_of_op(op: Any, argument: Any) -> int:
    # Back-references can take exponential time.
    if op in (sre.GROUPREF, sre.GROUPREF_EXISTS):
        raise _Slow
    # `?` and `{1}` repeat nothing.
    if op in REPEATS and argument[1] > 1:
        # A choice or repetition inside a repetition can take exponential time.
        if not _is_fixed(argument[2]):
            raise _Slow
        return 0 if _only_blanks(argument[2]) else 1
    return sum(_count_repeats(part) for part in _nested_patterns(op, argument))


def _nested_patterns(op: Any, argument: Any) -> list[Any]:
    if op is sre.BRANCH:
        return list(argument[1])
    if op in (sre.SUBPATTERN, sre.ASSERT, sre.ASSERT_NOT, *REPEATS):
        return [argument[-1]]
    return [argument] if isinstance(argument, sre_parse.SubPattern) else []


def _is_fixed(body: Any) -> bool:
    """Return whether it matches a text in one way only: no choice and no repetition."""
    return all(op in SIMPLE or (op is sre.SUBPATTERN and _is_fixed(argument[-1])) for op, argument in body)


def _only_blanks(body: Any) -> bool:
    return len(body) == 1 and body[0] == (sre.IN, [(sre.CATEGORY, sre.CATEGORY_SPACE)])

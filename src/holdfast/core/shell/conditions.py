"""Conditions whose outcome follows from what is known: comparisons of exit statuses and of literal text."""

from fnmatch import fnmatchcase

from holdfast.core.shell.expand import parse_integer, resolve_part, value_text
from holdfast.core.shell.flow import UNKNOWN_STATUS, Path, Status, known_status
from holdfast.core.shell.syntax import UNKNOWN, Word

_EQUAL = frozenset(("-eq", "=", "=="))
_DIFFERENT = frozenset(("-ne", "!="))


def evaluate_test(path: Path, words: tuple[Word, ...]) -> Status:
    """The status of `[ words ]`; unknown unless it compares a status with a number, or known text."""
    if len(words) == 3:
        return _comparison_status(path, words[0], _plain_text(path, words[1]), words[2])
    if len(words) == 2:
        return _unary_status(_plain_text(path, words[0]), _plain_text(path, words[1]))
    if len(words) == 1:
        text = _plain_text(path, words[0])
        return UNKNOWN_STATUS if UNKNOWN in text else known_status(0 if text else 1)
    return UNKNOWN_STATUS


def _plain_text(path: Path, word: Word) -> str:
    return "".join(value_text(resolve_part(path, part)) for part in word.parts)


def _unary_status(operator: str, operand: str) -> Status:
    if operator == "!":
        return UNKNOWN_STATUS
    if UNKNOWN in operand or operator not in ("-n", "-z"):
        return UNKNOWN_STATUS
    return known_status(0 if bool(operand) == (operator == "-n") else 1)


def _comparison_status(path: Path, left: Word, operator: str, right: Word) -> Status:
    status = _as_status(path, left)
    other = _plain_text(path, right)
    if status is not None:
        return _compare_status(status, operator, other)
    text = _plain_text(path, left)
    if UNKNOWN in text or UNKNOWN in other:
        return UNKNOWN_STATUS
    return _compare_text(text, operator, other)


def _as_status(path: Path, word: Word) -> Status | None:
    if len(word.parts) != 1:
        return None
    part = word.parts[0]
    # Inside of `(( ))` a variable stands without a dollar sign.
    if part.kind == "text":
        value = path.variables.get(part.text)
        return value.status if value else None
    return resolve_part(path, part).status


def _compare_status(status: Status, operator: str, other: str) -> Status:
    if status.kind == "code":
        return _compare_text(str(status.code), operator, other)
    if other == "0" and operator in _EQUAL:
        return status
    # An exit code is never negative, so `-gt 0` means `-ne 0`.
    if other == "0" and operator in (*_DIFFERENT, "-gt", ">") and status.kind == "of":
        return Status("not", invocation=status.invocation)
    return UNKNOWN_STATUS


def _compare_text(left: str, operator: str, right: str) -> Status:
    if operator in ("=", "=="):
        return known_status(0 if fnmatchcase(left, right) else 1)
    if operator == "!=":
        return known_status(1 if fnmatchcase(left, right) else 0)
    one, two = parse_integer(left), parse_integer(right)
    if one is None or two is None:
        return UNKNOWN_STATUS
    outcomes = {
        "-eq": one == two, "-ne": one != two, "-lt": one < two, "<": one < two, "-le": one <= two, "<=": one <= two,
        "-gt": one > two, ">": one > two, "-ge": one >= two, ">=": one >= two,
    }  # fmt: skip
    return known_status(0 if outcomes[operator] else 1) if operator in outcomes else UNKNOWN_STATUS

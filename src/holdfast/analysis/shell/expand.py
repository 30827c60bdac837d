"""Expands words to fields or output pieces, and evaluates conditions."""

import operator
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from holdfast.analysis.shell.flow import UNKNOWN_STATUS, OutputPiece, Path, Pieces, Status, Value, known_status
from holdfast.analysis.shell.syntax import UNKNOWN, Assignment, Part, Word
from holdfast.analysis.shell.word_lists import word_list

# At most 18 digits: Python refuses very long integers.
_INTEGER = re.compile(r"-?[0-9]{1,18}")
# `{a,b}` or `{1..9}`, without blanks or further braces inside.
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*|-?[0-9]{1,18}\.\.-?[0-9]{1,18})\}")
# `name[index]`.
_SUBSCRIPT = re.compile(r"^(\w+)\[([^\]]*)\]$")
MAX_FIELDS = 400
MAX_BRACES = 8


def capture_name(part: Part) -> str:
    """The variable under which the output of one substitution is kept."""
    return f"$({id(part)})"


def lookup_variable(path: Path, name: str) -> Value | None:
    """None when nothing in the command says what the variable holds."""
    if name == "?":
        return Value(status=path.status)
    if name in ("PWD", "OLDPWD"):
        return Value(path.cwd if name == "PWD" else UNKNOWN)
    match = _SUBSCRIPT.match(name)
    if match and match[1] == "PIPESTATUS":
        return _pipe_status(path, match[2])
    if match:
        return _array_element(path.variables.get(match[1]), match[2])
    named = path.variables.get(f"&{name}")  # `declare -n`.
    value = path.variables.get(named.text if named is not None else name)
    if value is None and name in word_list("home_like"):
        return Value("~")
    return value


def parse_integer(text: str) -> int | None:
    """None unless it is an integer of ordinary size."""
    return int(text) if _INTEGER.fullmatch(text) else None


def _pipe_status(path: Path, index: str) -> Value:
    members = path.pipestatus or (path.status,)
    number = parse_integer(index)
    if number is None:
        return Value(UNKNOWN)
    return Value(status=members[number]) if -len(members) <= number < len(members) else Value(UNKNOWN)


def _array_element(value: Value | None, index: str) -> Value | None:
    if value is not None and value.fields is not None:
        if index in ("@", "*"):
            return value
        at = int(index) if index.isdecimal() else len(value.fields)
        return Value(value.fields[at]) if at < len(value.fields) else Value(UNKNOWN)
    if value is None or not value.pieces:
        return Value(UNKNOWN)
    # An array that was filled from output: one element is a choice of its lines.
    return Value(pieces=tuple(piece.through("lines") for piece in value.pieces))


def resolve_part(path: Path, part: Part) -> Value:
    """The value of one expansion."""
    if part.kind == "text":
        return Value(part.text)
    if part.kind in ("substitution", "process"):
        return path.variables.get(capture_name(part), Value(UNKNOWN))
    if part.kind == "number":
        return Value(status=UNKNOWN_STATUS)
    if part.kind == "unknown":
        return _changed_value(path, part)
    value = lookup_variable(path, part.text)
    if part.default is not None:
        return _with_default(path, part, value)
    return Value(UNKNOWN) if value is None else value


# `${x//a/b}`, `${x:1:2}`, `${!x}`, `${x^^}`: groups are the sign of an indirection, the name, the operator, its operands.
_OPERATION = re.compile(r"^\$\{(!?)(\w+)(?:(//?|:|\^\^?|,,?|##?|%%?)(.*))?\}$", re.S)
_SLICE = re.compile(r"\s*(-?\d+)(?::\s*(-?\d*)\s*)?")
_PATTERN = re.compile(r"[*?\[\\'\"]")


def _changed_value(path: Path, part: Part) -> Value:
    """Applies operations such as `${x//a/b}` to known text."""
    match = _OPERATION.match(part.operator)
    value = lookup_variable(path, match[2]) if match else None
    text = value_text(value) if value is not None else UNKNOWN
    if match is None or UNKNOWN in text:
        return Value(UNKNOWN)
    sign, _, change, operand = match.groups(default="")
    if "$" in operand or "`" in operand:
        return Value(UNKNOWN)
    if sign:
        return (lookup_variable(path, text) if not change else None) or Value(UNKNOWN)
    return Value(_CHANGES[change](text, operand))


def _substring(text: str, operand: str) -> str:
    match = _SLICE.fullmatch(operand)
    if match is None:
        return UNKNOWN
    rest = text[int(match[1]) :]
    return rest[: int(match[2])] if match[2] else rest


def _replacement(count: int) -> Callable[[str, str], str]:
    def replace(text: str, operand: str) -> str:
        pattern, _, new = operand.partition("/")
        return UNKNOWN if _PATTERN.search(pattern) else text.replace(pattern, new.strip("'\""), count)

    return replace


def _cut(take_off: Callable[[str, str], str]) -> Callable[[str, str], str]:
    return lambda text, pattern: UNKNOWN if _PATTERN.search(pattern) else take_off(text, pattern)


_CHANGES: dict[str, Callable[[str, str], str]] = {
    "": lambda text, _: text,
    "^^": lambda text, _: text.upper(),
    ",,": lambda text, _: text.lower(),
    "^": lambda text, _: text[:1].upper() + text[1:],
    ",": lambda text, _: text[:1].lower() + text[1:],
    ":": _substring,
    "/": _replacement(1),
    "//": _replacement(-1),
    **dict.fromkeys(("#", "##"), _cut(str.removeprefix)),
    **dict.fromkeys(("%", "%%"), _cut(str.removesuffix)),
}


def _with_default(path: Path, part: Part, value: Value | None) -> Value:
    empty = value is None or not (value.text or value.pieces or value.status)
    # `${x:+word}` takes the word where the variable is set.
    if part.operator == "+":
        empty = not empty
    if not empty or part.default is None:
        return value or Value("")
    return Value(" ".join(expand_word(path, part.default)))


def value_text(value: Value) -> str:
    if value.status is not None:
        return str(value.status.code) if value.status.kind == "code" else UNKNOWN
    if value.pieces:
        plain = all(piece.invocation < 0 and piece.status is None and not piece.filters for piece in value.pieces)
        return "".join(piece.text for piece in value.pieces).rstrip("\n") if plain else UNKNOWN
    return value.text


def expand_word(path: Path, word: Word) -> list[str]:
    """The fields of one word: expansions outside of quotes are split at blanks."""
    listed = _listed_fields(path, word)
    if listed is not None:
        return list(listed)
    fields = _word_fields(path, word)
    # The shell expands braces before variables: a brace that comes out of a variable stays as it is.
    if any(part.kind != "text" or part.quoted for part in word.parts):
        return fields
    return [done for field in fields for done in _expand_braces(field)]


def _listed_fields(path: Path, word: Word) -> tuple[str, ...] | None:
    """`"$@"` and `"${a[@]}"` are one field for each element, not one text."""
    first = word.parts[0] if len(word.parts) == 1 else None
    return resolve_part(path, first).fields if first and first.quoted and _is_list(first) else None


def _word_fields(path: Path, word: Word) -> list[str]:
    fields: list[str] = []
    current: str | None = None
    for part in word.parts:
        text = value_text(resolve_part(path, part))
        if part.quoted or part.kind == "text":
            pieces = [text] if text or part.quoted else []
        else:
            # A blank at the beginning ends the field before it.
            blank = current is not None and text[:1].isspace()
            pieces = [""] * blank + _split_fields(path, text) if text.strip() else []
        if pieces:
            *done, current = [(current or "") + pieces[0], *pieces[1:]]
            fields += done
    return fields if current is None else [*fields, current]


def _split_fields(path: Path, text: str) -> list[str]:
    separators = path.variables.get("IFS")
    # Blank or unknown IFS: split at blanks.
    if separators is None or separators.pieces or not separators.text.strip() or UNKNOWN in separators.text:
        return text.split()
    return re.split(f"[{re.escape(separators.text)}]", text)


def _is_list(part: Part) -> bool:
    return part.kind == "variable" and (part.text == "@" or part.text.endswith("[@]")) and part.default is None


def assigned_value(path: Path, assignment: Assignment) -> Value:
    if assignment.elements is not None:
        fields = tuple(expand_words(path, assignment.elements))
        return Value(" ".join(fields), fields=fields)
    return Value(UNKNOWN) if assignment.value is None else word_value(path, assignment.value)


def _expand_braces(text: str) -> list[str]:
    match = _BRACES.search(text)
    if match is None or text.count("{") > MAX_BRACES:
        return [text]
    results = [f"{text[: match.start()]}{option}{text[match.end() :]}" for option in _brace_options(match[1])]
    if len(results) >= MAX_FIELDS:
        return results
    return [done for result in results for done in _expand_braces(result)]


def _brace_options(inner: str) -> list[str]:
    if "," in inner:
        return inner.split(",")
    first, last = (int(end) for end in inner.split(".."))
    step = 1 if last >= first else -1
    # Cut first: a range may name billions.
    return [str(number) for number in range(first, last + step, step)[:MAX_FIELDS]]


def expand_words(path: Path, words: tuple[Word, ...]) -> list[str]:
    return [field for word in words for field in expand_word(path, word)]


def word_text(path: Path, word: Word) -> str:
    """The word as one text, as in an assignment or behind a redirection."""
    return "".join(value_text(resolve_part(path, part)) for part in word.parts)


def word_value(path: Path, word: Word) -> Value:
    """The value an assignment gives: a status or captured output stays what it is."""
    if len(word.parts) == 1:
        return resolve_part(path, word.parts[0])
    if any(part.kind != "text" for part in word.parts):
        pieces = word_pieces(path, word)
        if any(piece.invocation >= 0 or piece.status for piece in pieces):
            return Value(pieces=pieces)
    return Value(word_text(path, word))


def word_pieces(path: Path, word: Word) -> Pieces:
    """The word as it is printed by `echo`."""
    pieces: list[OutputPiece] = []
    for part in word.parts:
        value = resolve_part(path, part)
        if value.status is not None:
            pieces.append(
                OutputPiece(text=value_text(value)) if value.status.kind == "code" else OutputPiece(status=value.status)
            )
        elif value.pieces:
            pieces += value.pieces if part.quoted else [_unquoted_piece(piece) for piece in value.pieces]
        elif value.text:
            pieces.append(OutputPiece(text=value.text))
    return tuple(pieces)


def plain_text(pieces: Pieces) -> str | None:
    """None where a part of it is not known."""
    if any(piece.invocation >= 0 or piece.status or UNKNOWN in piece.text for piece in pieces):
        return None
    return "".join(piece.text for piece in pieces)


def _unquoted_piece(piece: OutputPiece) -> OutputPiece:
    """Outside of quotes the lines of captured output are joined; a single line is left as it is."""
    one_line = "tail1" in piece.filters
    return piece if piece.invocation < 0 or one_line else piece.through("rewritten")


def status_of(path: Path, text: str, word: Word | None) -> Status:
    """The argument of `exit` or `return` as a status."""
    if (number := parse_integer(text)) is not None:
        return Status("code", number % 256)
    if word is not None and len(word.parts) == 1:
        value = resolve_part(path, word.parts[0])
        if value.status is not None:
            return value.status
    return Status("unknown")


# Conditions whose outcome follows from what is known: comparisons of exit statuses and of literal text.

_EQUAL = frozenset(("-eq", "=", "=="))
_DIFFERENT = frozenset(("-ne", "!="))


def evaluate_test(path: Path, words: tuple[Word, ...]) -> Status:
    """The status of `[ words ]`; unknown unless it compares a status with a number, or known text."""
    if len(words) == 3:
        return _comparison_status(path, words[0], word_text(path, words[1]), words[2])
    if len(words) == 2:
        return _unary_status(word_text(path, words[0]), word_text(path, words[1]))
    if len(words) == 1:
        text = word_text(path, words[0])
        return UNKNOWN_STATUS if UNKNOWN in text else known_status(0 if text else 1)
    return UNKNOWN_STATUS


def _pattern_text(path: Path, word: Word) -> str:
    """The right side of `=`: what is quoted in it is text, not a pattern."""
    texts = ((value_text(resolve_part(path, part)), part.quoted) for part in word.parts)
    return "".join(re.sub(r"([*?\[])", r"[\1]", text) if quoted else text for text, quoted in texts)


def _unary_status(sign: str, operand: str) -> Status:
    if UNKNOWN in operand or sign not in ("-n", "-z"):
        return UNKNOWN_STATUS
    return known_status(0 if bool(operand) == (sign == "-n") else 1)


def _comparison_status(path: Path, left: Word, sign: str, right: Word) -> Status:
    status = _as_status(path, left)
    other = word_text(path, right)
    if sign in ("=", "==", "!=") and UNKNOWN not in other:
        other = _pattern_text(path, right)
    if status is not None:
        return _compare_status(status, sign, other)
    text = word_text(path, left)
    if UNKNOWN in text or UNKNOWN in other:
        return UNKNOWN_STATUS
    return _compare_text(text, sign, other)


def _as_status(path: Path, word: Word) -> Status | None:
    if len(word.parts) != 1:
        return None
    part = word.parts[0]
    # Inside `(( ))` a variable has no dollar sign.
    if part.kind == "text":
        value = path.variables.get(part.text)
        return value.status if value else None
    return resolve_part(path, part).status


def _compare_status(status: Status, sign: str, other: str) -> Status:
    if status.kind == "code":
        return _compare_text(str(status.code), sign, other)
    if other == "0" and sign in _EQUAL:
        return status
    # An exit code is never negative, so `-gt 0` means `-ne 0`.
    if other == "0" and sign in (*_DIFFERENT, "-gt", ">") and status.kind == "of":
        return Status("not", invocation=status.invocation)
    return UNKNOWN_STATUS


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq, "-ne": operator.ne, "-lt": operator.lt, "<": operator.lt, "-le": operator.le, "<=": operator.le,
    "-gt": operator.gt, ">": operator.gt, "-ge": operator.ge, ">=": operator.ge,
}  # fmt: skip


def _compare_text(left: str, sign: str, right: str) -> Status:
    if sign in ("=", "==", "!="):
        return known_status(int(fnmatchcase(left, right) == (sign == "!=")))
    one, two = parse_integer(left), parse_integer(right)
    if one is None or two is None or sign not in _COMPARISONS:
        return UNKNOWN_STATUS
    return known_status(int(not _COMPARISONS[sign](one, two)))

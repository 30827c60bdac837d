"""A short notation for the form of a token, from which its pattern, its anchors and an example are made."""

import itertools
import random
import re
import string

import msgspec

from holdfast.core.lazy import lazy_pattern

_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
_SHAPE_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
ALPHABETS = {
    "a": _LOWER,
    "A": _UPPER,
    "d": _DIGITS,
    "h": _DIGITS + "abcdef",
    "H": _DIGITS + "ABCDEF",
    "x": _DIGITS + "abcdefABCDEF",
    "l": _LOWER + _DIGITS,
    "u": _UPPER + _DIGITS,
    "w": _UPPER + _LOWER + _DIGITS,
    "s": _UPPER + _LOWER + _DIGITS + "_",
    "t": _UPPER + _LOWER + _DIGITS + "_-",
    "p": _UPPER + _LOWER + _DIGITS + "._-",
    "y": _UPPER + _LOWER + _DIGITS + "._~-",
    "b": _UPPER + _LOWER + _DIGITS + "+/",
    "B": _UPPER + _LOWER + _DIGITS + "+/=",
    "j": _UPPER + _LOWER + _DIGITS + "+/=_-",
    "r": _UPPER + _LOWER + _DIGITS + "+/=_.-",
    "k": _SHAPE_BASE58,
    "q": "023456789acdefghjklmnpqrstuvwxyz",
    "Q": "023456789ACDEFGHJKLMNPQRSTUVWXYZ",
    "2": _UPPER + "234567",
}
_ENCODED_ALPHABETS = {name: letters.encode() for name, letters in ALPHABETS.items()}
_SHAPE_UUID = "<h8>-<h4>-<h4>-<h4>-<h12>"
# `<w20>`, `<w20-30>`, `<w20+>`: so many of an alphabet; `(a|b)`: a choice; `{text}`: the anchor; literals.
_PIECE = lazy_pattern(r"<(\w)(\d+)(?:-(\d+)|(\+))?>|\(([^()]*)\)|\{([^{}]*)\}|([^<({]+)")
# In characters: what `+` may match at most.
_MOST = 4096


class Shape(msgspec.Struct, frozen=True):
    """A parsed form: `head` is how many bytes may stand before the anchor."""

    source: str
    anchors: tuple[str, ...]
    head: int
    follow: bytes
    """What stands after the anchor, at least `follow_count` times."""
    follow_count: int
    then: str = ""
    """The character after exactly so many, where the form has one."""

    @property
    def pattern(self) -> bytes:
        """Made when asked for: of hundreds of forms few are ever compiled."""
        pieces = _parse_pieces(self.source)
        return _bound_pattern("".join(map(_piece_regex, pieces)), pieces)


def parse_shape(source: str) -> Shape:
    """Read the notation. Raises ValueError where no literal of at least two characters can be searched for."""
    pieces = _parse_pieces(source)
    marked = next((n for n, piece in enumerate(pieces) if piece[5] is not None), None)
    anchors, head = (
        (_leading_literals(pieces), 0)
        if marked is None
        else ((pieces[marked][5] or "",), _total_width(pieces[:marked]))
    )
    if min(map(len, anchors)) < 2:
        raise ValueError(f"the shape {source!r} has no literal to search for")
    return Shape(source, anchors, head, *_following_alphabet(pieces, marked))


def make_example(source: str, seed: str) -> str:
    """A value of this form, the same for the same seed. It always has a digit and a letter of each case it may have."""
    chance = random.Random(seed)  # noqa: S311  (an example is no secret)
    return "".join(_sample_piece(piece, chance) for piece in _parse_pieces(source))


def make_filler(source: str) -> str:
    """The same form with one repeated character in place of the random ones: a placeholder, not a token."""
    return "".join(_fill_piece(piece) for piece in _parse_pieces(source))


# Alphabet, least, most, `+`, choice, marked anchor, literal; only the parts of its own kind are set.
_Piece = tuple[str, str, str | None, str | None, str | None, str | None, str | None]


def _parse_pieces(source: str) -> list[_Piece]:
    return [match.groups() for match in _PIECE.finditer(source.replace("<uuid>", _SHAPE_UUID))]  # type: ignore[misc]


def _leading_literals(pieces: list[_Piece]) -> tuple[str, ...]:
    """Every literal that the form may begin with."""
    choices: list[list[str]] = []
    for piece in pieces:
        if piece[0]:
            break
        choices.append(piece[4].split("|") if piece[4] is not None else [piece[6] or ""])
    return tuple("".join(parts) for parts in itertools.product(*choices))


def _following_alphabet(pieces: list[_Piece], marked: int | None) -> tuple[bytes, int, str]:
    first = next((n for n, piece in enumerate(pieces) if piece[0]), len(pieces)) if marked is None else marked + 1
    if first >= len(pieces) or not pieces[first][0]:
        return b"", 0, ""
    alphabet, low, high, more, *_ = pieces[first]
    after = pieces[first + 1][6] if first + 1 < len(pieces) and not high and not more else None
    return _ENCODED_ALPHABETS[alphabet], int(low), (after or "")[:1]


def _total_width(pieces: list[_Piece]) -> int:
    return sum(int(piece[2] or piece[1]) if piece[0] else len(piece[6] or piece[4] or "") for piece in pieces)


def _piece_regex(piece: _Piece) -> str:
    name, low, high, more, choice, marked, literal = piece
    if name:
        most = str(_MOST) if more else high or low
        return f"[{re.escape(ALPHABETS[name])}]{{{low},{most}}}"
    if choice is not None:
        return "(?:" + "|".join(map(re.escape, choice.split("|"))) + ")"
    return re.escape(marked if marked is not None else literal or "")


def _bound_pattern(pattern: str, pieces: list[_Piece]) -> bytes:
    """A form of a fixed length ends where its alphabet ends: a longer run is something else."""
    last = pieces[-1]
    if last[0] and not last[3]:
        pattern += f"(?![{re.escape(ALPHABETS[last[0]])}])"
    return pattern.encode()


def _sample_piece(piece: _Piece, chance: random.Random) -> str:
    name, low, _, more, choice, marked, literal = piece
    if name:
        length = int(low) + (4 if more and int(low) < 8 else 0)
        return _mixed_text(ALPHABETS[name], length, chance)
    if choice is not None:
        return chance.choice(choice.split("|"))
    return marked if marked is not None else literal or ""


def _mixed_text(alphabet: str, length: int, chance: random.Random) -> str:
    groups = [group for group in (_DIGITS, _LOWER, _UPPER) if set(group) & set(alphabet)]
    text = [chance.choice(alphabet) for _ in range(length)]
    for at, group in zip(range(1, length, 3), groups * 2, strict=False):
        text[at] = chance.choice([c for c in group if c in alphabet])
    if length > 1 and not text[-1].isalnum():
        text[-1] = next(c for c in alphabet if c.isalnum())
    return "".join(text)


def _fill_piece(piece: _Piece) -> str:
    if piece[0]:
        alphabet = ALPHABETS[piece[0]]
        return next((c for c in "xX0" if c in alphabet), alphabet[0]) * int(piece[1])
    return (piece[4].split("|")[0] if piece[4] is not None else piece[5]) or piece[6] or ""

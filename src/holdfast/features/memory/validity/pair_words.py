"""What single words tell of a pair: opposites (what is kept is not deleted), and whether both speak of one thing."""

from functools import lru_cache

from holdfast.features.memory.validity.parse import Parsed, normal_word
from holdfast.statements.observe import FUNCTION_WORDS

_OPPOSITES = tuple(
    tuple(frozenset(map(normal_word, side.split())) for side in pair)
    for pair in (
        (
            "keep kept retain retained store stored archive archived",
            "delete deleted discard discarded thrown drop dropped",
        ),
        ("allow allowed permit permitted", "forbid forbidden ban banned"),
        ("enable enabled", "disable disabled"),
        ("mandatory required compulsory obligatory", "optional voluntary"),
        ("public open", "private closed internal"),
        ("encrypted", "plain"),
        ("manual manually hand", "automatic automatically bot"),
        ("sync synchronous", "async asynchronous"),
    )
)
_EITHER = tuple(one | other for one, other in _OPPOSITES)


def says_opposite(new: Parsed, old: Parsed) -> bool:
    """ "recordings are kept for a month", then "we delete recordings after the talk"."""
    if new.negative or old.negative:
        return False
    mine, theirs = _sides_of(new.tokens), _sides_of(old.tokens)
    turned = {(pair, 1 - side) for pair, side in theirs} & mine
    # Who says both of one thing ("drafts are kept, finals deleted") takes neither side.
    clear = {pair for pair, side in turned if (pair, 1 - side) not in mine and (pair, side) not in theirs}
    return any((new.main - _EITHER[pair]) & (old.main - _EITHER[pair]) for pair in clear)


@lru_cache(maxsize=2_000)
def _sides_of(tokens: tuple[str, ...]) -> frozenset[tuple[int, int]]:
    """Of which pairs of opposites something is said, and which of the two."""
    words = {normal_word(token) for token in tokens}
    return frozenset(
        (pair, side) for pair, sides in enumerate(_OPPOSITES) for side, named in enumerate(sides) if words & named
    )


_DEFINITE = frozenset("the our each every this that".split())
_BEFORE_VALUES = frozenset("in on from to with at by for into onto via over under".split())
_AFTER_SUBJECTS = frozenset(
    "of is are was were has have had belongs belong lives live runs run uses use needs need must should may can will does stays goes "
    "comes gets takes keeps gives sends reads writes depends requires expects returns".split()
)


def speak_of_two_things(newer: str, older: str) -> bool:
    """`the parser belongs to …`, `the mailer belongs to …`: the same is said of two things, and neither replaces the other.

    Only where the one word that differs names what the sentence is about: `lives in the cache` has a value there.
    """
    new, old = ([word.strip(".,;:!?\"'()") for word in text.lower().split()] for text in (newer, older))
    if len(new) != len(old):
        return False
    differing = [at for at, pair in enumerate(zip(new, old, strict=True)) if pair[0] != pair[1]]
    if _differ_in_kind(new, old, differing):
        return True
    if len(differing) != 1 or not 0 < (at := differing[0]) < len(new) - 1:
        return False
    return (
        new[at - 1] in _DEFINITE
        and new[at + 1] in _AFTER_SUBJECTS
        and (at < 2 or new[at - 2] not in _BEFORE_VALUES)
        and new[at].isalpha()
        and old[at].isalpha()
    )


_SUBJECT_END = 3


def _differ_in_kind(new: list[str], old: list[str], differing: list[int]) -> bool:
    """`avro files are cut at 64 MB`, `parquet files are cut at 256 MB`: two kinds of one thing, each with a value of its own."""
    if not 2 <= len(differing) <= len(new) // 2 or (at := differing[0]) >= _SUBJECT_END or at + 1 in differing:
        return False
    thing = new[at + 1]
    return (
        new[at].isalpha() and old[at].isalpha() and thing.isalpha() and not {new[at], old[at], thing} & FUNCTION_WORDS
    )

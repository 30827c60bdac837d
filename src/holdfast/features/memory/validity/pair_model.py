"""How likely a newer statement makes an older one void: boosted trees over the structure of the pair.

The features say how much the two have in common, which slot differs (a number, a name, a path, a tool), what the newer one says of
itself (a change, an exception, an end) and which rules of `relations` fire. No feature is a word of a subject, so that a pattern
learned in one domain holds in others. Made by `models/relations/train.py`.
"""

import math
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from holdfast.features.memory.validity.parse import Parsed, normal_word
from holdfast.statements.observe import FUNCTION_WORDS

# What single words tell of a pair: opposites (what is kept is not deleted), and whether both speak of one thing.

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


TREES = Path(__file__).with_name("pair_trees.json")
# Cap of the counts among the features.
MOST = 8
# Letters of a word's beginning that stand for its stem.
STEM = 5
# Hash buckets of the wording's n-grams; tokens of the newer statement that are looked at.
BUCKETS, LONGEST_SHAPE = 1 << 14, 24
# A path with a slash, or a file name with an extension of two to five letters.
_PATH_LIKE = re.compile(r"[\w.-]*/[\w./-]*|\b[\w-]+\.[a-z]{2,5}\b")
# A capitalised word inside a sentence, or at its start before a verb that people are the subject of.
_NAME = re.compile(r"(?<=\w )[A-Z][\w-]+|^[A-Z][a-z]+(?= (?:owns|reviews|does|has|is|knows|signs|approves|merges))")
_REASON = re.compile(r"[,;] |\b(?:because|since|so|weil|porque|car|parce que|потому)\b|，|、|ので|から", re.IGNORECASE)


class Tree(msgspec.Struct, array_like=True):
    """Node 0 is the root. `feature` -1 marks a leaf; a value up to `threshold` goes to `left`."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[float]


class PairModel(msgspec.Struct):
    """`wording`: bucket of a piece of wording → its weight, in thousandths."""

    names: list[str]
    base: float
    trees: list[Tree]
    wording: dict[int, int] = {}
    wording_base: float = 0.0

    def wording_score(self, new: Parsed, old: Parsed) -> float:
        weights = self.wording
        return self.wording_base + sum(weights.get(piece, 0) for piece in wording_pieces(new, old)) / 1000

    def replaced(self, new: Parsed, old: Parsed, fired: Sequence[bool], lasting: float) -> float:
        """The probability that the newer one makes the older void."""
        found = describe_pair(new, old, fired, self.wording_score(new, old), lasting)
        return self.probability(list(found.values()))

    def probability(self, features: Sequence[float]) -> float:
        score = self.base
        for tree in self.trees:
            node = 0
            feature, threshold = tree.feature, tree.threshold
            while (at := feature[node]) >= 0:
                node = tree.left[node] if features[at] <= threshold[node] else tree.right[node]
            score += tree.value[node]
        # The score is bounded because `math.exp` raises OverflowError beyond about 700.
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


@lru_cache(maxsize=1)
def load_pair_model() -> PairModel:
    return msgspec.json.decode(TREES.read_bytes(), type=PairModel)


def wording_pieces(new: Parsed, old: Parsed) -> frozenset[int]:
    """The newer statement with what it shares with the older one taken out of it: its subject becomes `<s>`, its other words `<o>`,
    a number `<n>`. What is left says what is being done to the older one ("we threw <o> out, <s> is …")."""
    subject, others = _stems(frozenset(old.subject[:1])), _stems(old.words)
    # "^" and "$" mark the ends, so that an n-gram knows whether it opens or closes the sentence.
    shape = ["^", *(_mark(token, old, subject, others) for token in new.tokens[:LONGEST_SHAPE]), "$"]
    pieces = [f"{size}:{' '.join(shape[n : n + size])}" for size in (1, 2, 3) for n in range(len(shape) - size + 1)]
    # crc32, not `hash`: that one differs between processes, and the weights were trained in another one.
    return frozenset(zlib.crc32(piece.encode("utf-8", "replace")) % BUCKETS for piece in pieces)


def _mark(token: str, old: Parsed, subject: frozenset[str], others: frozenset[str]) -> str:
    stem = _beginning(normal_word(token))
    if token[:1].isdigit():
        return "<o>" if token in old.numbers else "<n>"
    if token in old.tokens and stem not in others:
        return token
    return "<s>" if stem in subject else "<o>" if stem in others else token


def describe_pair(new: Parsed, old: Parsed, fired: Sequence[bool], wording: float, lasting: float) -> dict[str, float]:
    """Name → value, in one fixed order. `fired`: which rules of `relations` say that the newer one replaces the older; `wording`:
    what its words say to that; `lasting`: how likely the newer one outlasts the task at all."""
    return dict(
        (
            ("wording", round(wording, 1)),
            ("lasting", round(lasting, 2)),
            *_overlap(new, old),
            *_openings(new, old),
            *_numbers(new, old),
            *_names(new, old),
            *_said_of_itself(new, old),
            *_scopes(new, old),
            *((f"rule{n}", float(hit)) for n, hit in enumerate(fired)),
            ("rules", float(sum(fired))),
        )
    )


def _share(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part & whole) / len(whole) if whole else 0.0


def shared_share(new: Parsed, old: Parsed) -> float:
    """How much of the shorter one's words the other has."""
    one, other = _stems(new.main), _stems(old.words)
    return max(_share(one, other), _share(other, one))


def _overlap(new: Parsed, old: Parsed) -> Iterator[tuple[str, float]]:
    stems_new, stems_old = _stems(new.words), _stems(old.words)
    yield "of_old", _share(new.words, old.words)
    yield "of_new", _share(old.words, new.words)
    yield "of_old_main", _share(new.words, old.main)
    yield "of_new_main", _share(old.words, new.main)
    yield "shared", float(min(MOST, len(new.words & old.words)))
    yield "stems_of_old", _share(stems_new, stems_old)
    yield "stems_of_new", _share(stems_old, stems_new)
    yield "stems_of_new_main", _share(stems_old, _stems(new.main))
    yield "stems_shared", float(min(MOST, len(stems_new & stems_old)))
    yield "old_left", float(min(MOST, len(stems_old - stems_new)))
    yield "new_left", float(min(MOST, len(stems_new - stems_old)))
    yield "new_main_left", float(min(MOST, len(_stems(new.main) - stems_old)))
    yield "old_main_left", float(min(MOST, len(_stems(old.main) - stems_new)))
    yield "letters", _letters_shared(new.text, old.text)
    yield "new_size", float(min(20, len(new.tokens)))
    yield "old_size", float(min(20, len(old.tokens)))


@lru_cache(maxsize=4_000)
def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_beginning, words))


def _beginning(word: str) -> str:
    """Inflected forms of one word mostly begin alike, in any of the languages; names with a digit or a dot do not."""
    return word[:STEM] if word.isalpha() else word


def _letters_shared(one: str, other: str) -> float:
    first, second = _trigrams(one), _trigrams(other)
    return 2 * len(first & second) / max(1, len(first) + len(second))


@lru_cache(maxsize=2_000)
def _trigrams(text: str) -> frozenset[str]:
    lower = text.lower()
    # A CJK character carries about a syllable or a word: pairs of them say as much as three Latin letters.
    size = 2 if any(char > "\u2e80" for char in lower) else 3
    return frozenset(lower[n : n + size] for n in range(len(lower) - size + 1))


def _openings(new: Parsed, old: Parsed) -> Iterator[tuple[str, float]]:
    """Where the two agree from the left and from the right: what lies between is the slot that differs."""
    one, other = new.tokens, old.tokens
    left = _agreeing(one, other)
    right = _agreeing(one[::-1], other[::-1])
    yield "left_same", float(min(MOST, left))
    yield "right_same", float(min(MOST, right))
    yield "old_slot", float(min(MOST, max(0, len(other) - left - right)))
    yield "new_slot", float(min(MOST, max(0, len(one) - left - right)))
    head_new, head_old = _stems(frozenset(new.subject[:1])), _stems(frozenset(old.subject[:1]))
    stems_new, stems_old = _stems(new.words), _stems(old.words)
    yield "same_head", float(bool(head_new) and head_new == head_old)
    yield "old_head_named", float(bool(head_old & stems_new))
    yield "new_head_known", float(bool(head_new & stems_old))
    yield "new_first_known", float(bool(_stems(frozenset(new.subject)) & _stems(frozenset(old.subject))))


def _agreeing(one: Sequence[str], other: Sequence[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _numbers(new: Parsed, old: Parsed) -> Iterator[tuple[str, float]]:
    both = bool(new.numbers and old.numbers)
    yield "numbers_both", float(both)
    yield "numbers_differ", float(both and new.numbers != old.numbers)
    yield "old_number_named", float(bool(new.numbers & old.numbers))
    yield "number_only_new", float(bool(new.numbers) and not old.numbers)
    yield "number_only_old", float(bool(old.numbers) and not new.numbers)
    yield "unit_same", float(bool(new.units & old.units))
    yield "unit_differs", float(bool(new.units and old.units) and not new.units & old.units)


def _names(new: Parsed, old: Parsed) -> Iterator[tuple[str, float]]:
    rivals = [group for group in new.tools if old.tools.get(group, set()) and new.tools[group] - old.tools[group]]
    yield "tool_rival", float(bool(rivals))
    yield "tool_same", float(any(new.tools[g] & old.tools.get(g, set()) for g in new.tools))
    yield "tool_other_kind", float(bool(new.tools and old.tools) and not set(new.tools) & set(old.tools))
    yield "tool_only_new", float(bool(new.tools) and not old.tools)
    yield "tool_only_old", float(bool(old.tools) and not new.tools)
    paths = [frozenset(_PATH_LIKE.findall(one.text)) for one in (new, old)]
    yield "paths_differ", float(bool(paths[0] and paths[1]) and not paths[0] & paths[1])
    yield "path_same", float(bool(paths[0] & paths[1]))
    people = [frozenset(_NAME.findall(one.text)) for one in (new, old)]
    yield "names_differ", float(bool(people[0] and people[1]) and not people[0] & people[1])
    yield "name_same", float(bool(people[0] & people[1]))


def _said_of_itself(new: Parsed, old: Parsed) -> Iterator[tuple[str, float]]:
    for name in ("negative", "only", "universal", "exception"):
        yield f"new_{name}", float(getattr(new, name))
        yield f"old_{name}", float(getattr(old, name))
    yield "polarity_differs", float(new.negative != old.negative)
    yield "permits", float(new.permits)
    yield "permits_what_is_barred", float(new.permits and (old.negative or old.universal))
    yield "narrows", float(new.only and old.universal and not old.only)
    for name in ("as_well", "strong", "now", "general", "others", "done", "not_yet"):
        yield f"new_{name}", float(getattr(new, name))
    yield "taken_back", float(min(3, len(new.taken_back & (old.words | old.numbers))))
    yield "dead", float(min(3, len(new.dead & old.words - old.negated)))
    yield "denied", float(min(3, len(new.negated & old.words)))
    yield "new_until", float(bool(new.until))
    yield "old_until", float(bool(old.until))
    yield "awaited", _share(_stems(new.words), _stems(old.until))
    yield "gives_reason", float(bool(_REASON.search(new.text)))


def _scopes(new: Parsed, old: Parsed) -> Iterator[tuple[str, float]]:
    yield "scopes_differ", float(bool(new.scopes and old.scopes) and not new.scopes & old.scopes)
    yield "scope_only_new", float(bool(new.scopes - old.words))
    yield "scope_only_old", float(bool(old.scopes - new.words))

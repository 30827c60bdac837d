"""A prompt → what of it is worth remembering. The same code runs live and in `holdfast memory explain`. Pure."""

import math
import re
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec

from holdfast.statements.cues import (
    FLEETING_CUES,
    FLEETING_TIME,
    HEDGED,
    LEANS_BACK,
    OUTRIGHT_CUES,
    SPEAKERS_DAY,
    find_cues,
)
from holdfast.statements.segments import (
    OwnText,
    Segment,
    cut_clauses,
    restore_quotations,
    shorten_to_quote,
    split_prompt,
)

# A segment → numbered features for the classifier: words, the skeleton of function words, cues, where it stands.

# Features are hashed to so many numbers; the weights hold one byte for each.
BUCKETS = 1 << 16
# Tokens of a segment, and characters of the agent's last words, that are looked at.
MOST_TOKENS = 60
CONTEXT_LOOKED_AT = 1_000
# One CJK or Korean character, code in backticks, a masked quotation, a word or name, or a mark.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|`[^`]{1,80}`|\ue000\d+\ue001|"
    r"[^\W_]+(?:['’][^\W_]+)?(?:[_./-]+[^\W_]+)*/?|[?!:,;]"
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its there here i you we they he she me us them my your our their his her
    who whoever nobody everybody anything nothing everything something is are was were be been being am isn't
    aren't wasn't do does did don't doesn't didn't has have had haven't can can't could may might must should
    shall will won't would not no never always only also still yet again ever just now then so and or but if
    when while until unless because since before after once as than instead otherwise else without with in on at
    of to from by for under over through into against per between out up off about all any each every some both
    same other another one two three new old own use uses used need needs go goes gets get keep stays stay make
    makes run runs want prefer like please let's let that's it's i'm we're you're don't we've i've i'd we'll
    what why how where which der die das ein eine den dem des ist sind war wird werden nicht kein keine nie
    immer nur auch und oder aber wenn bis weil wir ich du man es im in auf mit von zu für bei nach vor aus an
    über bitte muss müssen darf dürfen soll el la los las un una de del en con por para que se no nunca siempre
    sin y o si al es son está hay le lo nos me te su mi solo le les des du au aux et ou est sont ne pas jamais
    toujours sans sur dans pour par que qui on nous je tu il elle ce cette doit si o os as um uma do da dos das
    no na nos nas em com por para que não nunca sempre sem e ou se é são a gente eu você и в на с не по из для
    что это мы я ты он она все всегда никогда только без если то а но к у за от
    """.split()
)


def tokenize(text: str) -> list[str]:
    return [_normalize_token(token) for token in _TOKEN.findall(text)][:MOST_TOKENS]


def _normalize_token(token: str) -> str:
    if token.startswith("`"):
        return "<code>"
    if token.startswith("\ue000"):
        return "<quote>"
    lower = token.lower().replace("’", "'")
    if any(char.isdigit() for char in lower):
        # Which number or name it is says nothing about whether a statement lasts.
        return "<num>" if lower.replace(".", "").isdigit() else "<num-name>"
    if any(char in "_/." for char in lower):
        return "<name>"
    return lower


def feature_names(
    segment: Segment, cues: set[str], *, context: str = "", pasted: bool = False, neighbours: Sequence[set[str]] = ()
) -> Iterator[str]:
    tokens = tokenize(segment.text)
    yield "bias"
    yield from _word_features(tokens)
    yield from _skeleton_features(tokens)
    yield from (f"cue:{name}" for name in cues)
    yield from _cue_pairs(sorted(cues & _PAIRED))
    yield from _position_features(segment, len(tokens), pasted)
    yield from _context_features(tokens, context)
    yield from (f"beside:{name}" for near in neighbours for name in near & _NEIGHBOUR_CUES)


_PAIRED = frozenset(
    """
    deontic always_never imperative question_start this_one now_today bug_word because
    generic_passive everywhere i_want we_habit only_no product_noun negated_verb should
    past hypothetical place_fact agent_address workaround from_now quote_token bug_again
    exempt
    """.split()
)
_NEIGHBOUR_CUES = frozenset(
    (
        "question_mark",
        "imperative",
        "bug_again",
        "others",
        "quote_token",
        "hypothetical",
        "past",
        "task_spec",
        "now_today",
    )
)


def _word_features(tokens: Sequence[str]) -> Iterator[str]:
    marked = ["^", *tokens, "$"]
    for one, two in pairwise(marked):
        yield f"b:{one} {two}"
    for one in tokens:
        yield f"w:{one}"
        if len(one) > 5 and one.isalpha():
            # Beginning and ending stand in for stems, in any language.
            yield f"p:{one[:5]}"
            yield f"s:{one[-3:]}"
    yield f"t:{' '.join(marked[:3])}"
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        # Characters are single tokens there, so three of them make up a word or a phrase.
        if _CJK.match(one):
            yield f"c:{one}{two}{three}"


def _skeleton_features(tokens: Sequence[str]) -> Iterator[str]:
    """Content words become one mark, so that a pattern learned on one subject holds for others."""
    shape = ["^"]
    for token in tokens:
        mark = token if token in FUNCTION_WORDS or token[0] in "<,?!:;" or _CJK.match(token) else "*"
        # Several content words in a row are one mark, however many there are.
        if mark != "*" or shape[-1] != "*":
            shape.append(mark)
    shape.append("$")
    for size in (3, 4):
        for start in range(len(shape) - size + 1):
            yield f"k:{' '.join(shape[start : start + size])}"


def _cue_pairs(names: Sequence[str]) -> Iterator[str]:
    for first, one in enumerate(names):
        for other in names[first + 1 :]:
            yield f"cc:{one}+{other}"


def _position_features(segment: Segment, size: int, pasted: bool) -> Iterator[str]:
    yield f"len:{min(size, 40) // 4}"
    yield f"short:{size < 4}"
    yield f"alone:{segment.total == 1}"
    yield f"first:{segment.index == 0 and segment.total > 1}"
    yield f"last:{segment.index == segment.total - 1 and segment.total > 1}"
    yield f"many:{min(segment.total, 8) // 2}"
    if pasted:
        yield "pasted"
    if segment.beside_paste:
        yield "beside_paste"
    if segment.bullet:
        yield "bullet"


def _context_features(tokens: Sequence[str], context: str) -> Iterator[str]:
    """What the agent asked or did just before gives an answer or a correction its weight."""
    if not context:
        return
    before = context[-CONTEXT_LOOKED_AT:].lower()
    is_question = before.rstrip().endswith("?")
    choice = is_question and (" or " in before or "which" in before or "prefer" in before)
    context_words = set(tokenize(before)) - FUNCTION_WORDS
    named = any(token in context_words for token in tokens)
    yield f"context:{'choice' if choice else 'question' if is_question else 'statement'}"
    yield f"context:{choice}:{named}:{len(tokens) < 8}"


def feature_numbers(names: Iterator[str]) -> list[int]:
    # Not `hash`, which differs from process to process: the weights were trained with this one.
    return sorted({zlib.crc32(name.encode("utf-8", "replace")) % BUCKETS for name in names})


# Two linear models over hashed features: is a statement lasting, and of which type. Made by `models/statements/train.py`.

TYPES = ("decision", "rule", "preference", "gotcha", "fact", "trade_off")
WEIGHTS = Path(__file__).with_name("weights.bin")
_MAGIC = b"HFST1"
# Magic, number of buckets, number of types, scale of each model; little-endian.
_HEAD = struct.Struct("<5sIBdd")


class Classifier:
    def __init__(self, lasting: bytes, scale: float, kinds: Sequence[bytes], type_scale: float) -> None:
        self._lasting, self._scale = array("b", lasting), scale
        self._kinds, self._type_scale = [array("b", one) for one in kinds], type_scale

    def probability(self, features: Sequence[int]) -> float:
        """That these words outlast the task."""
        weights = self._lasting
        # A list, not a generator: this runs for every sentence of every prompt.
        score = sum([weights[n] for n in features]) * self._scale
        # Bounded because `math.exp` overflows.
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def type_of(self, features: Sequence[int]) -> str:
        scores = [sum([kind[n] for n in features]) for kind in self._kinds]
        return TYPES[max(range(len(scores)), key=scores.__getitem__)]

    def encode(self) -> bytes:
        body = b"".join(one.tobytes() for one in (self._lasting, *self._kinds))
        return _HEAD.pack(_MAGIC, BUCKETS, len(self._kinds), self._scale, self._type_scale) + zlib.compress(body, 9)


def decode_classifier(content: bytes) -> Classifier:
    magic, buckets, kinds, scale, type_scale = _HEAD.unpack_from(content)
    if magic != _MAGIC or buckets != BUCKETS or kinds != len(TYPES):
        raise ValueError(
            "weights of another version of the statement classifier: run models/statements/train.py --write"
        )
    body = zlib.decompress(content[_HEAD.size :])
    # First the model of lasting, then one for each type, each a byte per bucket.
    parts = [body[n * buckets : (n + 1) * buckets] for n in range(kinds + 1)]
    return Classifier(parts[0], scale, parts[1:], type_scale)


@lru_cache(maxsize=1)
def load_classifier() -> Classifier:
    return decode_classifier(WEIGHTS.read_bytes())


KEPT, CANDIDATE = "kept", "candidate"
CANDIDATE_FROM = 0.3
KEPT_PLAIN, KEPT_CUED, KEPT_AMONG_MANY = 0.73, 0.93, 0.97
"""Chosen by cross-validation, precision first. A plain sentence of a short prompt is seldom misread; with a word that mostly goes
with tasks, faults and moments, and among the many sentences of a long task, more certainty is asked for."""
FEW_SENTENCES = 4
NEVER_KEPT = 1.1
"""More than any probability."""
MOST_OBSERVED = 8
REMOVED_MARK = "[redacted:"
"""What redaction leaves of a secret begins so."""
SHORTEST_ALONE = 2
"""A single word says something lasting only as the answer to a question of the agent."""


class Observation(msgspec.Struct, frozen=True):
    type: str
    text: str
    outcome: str
    probability: float


class Span(msgspec.Struct, frozen=True):
    """A stretch that may be remembered: its words, as they would be stored, and its features."""

    text: str
    features: tuple[int, ...]
    asks: bool = False
    kept_from: float = KEPT_CUED


def observe_prompt(
    prompt: str, context: str = "", model: Classifier | None = None, least: float = CANDIDATE_FROM
) -> list[Observation]:
    """`context`: what the agent said just before. Nothing lasting means an empty list."""
    classifier = model or load_classifier()
    observations: dict[str, Observation] = {}
    for span in spans_of(prompt, context):
        chance = classifier.probability(span.features)
        if chance >= least and span.text not in observations:
            # A question is never kept by itself, however certain: a person decides.
            outcome = KEPT if chance >= span.kept_from and not span.asks else CANDIDATE
            observations[span.text] = Observation(classifier.type_of(span.features), span.text, outcome, chance)
    return (
        sorted(observations.values(), key=lambda one: -one.probability)[:MOST_OBSERVED]
        if len(observations) > MOST_OBSERVED
        else list(observations.values())
    )


def spans_of(prompt: str, context: str = "") -> Iterator[Span]:
    own = split_prompt(prompt)
    segments = list(_with_clauses(own))
    cues = [find_cues(segment.text) for segment in segments]
    for number, segment in enumerate(segments):
        near = [cues[n] for n in (number - 1, number + 1) if 0 <= n < len(segments)]
        names = feature_names(segment, cues[number], context=context, pasted=own.pasted, neighbours=near)
        text = restore_quotations(shorten_to_quote(segment.text), own.quotations)
        # After words of the agent even one word can be an answer. Of a secret nothing is left that could be remembered.
        if text and REMOVED_MARK not in text and (context or _long_enough(text)):
            features, asks = tuple(feature_numbers(names)), "question_mark" in cues[number]
            yield Span(text, features, asks, _kept_from(segment, cues[number]))


def _kept_from(segment: Segment, cues: set[str]) -> float:
    if SPEAKERS_DAY.search(segment.text) or HEDGED.search(segment.text):
        return NEVER_KEPT
    fleeting = cues & FLEETING_CUES or FLEETING_TIME.search(segment.text.lower())
    if fleeting and not cues & OUTRIGHT_CUES:
        return KEPT_CUED
    if segment.total > FEW_SENTENCES:
        # In a long prompt "it has to …" describes what is built there, and would say nothing by itself.
        return NEVER_KEPT if LEANS_BACK.match(segment.text) else KEPT_AMONG_MANY
    return KEPT_PLAIN


def _long_enough(text: str) -> bool:
    # Characters from U+2E80 on are CJK, written without spaces.
    return len(text.split()) >= SHORTEST_ALONE or sum(char > "\u2e80" for char in text) >= 2 * SHORTEST_ALONE


def _with_clauses(own: OwnText) -> Iterator[Segment]:
    parts = [(part, segment) for segment in own.segments for part in cut_clauses(segment.text)]
    for index, (part, segment) in enumerate(parts):
        yield msgspec.structs.replace(segment, text=part, index=index, total=len(parts))

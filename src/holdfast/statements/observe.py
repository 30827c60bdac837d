"""A prompt → what of it is worth remembering. The same code runs live and in `holdfast memory explain`. Pure."""

from collections.abc import Iterator

import msgspec

from holdfast.statements.classifier import Classifier, load_classifier
from holdfast.statements.clauses import cut_clauses, shorten_to_quote
from holdfast.statements.cues import FLEETING_CUES, FLEETING_TIME, OUTRIGHT_CUES, find_cues
from holdfast.statements.features import feature_names, feature_numbers
from holdfast.statements.segments import OwnText, Segment, restore_quotations, split_prompt

KEPT, CANDIDATE = "kept", "candidate"
CANDIDATE_FROM = 0.3
KEPT_PLAIN, KEPT_AMONG_MANY, KEPT_CUED = 0.68, 0.9, 0.92
"""Chosen by cross-validation. A plain sentence, alone or one of two, is seldom misread; among many sentences of a task, or
with a word that mostly goes with tasks, faults and moments, more certainty is asked for."""
FEW_SENTENCES = 2
MOST_OBSERVED = 8
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
        if text and (context or _long_enough(text)):
            features, asks = tuple(feature_numbers(names)), "question_mark" in cues[number]
            yield Span(text, features, asks, _kept_from(segment, cues[number]))


def _kept_from(segment: Segment, cues: set[str]) -> float:
    fleeting = cues & FLEETING_CUES or FLEETING_TIME.search(segment.text.lower())
    if fleeting and not cues & OUTRIGHT_CUES:
        return KEPT_CUED
    return KEPT_PLAIN if segment.total <= FEW_SENTENCES else KEPT_AMONG_MANY


def _long_enough(text: str) -> bool:
    return len(text.split()) >= SHORTEST_ALONE or sum(char > "\u2e80" for char in text) >= 2 * SHORTEST_ALONE


def _with_clauses(own: OwnText) -> Iterator[Segment]:
    parts = [(part, segment) for segment in own.segments for part in cut_clauses(segment.text)]
    for index, (part, segment) in enumerate(parts):
        yield msgspec.structs.replace(segment, text=part, index=index, total=len(parts))

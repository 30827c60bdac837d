"""Which of a project's memories fit a prompt: rare words shared, or a file or a name said outright. Pure and quick."""

import math
from collections import Counter
from collections.abc import Sequence

from holdfast.core.ports import Doc
from holdfast.features.memory.project import worth
from holdfast.features.memory.words import terms

LOOKED_AT = 2_000
LEAST_SHARED = 2
LEAST = 0.22
"""Of the memory's own weight so much must be in the prompt; a shared common word is no reason to talk."""


def fitting(prompt: str, items: Sequence[Doc], now: int) -> list[Doc]:
    asked = set(terms(prompt[:LOOKED_AT]))
    if not asked or not items:
        return []
    often = Counter(term for item in items for term in set(item["terms"]))
    scored = [(score, item) for item in items if (score := _fit(asked, item, often, len(items)))]
    return [item for _, item in sorted(scored, key=lambda one: (-one[0], -worth(one[1], now), one[1]["id"]))]


def _fit(asked: set[str], item: Doc, often: Counter[str], total: int) -> float:
    mine = set(item["terms"])
    shared = mine & asked
    exactly = any(term.startswith("=") for term in shared)
    if not exactly and len(shared) < min(LEAST_SHARED, len(mine)):
        return 0.0
    weight = {term: math.log(1 + total / often[term]) + 0.5 for term in mine}
    fit = sum(weight[term] for term in shared) / max(1e-9, sum(weight.values()))
    return fit + (1.0 if exactly else 0.0) if exactly or fit >= LEAST else 0.0

"""Two rankings become one: each brought between 0 and 1 over its best, then mixed. Pure."""

from collections.abc import Sequence

Scored = Sequence[tuple[int, float]]
MEANING = 0.72
"""Found on packages held back from training (models/card.md), not on those the bench measures."""
DEPTH = 100


def fused(meaning: Scored, text: Scored, share: float = MEANING) -> list[tuple[int, float]]:
    mixed: dict[int, float] = {}
    for scored, weight in ((meaning, share), (text, 1 - share)):
        for chunk, score in _spread(scored[:DEPTH]):
            mixed[chunk] = mixed.get(chunk, 0.0) + weight * score
    return sorted(mixed.items(), key=lambda item: (-item[1], item[0]))


def _spread(scored: Scored) -> list[tuple[int, float]]:
    if not scored:
        return []
    low, high = scored[-1][1], scored[0][1]
    width = high - low
    return [(chunk, (score - low) / width if width > 0 else 1.0) for chunk, score in scored]

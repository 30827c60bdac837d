"""Which of a project's memories fit a prompt: what they are about, rare words, or a file or a name said outright. Pure."""

from collections.abc import Sequence

from holdfast.core.ports import Doc
from holdfast.features.memory.project import worth
from holdfast.features.memory.recall.selection import LEAST_FIT, Memory, rank_fitting
from holdfast.features.memory.terms import names
from holdfast.handover.summary import Summary

LOOKED_AT = 2_000


def fitting(prompt: str, items: Sequence[Doc], now: int) -> list[Doc]:
    """The best first; only what was kept is here, so that no more than the fit is asked."""
    asked = prompt[:LOOKED_AT]
    if not asked.strip() or not items:
        return []
    newest = max((i for i in items if i["type"] == "session_summary"), key=lambda i: i["at"], default=None)
    told = [item for item in items if item["type"] != "session_summary" or item is newest]
    said = [Memory(id=item["id"], text=item["text"], by=item["origin"], type=item["type"]) for item in told]
    fits = dict(rank_fitting(said, asked, Summary(goals=(newest["text"],)) if newest else None))
    exact = set(names(asked))
    scored = [(fits.get(item["id"], 0.0) + (1.0 if exact & set(item["terms"]) else 0.0), item) for item in told]
    found = [one for one in scored if one[0] >= LEAST_FIT]
    return [item for _, item in sorted(found, key=lambda one: (-one[0], -worth(one[1], now), one[1]["id"]))]

"""Stored text goes into a context only inside a fence: attributed, budgeted, unable to close the fence (P10)."""

import re
import unicodedata
from collections.abc import Iterable

from holdfast.core.decision import Context

TAG = "holdfast-context"
CHARS_PER_TOKEN = 4
_ROLES = "holdfast|system|user|assistant|human|function|tool|antml|important|hook"
_LOOKS_LIKE_TAG = re.compile(rf"<(?=\s*/?\s*({_ROLES}))", re.IGNORECASE)
_FENCE = re.compile(rf'(<{TAG} source="[\w.:/-]*">\n)(.*?)(\n</{TAG}>)', re.DOTALL)
_DEFUSED = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
_KEPT_CONTROLS = "\n\t"


def tokens(text: str) -> int:
    """A careful estimate: four ASCII characters, or one of any other script, are a token."""
    narrow = sum(1 for c in text if c < "\x80")
    return -(-narrow // CHARS_PER_TOKEN) + (len(text) - narrow)


def harmless(text: str) -> str:
    """Invisible and control characters removed, anything that looks like a tag of the conversation defused."""
    visible = "".join(c for c in text if c in _KEPT_CONTROLS or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs"))
    return _LOOKS_LIKE_TAG.sub(_DEFUSED, visible)


def fenced(context: Context) -> str:
    source = re.sub(r"[^\w.:/-]", "_", context.source)
    return f'<{TAG} source="{source}">\n{harmless(context.text).strip()}\n</{TAG}>'


def harmless_around_fences(text: str) -> str:
    """A text that may hold fences of ours: they stay, and what is inside and between them is made harmless."""
    parts, end = [], 0
    for match in _FENCE.finditer(text):
        parts += [harmless(text[end : match.start()]), match[1], harmless(match[2]), match[3]]
        end = match.end()
    return "".join([*parts, harmless(text[end:])])


def within_budget(contexts: Iterable[Context], budget: int) -> tuple[list[Context], list[Context]]:
    """(kept in their order, left out). The heaviest are chosen first; a text is never cut in the middle."""
    offered = list(contexts)
    left = budget
    kept: set[int] = set()
    for i in sorted(range(len(offered)), key=lambda i: -offered[i].weight):
        cost = tokens(offered[i].text)
        if cost <= left:
            kept.add(i)
            left -= cost
    return [c for i, c in enumerate(offered) if i in kept], [c for i, c in enumerate(offered) if i not in kept]

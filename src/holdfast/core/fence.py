"""Stored text goes into a context only inside a fence: attributed, budgeted, unable to close the fence (P10)."""

import re
from collections.abc import Iterable

from holdfast.core.decision import Context
from holdfast.core.text import FENCE_TAG, sanitise, wrap_untrusted

CHARS_PER_TOKEN = 4
_HOOK_CONTEXT = re.compile(r"\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
_LEADING_FENCE = re.compile(rf"\s*<{FENCE_TAG} [^>]*>.*?</{FENCE_TAG}>\s*", re.DOTALL)
_OWN_FENCE = re.compile(rf'(<{FENCE_TAG} source="[\w.:/-]*">\n)(.*?)(\n</{FENCE_TAG}>)', re.DOTALL)
VOICE = "[Holdfast] "
"""Before the reason of a refused stop, where the agent sends that reason to its hooks as if somebody had typed it."""


def tokens(text: str) -> int:
    """A careful estimate: four ASCII characters, or one of any other script, are a token."""
    narrow = sum(1 for c in text if c < "\x80")
    return -(-narrow // CHARS_PER_TOKEN) + (len(text) - narrow)


def fenced(context: Context) -> str:
    return wrap_untrusted(context.text, context.source)


def without_contexts(prompt: str) -> str:
    """What stands behind the contexts that hooks put before a prompt."""
    while found := _HOOK_CONTEXT.match(prompt) or _LEADING_FENCE.match(prompt):
        prompt = prompt[found.end() :]
    return prompt


def sanitise_around_fences(text: str) -> str:
    """A text that may hold fences of ours: they stay, and what is inside and between them is made harmless."""
    parts, end = [], 0
    for match in _OWN_FENCE.finditer(text):
        parts += [sanitise(text[end : match.start()]), match[1], sanitise(match[2]), match[3]]
        end = match.end()
    return "".join([*parts, sanitise(text[end:])])


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

"""One module per provider API; each knows its paths, whom a request is for, and how a turn is written down."""

from __future__ import annotations

from types import ModuleType

from . import anthropic, gemini, openai_chat, openai_responses

# A dialect is a module with: accepts(path), audience(request), task(request), strings(body), reply(request, turn).
ALL: tuple[ModuleType, ...] = (anthropic, openai_responses, openai_chat, gemini)


def for_path(path: str) -> ModuleType | None:
    """The dialect that speaks at this path."""
    return next((dialect for dialect in ALL if dialect.accepts(path)), None)

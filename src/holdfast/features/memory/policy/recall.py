"""Selects stored memories for a prompt, by a shared name or rare shared words."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.analysis.handover.summary import SessionEvent, build_summary
from holdfast.features.memory.requests import explicit_requests
from holdfast.features.memory.state.documents import SUMMARY, ProjectItem
from holdfast.features.memory.state.words import exact_names
from holdfast.features.memory.validity import USER, Statement, subject_words, valid_statements

LEAST_FIT = 1.0
PROMPT_LOOKED_AT = 2_000
MOST_SELECTED = 5


def fitting_items(prompt: str, items: Sequence[ProjectItem], worth: dict[str, float]) -> list[ProjectItem]:
    """The best first. Summaries never match a prompt; they are for the start."""
    known = [item for item in items if item.type != SUMMARY]
    start = prompt[:PROMPT_LOOKED_AT]
    asked, named = subject_words(start), set(exact_names(start))
    if not asked or not known:
        return []
    weights = _rarities([_words_of(item.text) for item in known])
    scored = [(_fit(item, asked, named, weights), item) for item in known]
    matches = [(score, item) for score, item in scored if score >= LEAST_FIT]
    return [item for _, item in sorted(matches, key=lambda one: (-one[0], -worth[one[1].id], one[1].id))]


def _fit(item: ProjectItem, asked: frozenset[str], named: set[str], weights: dict[str, float]) -> float:
    shared = _words_of(item.text) & asked
    # One shared word is chance; a file or symbol that both name is not.
    by_words = sum(weights[word] for word in shared) if len(shared) > 1 else 0.0
    return by_words + (1.0 if named & set(item.terms) else 0.0)


@lru_cache(maxsize=2_000)
def _words_of(text: str) -> frozenset[str]:
    return subject_words(text)


def _rarities(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    """0.5 for a word in every text, 1 for a word in one of very many."""
    counts = Counter(word for words in texts for word in words)
    whole = math.log(1 + len(texts))
    return {word: 0.5 + 0.5 * math.log((1 + len(texts)) / count) / whole for word, count in counts.items()}


FORMS = '{"prompt", "context"}, {"statements": [{"at", "by", "text"}], "asked_at"} or {"events", "memories", "next"}'


class Memory(msgspec.Struct, frozen=True):
    id: str
    text: str
    at: str = ""
    by: str = USER
    type: str = ""


class Next(msgspec.Struct, frozen=True):
    """`kind`: "start" (no prompt yet) or "prompt"."""

    at: str
    kind: str = "prompt"
    prompt: str = ""


class Row(msgspec.Struct):
    """One line of `holdfast memory explain`."""

    id: str | int | None = None
    prompt: str | None = None
    context: str | None = None
    statements: list[Statement] | None = None
    asked_at: str = ""
    events: list[SessionEvent] | None = None
    memories: list[Memory] = []
    next: Next | None = None


def explain_line(line: str | bytes) -> dict[str, Any]:
    """What the live code would do. A line of unknown form gives `error`."""
    try:
        row = msgspec.json.decode(line, type=Row)
    except msgspec.MsgspecError as error:
        return {"error": f"not a line of explain: {error}. One of: {FORMS}"}
    answer = _explain_row(row)
    return {"id": row.id, **answer} if row.id is not None else answer


def _explain_row(row: Row) -> dict[str, Any]:
    if row.prompt is not None:
        requests = explicit_requests(row.prompt)
        return {"remembered": [{"type": one.type, "text": one.text, "outcome": "kept"} for one in requests]}
    if row.statements is not None:
        return {"valid": valid_statements(row.statements, row.asked_at)}
    if row.events is not None or row.next is not None:
        told = select_memories(row.memories, row.next) if row.next else []
        return {"told": told, "summary": build_summary(row.events or []).as_text()}
    return {"error": f"nothing to explain in this line. One of: {FORMS}"}


def select_memories(memories: Sequence[Memory], asked: Next) -> list[str]:
    """Ids, the most relevant first."""
    ordered = sorted(memories, key=lambda memory: memory.at)
    said = [Statement(memory.at, memory.by, memory.text) for memory in ordered]
    valid = {ordered[n].id for n in valid_statements(said, asked.at)}
    holding = [_as_item(one) for one in ordered if one.id in valid or one.by not in (USER, "agent")]
    return _most_relevant(holding, asked)


def _most_relevant(items: Sequence[ProjectItem], asked: Next) -> list[str]:
    if asked.kind == "start":
        return [item.id for item in items if item.type != "bug_fix"][: 2 * MOST_SELECTED]
    fitting = fitting_items(asked.prompt, items, dict.fromkeys((item.id for item in items), 0.0))
    return [item.id for item in fitting[:MOST_SELECTED]]


def _as_item(one: Memory) -> ProjectItem:
    return ProjectItem(id=one.id, type=one.type, text=one.text, origin=one.by, terms=exact_names(one.text))

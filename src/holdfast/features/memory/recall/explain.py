"""One line of `holdfast memory explain`: what would be remembered, what holds, what would be told. By the code that runs live. Pure."""

from typing import Any

import msgspec

from holdfast.features.memory.recall.selection import Memory, Next, select_memories
from holdfast.features.memory.validity import Statement, valid_statements
from holdfast.handover.summary import SessionEvent, build_summary
from holdfast.statements.observe import observe_prompt

FORMS = '{"prompt", "context"}, {"statements": [{"at", "by", "text"}], "asked_at"} or {"events", "memories", "next"}'


class Row(msgspec.Struct):
    id: str | int | None = None
    prompt: str | None = None
    context: str | None = None
    statements: list[Statement] | None = None
    asked_at: str = ""
    events: list[SessionEvent] | None = None
    memories: list[Memory] = []
    next: Next | None = None


def explain_line(line: str | bytes) -> dict[str, Any]:
    """Always an answer: a line that is none of the three forms gives `error`."""
    try:
        row = msgspec.json.decode(line, type=Row)
    except msgspec.MsgspecError as error:
        return {"error": f"not a line of explain: {error}. One of: {FORMS}"}
    answer = _explain_row(row)
    return {"id": row.id, **answer} if row.id is not None else answer


def _explain_row(row: Row) -> dict[str, Any]:
    if row.prompt is not None:
        observations = observe_prompt(row.prompt, row.context or "")
        return {"remembered": [{"type": one.type, "text": one.text, "outcome": one.outcome} for one in observations]}
    if row.statements is not None:
        return {"valid": valid_statements(row.statements, row.asked_at)}
    if row.events is not None or row.next is not None:
        summary = build_summary(row.events or [])
        selected = select_memories(row.memories, row.next, summary) if row.next else []
        return {"told": selected, "summary": summary.as_text()}
    return {"error": f"nothing to explain in this line. One of: {FORMS}"}

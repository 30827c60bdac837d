"""Places in the code that fit a prompt, found by `suggest.py` beside the hooks: told with the next tool call."""

from holdfast.core.decision import Decision, tell
from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.features.reindex.model import SESSION, SOURCE, settings_or_default

WEIGHT = 30
SHOWN_LINES = 5


def can_decide(kind: str, settings: AnySettings) -> bool:
    return kind == "tool.finished" and settings_or_default(settings).context


def decide(state: State, event: Event, settings: AnySettings) -> Decision | None:
    if not event.session or not can_decide(event.kind, settings):
        return None
    offer = (state.get(SESSION, event.session) or {}).get("offer")
    return tell(SOURCE, _text(offer["chunks"]), WEIGHT) if offer else None


def _text(chunks: list[dict]) -> str:
    lines = ["Places in this code base that fit the prompt:"]
    for chunk in chunks:
        lines.append(f"- {chunk['path']}:{chunk['line']} {chunk['symbol']}".rstrip())
        lines += [f"    {line}" for line in chunk["excerpt"].split("\n")[:SHOWN_LINES]]
    return "\n".join(lines)

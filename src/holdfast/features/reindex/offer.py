"""Places in the code that fit a prompt: looked for beside the hooks, told with the next tool call. Off by default."""

import msgspec

from holdfast.core.decision import Decision, tell
from holdfast.core.event import Event
from holdfast.core.feature import JobCall, State
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.ids import delivery_key
from holdfast.features.reindex.jobs import checkout_of
from holdfast.features.reindex.model import SESSION, SOURCE, settings_or_default
from holdfast.search.answer import Question
from holdfast.search.index.place import place_of
from holdfast.search.searcher import NoIndex, searcher

MOST = 3
SHORTEST_PROMPT = 12
WEIGHT = 30
SHOWN_LINES = 5


def suggest(call: JobCall) -> list[Event]:
    payload = call.job.payload
    settings = settings_or_default(call.settings(payload["project"]))
    prompt = str(payload.get("prompt") or "").strip()
    if not settings.context or len(prompt) < SHORTEST_PROMPT:
        return []
    place = place_of(call.state_dir, checkout_of(payload["project"])[0])
    try:
        answer = searcher(place).ask(Question(text=prompt[:2000], limit=MOST), settings.index())
    except NoIndex:
        return []
    fitting = [msgspec.to_builtins(hit) for hit in answer.hits if _fits(hit, settings.context_score)]
    if not fitting:
        return []
    data = {"of": payload.get("of", 0), "chunks": fitting}
    key = delivery_key(call.now)
    return [Event(key=key, kind="reindex.suggested", at=call.now, session=payload["session"], project=payload["project"], data=data)]


def _fits(hit, least: float) -> bool:  # type: ignore[no-untyped-def]
    """Named outright, or near in meaning: a shared word alone is no reason to talk to an agent."""
    if "symbol" in hit.why or "path" in hit.why:
        return True
    near = [float(why.split()[1]) for why in hit.why if why.startswith("meaning ")]
    return bool(near) and near[0] >= least


def decide(state: State, event: Event, settings: AnySettings) -> Decision | None:
    if event.kind != "tool.finished" or not event.session or not settings_or_default(settings).context:
        return None
    offer = (state.get(SESSION, event.session) or {}).get("offer")
    return tell(SOURCE, _text(offer["chunks"]), WEIGHT) if offer else None


def _text(chunks: list[dict]) -> str:
    lines = ["Places in this code base that fit the prompt:"]
    for chunk in chunks:
        lines.append(f"- {chunk['path']}:{chunk['line']} {chunk['symbol']}".rstrip())
        lines += [f"    {line}" for line in chunk["excerpt"].split("\n")[:SHOWN_LINES]]
    return "\n".join(lines)

"""Looking for places in the code that fit a prompt. Off by default: most agents search well themselves."""

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.ports import EventQuery
from holdfast.features.reindex.jobs import checkout_of
from holdfast.features.reindex.model import settings_or_default
from holdfast.search.answer import Hit, Question
from holdfast.search.index.index_dir import index_dir_of
from holdfast.search.searcher import NoIndex, searcher

MOST = 3
SHORTEST_PROMPT = 12


def suggest(call: JobCall) -> list[Event]:
    payload = call.job.payload
    settings = settings_or_default(call.settings(payload["project"]))
    prompt = str(payload.get("prompt") or "").strip()
    if not settings.context or len(prompt) < SHORTEST_PROMPT:
        return []
    place = index_dir_of(call.state_dir, checkout_of(payload["project"])[0])
    try:
        answer = searcher(place).ask(Question(text=prompt[:2000], limit=MOST), settings.index())
    except NoIndex:
        return []
    fitting = [msgspec.to_builtins(hit) for hit in answer.hits if _fits(hit, settings.context_score)]
    if not fitting or not _is_newest(call, payload["session"], payload.get("of", 0)):
        return []
    data = {"of": payload.get("of", 0), "chunks": fitting}
    key = delivery_key(call.now)
    return [
        Event(
            key=key,
            kind="reindex.suggested",
            at=call.now,
            session=payload["session"],
            project=payload["project"],
            data=data,
        )
    ]


def _is_newest(call: JobCall, session: str, prompt: int) -> bool:
    """What fits a prompt says nothing of the next one, which may have come while this one was looked at."""
    query = EventQuery(session=session, kinds=("prompt.submitted",), limit=1, newest=True)
    return all(event.seq <= prompt for event in call.reader.events(query))


def _fits(hit: Hit, least: float) -> bool:
    """Named outright, or near in meaning: a shared word alone is no reason to talk to an agent."""
    if "symbol" in hit.why or "path" in hit.why:
        return True
    near = [float(why.split()[1]) for why in hit.why if why.startswith("meaning ")]
    return bool(near) and near[0] >= least

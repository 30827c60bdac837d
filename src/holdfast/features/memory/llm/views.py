"""The meter, for whoever wants to know what the model costs."""

from typing import Any

from holdfast.core.feature import Call
from holdfast.core.ports import StateQuery
from holdfast.features.memory.llm import meter, queue
from holdfast.features.memory.model import settings_or_default

MOST = 100


def shown(call: Call) -> dict[str, Any]:
    """What it cost today and before, and what waits for it; all zero where none is switched on."""
    model = settings_or_default(call.settings).model
    waiting = [doc for _, doc in call.reader.states(StateQuery(kind=queue.KIND, status=queue.WAITING, limit=MOST))]
    failing = [doc for doc in waiting if doc["error"]]
    return {
        "use": model.use, "name": model.name, "url": model.url,
        **meter.told(call.reader.state(meter.REF), call.now, model.daily_tokens),
        "waiting": sum(doc["waiting"] for doc in waiting), "error": failing[0]["error"] if failing else "",
        "next_at": min((doc["next_at"] for doc in failing), default=0),
    }  # fmt: skip

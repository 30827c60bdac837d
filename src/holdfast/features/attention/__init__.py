"""Attention: what needs a person, notifications of it, and answers from elsewhere."""

from functools import partial

from holdfast.core.attention import ATTENTION, MUTED
from holdfast.core.authority import person
from holdfast.core.feature import Feature
from holdfast.core.kinds.attention_events import AttentionDue
from holdfast.core.lazy import lazy_function
from holdfast.features.attention import jobs, state
from holdfast.features.attention.settings import AttentionSettings

_lazy = partial(lazy_function, __name__)
"""Loaded on first use, so that the daemon stays small."""

FEATURE = Feature(
    name="attention",
    subscribed_kinds=state.SUBSCRIBED,
    documents=(ATTENTION, MUTED),
    keys=state.keys,
    reduce=state.reduce,
    facets=state.facets,
    stream=state.stream,
    enqueue=jobs.enqueue,
    enqueues_for=jobs.NOTIFIES | {AttentionDue.KIND},
    commands={name: _lazy("commands", name) for name in ("answer", "answer_link", "mute", "test")},
    authority={
        "answer": person("answering an agent's question"),
        "answer_link": person("answering an agent's question"),
        "mute": person("silencing notifications"),
        "test": person("sending a notification"),
    },
    views={
        "list": _lazy("views", "list_needs"),
        "show": _lazy("views", "show_need"),
        "linked": _lazy("views", "show_linked"),
        "status": _lazy("views", "show_status"),
        "suggest": _lazy("suggestions", "suggest"),
    },
    jobs={jobs.NOTIFY: jobs.notify, jobs.DELIVER: jobs.deliver, jobs.DELIVER_HERE: jobs.deliver},
    schedule={jobs.NOTIFY: jobs.LOOK_AGAIN_S},
    quick=frozenset((jobs.NOTIFY, jobs.DELIVER_HERE)),
    settings=AttentionSettings,
)

"""Sessions (seed 004): the whole life of an agent session, its turns and tool calls, and whether it is alive."""

from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.sessions import (
    commands,
    days,
    decide,
    enqueue,
    exits,
    model,
    parents,
    process,
    recovery,
    reduce,
    rows,
    summary,
    timeline,
    views,
    watch,
)  # fmt: skip

WATCH = "sessions.watch"

FEATURE = Feature(
    name="sessions",
    version=3,
    kinds=model.KINDS,
    subscribed_kinds=reduce.SUBSCRIBED_KINDS,
    keys=reduce.keys,
    reduce=reduce.reduce,
    facets=reduce.facets,
    stream=reduce.stream,
    decide=decide.decide,
    can_decide=decide.can_decide,
    enqueue=enqueue.enqueue,
    commands={"close": commands.close, "reopen": commands.reopen, "recover": commands.recover},
    views={
        "list": views.sessions,
        "show": views.session,
        "who": views.who,
        "timeline": timeline.timeline,
        "rows": rows.rows,
        "marks": rows.marks,
        "overview": rows.overview,
        "activity": days.activity,
        "export": lazy_function(__name__, "export", "export"),
    },
    jobs={
        WATCH: recovery.keep_watch,
        enqueue.FIND: watch.find_process,
        enqueue.PROCESS: process.process,
        enqueue.SUMMARISE: summary.summarise,
        enqueue.LINK: parents.link,
        enqueue.ADOPT: recovery.adopt,
        exits.READ: exits.read_exit,
        **{f"sessions.{name}": recovery.as_job(name) for name in recovery.FINDERS},
    },
    schedule={WATCH: model.WATCH_SECONDS},
    quick=frozenset((exits.READ,)),
    settings=model.SessionsSettings,
)

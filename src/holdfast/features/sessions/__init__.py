"""Sessions (seed 004): the whole life of an agent session, its turns and tool calls, and whether it is alive."""

from holdfast.core.feature import Feature
from holdfast.features.sessions import enqueue as wanted
from holdfast.features.sessions import recovery
from holdfast.features.sessions.commands import close, recover, reopen
from holdfast.features.sessions.decide import decide
from holdfast.features.sessions.export import export
from holdfast.features.sessions.model import KINDS, WATCH_SECONDS, SessionsSettings
from holdfast.features.sessions.parents import link
from holdfast.features.sessions.process import process
from holdfast.features.sessions.reduce import LISTENS, facets, keys, reduce, stream
from holdfast.features.sessions.summary import summarise
from holdfast.features.sessions.timeline import timeline
from holdfast.features.sessions.views import session, sessions, who
from holdfast.features.sessions.watch import find_process

WATCH = "sessions.watch"


FEATURE = Feature(
    name="sessions",
    kinds=KINDS,
    listens=LISTENS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    stream=stream,
    decide=decide,
    enqueue=wanted.enqueue,
    commands={"close": close, "reopen": reopen, "recover": recover},
    views={"list": sessions, "show": session, "timeline": timeline, "who": who, "export": export},
    jobs={
        WATCH: recovery.keep_watch,
        wanted.FIND: find_process,
        wanted.PROCESS: process,
        wanted.SUMMARISE: summarise,
        wanted.LINK: link,
        wanted.ADOPT: recovery.adopt,
        **{f"sessions.{name}": recovery.as_job(find) for name, find in recovery.FINDERS.items()},
    },
    schedule={WATCH: WATCH_SECONDS},
    settings=SessionsSettings,
)

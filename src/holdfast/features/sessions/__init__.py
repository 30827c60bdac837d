"""Sessions: the whole life of an agent session, its turns and tool calls, and whether it is alive."""

from holdfast.core.authority import ANYONE, Authority, Who
from holdfast.core.feature import Feature
from holdfast.core.job import READ_USAGE
from holdfast.core.lazy import lazy_function
from holdfast.features.sessions import commands, policy, views
from holdfast.features.sessions.jobs import process_turns, read_failures, read_transcripts, recovery
from holdfast.features.sessions.settings import SessionsSettings
from holdfast.features.sessions.state import documents, reducer
from holdfast.features.sessions.state.documents import DOCUMENTS
from holdfast.features.sessions.views.activity import daily_activity

WATCH = "sessions.watch"
WATCH_SECONDS = 5.0
UNRECORDED = "sessions.unrecorded"
UNRECORDED_SECONDS = 15.0

FEATURE = Feature(
    name="sessions",
    version=11,
    subscribed_kinds=documents.SUBSCRIBED_KINDS,
    documents=DOCUMENTS,
    keys=reducer.keys,
    reduce=reducer.reduce,
    facets=reducer.facets,
    stream=reducer.stream,
    enrich=policy.enrich,
    enriches=policy.ENRICHED_KINDS,
    enrich_history=recovery.wait_for_import,
    derive=policy.derive,
    derives_history=True,
    decide=policy.decide,
    decides_on=frozenset(("session.started",)),
    can_decide=policy.can_decide,
    enqueue=policy.enqueue,
    commands={"close": commands.close_session, "reopen": commands.reopen_session, "recover": commands.recover_sessions},
    authority={
        "close": Authority(Who.OWN_SESSION, "closing a session", session_of=commands.named_session),
        "reopen": Authority(Who.OWN_SESSION, "reopening a session", session_of=commands.named_session),
        "recover": ANYONE,
    },
    views={
        "list": views.list_sessions,
        "show": views.show_session,
        "find": views.resolve_session_id,
        "who": views.list_live_sessions,
        "timeline": views.timeline_page,
        "rows": views.timeline_rows,
        "marks": views.row_marks,
        "overview": views.session_overview,
        "outline": lazy_function(__name__, "views.outline", "outline"),
        "moment": lazy_function(__name__, "views.outline", "moment"),
        "unrecorded": lazy_function(__name__, "unrecorded", "list_unrecorded"),
        "activity": daily_activity,
        "statusline": views.statusline,
        "export": lazy_function(__name__, "views.export", "export"),
        "table": lazy_function(__name__, "views.table", "table"),
        "agents": lazy_function(__name__, "views.table", "agents"),
    },
    jobs={
        WATCH: recovery.keep_watch,
        UNRECORDED: lazy_function(__name__, "unrecorded", "report_unrecorded"),
        policy.FIND: recovery.find_process,
        policy.PROCESS: process_turns.process_turns,
        READ_USAGE: process_turns.read_usage,
        # Loaded when a session ends, not when the daemon starts.
        policy.SUMMARISE: lazy_function(f"{__name__}.jobs", "summarise", "summarise_session"),
        policy.LINK: recovery.link_parent,
        policy.ADOPT: recovery.adopt_turn,
        read_transcripts.READ_EXIT: read_transcripts.read_exit,
        read_transcripts.READ_ANSWER: read_transcripts.read_answer,
        read_failures.READ: read_failures.read_failures,
        **{f"sessions.{name}": recovery.as_job(name) for name in recovery.FINDERS},
    },
    schedule={WATCH: WATCH_SECONDS, UNRECORDED: UNRECORDED_SECONDS},
    quick=frozenset((read_transcripts.READ_EXIT, read_transcripts.READ_ANSWER, read_failures.READ)),
    settings=SessionsSettings,
)

"""Decides when to index and what to suggest; every answer has its reason (O0-c)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.decision import Decision, context_decision
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.core.kinds.reindex_events import FlagInitialized, RunAsked, RunDecided, RunDetails
from holdfast.core.times import HOUR
from holdfast.features.reindex import state as index_state
from holdfast.features.reindex.settings import Settings, settings_or_default

INDEX, CANCEL, SUGGEST = "reindex.index", "reindex.cancel", "reindex.suggest"
WEIGHT = 30
SHOWN_LINES = 5


# ── whether to run ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Choice(msgspec.Struct, frozen=True):
    decision: str
    reason: str
    details: RunDetails = msgspec.field(default_factory=RunDetails)


def choose_run(
    trigger: str, checkout: index_state.Checkout, now: int, settings: Settings, *, rebuild: bool = False
) -> Choice:
    # The first refusal is the reason shown.
    for gate in (_check_prerequisites, _check_cooldown, _one_at_a_time):
        if refused := gate(trigger, checkout, now, settings):
            return refused
    running = checkout.run if _is_running(checkout, now, settings) else None
    anew = rebuild or bool(running and running.rebuild)  # who asked for it is not forgotten
    return Choice(
        index_state.RUN, index_state.SPAWNED, RunDetails(supersedes=running.id if running else "", rebuild=anew)
    )


def _check_prerequisites(trigger: str, checkout: index_state.Checkout, now: int, settings: Settings) -> Choice | None:
    if trigger == index_state.COMMAND:
        return None
    project = checkout.project
    if not settings.enabled:
        return Choice(index_state.SKIP, index_state.NOT_READY, RunDetails(why="reindex.enabled is false"))
    if not project.startswith("/") or project == "/":
        return Choice(index_state.SKIP, index_state.NOT_READY, RunDetails(why="no project folder is known"))
    refused = checkout.refused
    # An unsuitable folder is tried again only after some hours.
    if refused and now - refused.at < settings.recheck_hours * HOUR:
        return Choice(index_state.SKIP, index_state.NOT_READY, RunDetails(why=refused.why, checked_at=refused.at))
    return None


def _check_cooldown(trigger: str, checkout: index_state.Checkout, now: int, settings: Settings) -> Choice | None:
    """For ends of turns only: new sessions and branches are too rare to hold back."""
    left = checkout.started_at + settings.cooldown_s * 1000 - now
    if trigger != index_state.TURN_END or not 0 < left <= settings.cooldown_s * 1000:  # more: the clock was turned back
        return None
    # Rounded up, so that the cooldown is really over.
    return Choice(index_state.SKIP, index_state.COOLDOWN, RunDetails(remaining_s=-(-left // 1000)))


def _one_at_a_time(trigger: str, checkout: index_state.Checkout, now: int, settings: Settings) -> Choice | None:
    # These stop the current run instead of waiting for it.
    if (
        trigger in (index_state.BRANCH, index_state.COMMAND)
        or checkout.run is None
        or not _is_running(checkout, now, settings)
    ):
        return None
    return Choice(index_state.SKIP, index_state.CONCURRENT, RunDetails(run=checkout.run.id))


def _is_running(checkout: index_state.Checkout, now: int, settings: Settings) -> bool:
    """A run whose end was never reported does not block others for ever."""
    run = checkout.run
    # Twice the limit of a run; `abs`, because the clock may have been set back.
    return run is not None and abs(now - run.at) < 2 * settings.timeout_s * 1000


# ── events that follow ──────────────────────────────────────────────────────────────────────────────────────────────────


def derive(state: State, event: Event, settings: AnySettings) -> Iterator[Event]:
    if not event.project:
        return
    session = index_state.SESSION.get(state, event.session) if event.session else None
    # Most events are tool calls, which trigger nothing unless the branch changed.
    if event.kind == "tool.finished" and (session is None or session.switched_seq != event.seq):
        return
    checkout = index_state.CHECKOUT.get(state, event.project) or index_state.Checkout(
        project=event.project, at=event.at
    )
    mine = settings_or_default(settings)
    if session and _is_new_here(event, session):
        yield _initialized_event(event, session, checkout)
    if trigger := _trigger_of_event(event, session, checkout, mine):
        yield _decided_event(event, trigger, checkout, mine)


def _is_new_here(event: Event, session: index_state.FlagState) -> bool:
    # Some agents report no start: then the first prompt counts.
    return event.kind == "session.started" or (event.kind == "prompt.submitted" and not session.started)


def _initialized_event(event: Event, session: index_state.FlagState, checkout: index_state.Checkout) -> Event:
    previous = checkout.newest.session_id if checkout.newest else ""
    source = event.get("source", "unknown") if event.kind == "session.started" else "unknown"
    # S0-4: at a start whose file names another session, the first prompt is to come again.
    shown = session.shown and (event.kind == "prompt.submitted" or previous in ("", event.session))
    flag = FlagInitialized(source=source, shown=shown, previous=previous, reset=previous != event.session)
    return derived_event(event, flag)


def _trigger_of_event(
    event: Event, session: index_state.FlagState | None, checkout: index_state.Checkout, settings: Settings
) -> str:
    if event.kind == "reindex.asked":
        return index_state.COMMAND
    if event.kind == "reindex.finished":
        return index_state.AGAIN if checkout.again else ""
    if session is None:
        return ""
    if event.kind == "prompt.submitted" and session.first_prompt_seq == event.seq:
        return index_state.FIRST_PROMPT
    if session.switched_seq == event.seq and session.branch != _indexed_branch(checkout):
        return index_state.BRANCH
    if event.kind == "turn.ended" and _worth_a_look(event, session, checkout, settings):
        return index_state.TURN_END
    return ""


def _indexed_branch(checkout: index_state.Checkout) -> str:
    """Switching back to it needs nothing."""
    return checkout.last.branch if checkout.last else ""


def _worth_a_look(
    event: Event, session: index_state.FlagState, checkout: index_state.Checkout, settings: Settings
) -> bool:
    changed = session.turn.edits + session.turn.commands > 0
    return changed or (settings.max_age_s > 0 and event.at - checkout.good_at > settings.max_age_s * 1000)


def _decided_event(event: Event, trigger: str, checkout: index_state.Checkout, settings: Settings) -> Event:
    rebuild = isinstance(event.data, RunAsked) and event.data.rebuild
    choice = choose_run(trigger, checkout, event.at, settings, rebuild=rebuild)
    decided = RunDecided(
        decision=choice.decision, reason=choice.reason, details=choice.details, trigger=trigger,
        run=f"{event.at}-{trigger}-{event.seq}", cwd=event.get("cwd", ""), branch=event.get("branch", ""),
    )  # fmt: skip
    return derived_event(event, decided)


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


ENQUEUED_FOR = frozenset((RunDecided.KIND, "prompt.submitted"))


def enqueue(_state: State, event: Event, settings: AnySettings) -> Iterator[Job]:
    if isinstance(event.data, RunDecided):
        yield from _of_decision(event, event.data)
    elif event.kind == "prompt.submitted" and event.session and settings_or_default(settings).context:
        payload = {
            "project": event.project,
            "session": event.session,
            "of": event.seq,
            "prompt": event.get("prompt", ""),
        }
        # One per session: a newer prompt replaces a waiting search.
        yield Job(kind=SUGGEST, dedupe=event.session, payload=payload)


def _of_decision(event: Event, data: RunDecided) -> Iterator[Job]:
    payload = {
        "project": event.project,
        "session": event.session,
        "run": data.run,
        "trigger": data.trigger,
        "rebuild": data.details.rebuild,
    }
    if data.decision == index_state.RUN:
        if superseded := data.details.supersedes:
            cancel = {"project": event.project, "run": superseded}
            yield Job(kind=CANCEL, dedupe=f"{event.project}#{superseded}", payload=cancel)
        # One per project: a second run joins the waiting one.
        yield Job(kind=INDEX, dedupe=event.project, payload=payload)
    elif data.reason == index_state.COOLDOWN:  # Not now, but then: what changed must not stay unseen.
        yield Job(kind=INDEX, dedupe=event.project, run_at=event.at + data.details.remaining_s * 1000, payload=payload)


# ── what the agent is told ──────────────────────────────────────────────────────────────────────────────────────────────


def can_decide(kind: str, settings: AnySettings) -> bool:
    return kind == "tool.finished" and settings_or_default(settings).context


def decide(state: State, event: Event, settings: AnySettings) -> Decision | None:
    if not event.session or not can_decide(event.kind, settings):
        return None
    session = index_state.SESSION.get(state, event.session)
    return (
        context_decision(index_state.SOURCE, _suggestion_text(session.offer.chunks), WEIGHT)
        if session and session.offer
        else None
    )


def _suggestion_text(chunks: list[dict[str, Any]]) -> str:
    lines = ["Places in this code base that fit the prompt:"]
    for chunk in chunks:
        lines.append(f"- {chunk['path']}:{chunk['line']} {chunk['symbol']}".rstrip())
        lines += [f"    {line}" for line in chunk["excerpt"].split("\n")[:SHOWN_LINES]]
    return "\n".join(lines)

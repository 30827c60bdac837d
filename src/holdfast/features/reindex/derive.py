"""What an event means here, as events of its own: the session's flag set up, the decision to index or not."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.ports import Doc
from holdfast.features.reindex.model import (
    AGAIN,
    BRANCH,
    CHECKOUT,
    COMMAND,
    FIRST_PROMPT,
    SESSION,
    TURN_END,
    Settings,
    new_checkout,
    settings_or_default,
)
from holdfast.features.reindex.trigger import choose


def derive(state: State, event: Event, settings: AnySettings) -> Iterator[Event]:
    if not event.project:
        return
    session = state.get(SESSION, event.session) if event.session else None
    checkout = state.get(CHECKOUT, event.project) or new_checkout(event.project, event.at)
    mine = settings_or_default(settings)
    if session and _is_new_here(event, session):
        yield _initialized(event, session, checkout)
    if trigger := _trigger(event, session, checkout, mine):
        yield _decided(event, trigger, checkout, mine)


def _is_new_here(event: Event, session: Doc) -> bool:
    return event.kind == "session.started" or (event.kind == "prompt.submitted" and not session["started"])


def _initialized(event: Event, session: Doc, checkout: Doc) -> Event:
    previous = (checkout["newest"] or {}).get("session_id", "")
    data = {
        "source": event.get("source", "unknown") if event.kind == "session.started" else "unknown",
        "shown": session["shown"],
        "previous": previous,
        "reset": previous != event.session,
    }
    return _of(event, "reindex.initialized", data)


def _trigger(event: Event, session: Doc | None, checkout: Doc, settings: Settings) -> str:
    if event.kind == "reindex.asked":
        return COMMAND
    if event.kind == "reindex.finished":
        return AGAIN if checkout["again"] else ""
    if session is None:
        return ""
    if event.kind == "prompt.submitted" and session["first_prompt_seq"] == event.seq:
        return FIRST_PROMPT
    if session["switched_seq"] == event.seq and session["branch"] != (checkout["last"] or {}).get("branch"):
        return BRANCH
    if event.kind == "turn.ended" and _worth_a_look(event, session, checkout, settings):
        return TURN_END
    return ""


def _worth_a_look(event: Event, session: Doc, checkout: Doc, settings: Settings) -> bool:
    turn = session["turn"]
    changed = turn.get("edits", 0) + turn.get("commands", 0) > 0
    return changed or (settings.max_age_s > 0 and event.at - checkout["good_at"] > settings.max_age_s * 1000)


def _decided(event: Event, trigger: str, checkout: Doc, settings: Settings) -> Event:
    choice = choose(trigger, checkout, event.at, settings, rebuild=event.get("rebuild") is True)
    data = {
        "decision": choice.decision,
        "reason": choice.reason,
        "details": choice.details,
        "trigger": trigger,
        "run": f"{event.at}-{trigger}-{event.seq}",
        "cwd": event.get("cwd", ""),
        "branch": event.get("branch", ""),
    }
    return _of(event, "reindex.decided", data)


def _of(event: Event, kind: str, data: dict) -> Event:
    return Event(key="", kind=kind, at=event.at, session=event.session, project=event.project, agent="", data=data)

"""What sessions are shown and refused because of the team: others' leases, hand-overs, new rules."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from holdfast.core.decision import Context, Decision, deny_decision, merge_decisions
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import Settings, State
from holdfast.core.globs import any_matches
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.team_events import TeamBudgetsShown, TeamHandoverTold, TeamRulesShown
from holdfast.core.text import sanitise_line
from holdfast.features.team.state import (
    LOCAL_PROJECT,
    MEMBERSHIP,
    NEWS_KINDS,
    SHARED,
    THE_TEAM,
    Handover,
    KnownLease,
    Membership,
    SharedState,
    TeamRule,
)
from holdfast.paths import default_state_dir

FOLDER, LEASES_FILE = "team", "leases-in-force"
# Hand-overs shown at once.
MOST_TOLD = 5
# Clocks are corrected by some seconds all the time.
CLOCK_BACK_MS = 60_000


class Markers:
    """Whether this machine is in a team and any lease was ever announced. Needed for every hook, so files are read
    once and later changes are noted here."""

    _known: dict[tuple[Path, str], bool] = {}

    @classmethod
    def is_set(cls, name: str) -> bool:
        key = default_state_dir(), name
        if key not in cls._known:
            cls._known[key] = (key[0] / FOLDER / name).exists()
        return cls._known[key]

    @classmethod
    def forget(cls) -> None:
        """Read again next time."""
        cls._known.clear()


def is_joined() -> bool:
    return Markers.is_set("membership.json")


def can_decide(kind: str, _settings: Settings) -> bool:
    """A machine without a team, and a tool call without announced leases, cost nothing."""
    if kind == "tool.started":
        return Markers.is_set(LEASES_FILE)
    return kind in NEWS_KINDS and is_joined()


def decide(state: State, event: Event, _settings: Settings) -> Decision | None:
    if event.kind == "tool.started":
        return _refuse_leased(state, event)
    if event.kind not in NEWS_KINDS:
        return None
    decisions = [_show_rules(state, event), _show_budgets(state, event)]
    if event.kind == "session.started":
        decisions += [_tell_handovers(state, event), _tell_leases(state, event)]
    return merge_decisions(decisions)


def derive(state: State, event: Event, _settings: Settings) -> Iterable[Event]:
    """Record what was shown, so that it is shown once."""
    if event.kind not in NEWS_KINDS or not is_joined():
        return
    membership = _membership(state)
    if rules := [name for name, rule in membership.rules.items() if not rule.shown_by]:
        yield derived_event(event, TeamRulesShown(names=rules, by=event.key))
    if budgets := [one.item for one in membership.budgets if not one.shown_by]:
        yield derived_event(event, TeamBudgetsShown(budgets=budgets, by=event.key))
    if event.kind == "session.started":
        yield from _told_handovers(state, event)


def _told_handovers(state: State, event: Event) -> Iterable[Event]:
    project, shared = _shared_state(state, event)
    if items := [one.item for one in shared.handovers if not one.told]:
        yield derived_event(event, TeamHandoverTold(project_id=project, handovers=items))


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_leased(state: State, event: Event) -> Decision | None:
    data = event.data
    if not isinstance(data, ToolPayload) or not (data.written or data.action == "edit"):
        return None
    foreign = _foreign_leases(state, event)
    root = data.worktree or event.project
    for name, lease in foreign.items():
        for path in data.written or data.paths:
            if any_matches(tuple(lease.paths), path, root):
                return deny_decision(_refusal_text(name, lease, path.removeprefix(f"{root}/")))
    return None


def _refusal_text(name: str, lease: KnownLease, path: str) -> str:
    who = sanitise_line(lease.person, 80)
    what = f"{path} is covered by the team lease {sanitise_line(name, 80)}, held by {who} on another machine."
    return f"{what} {_lease_reason_text(lease)}Work on something else, or ask them to release it."


def _foreign_leases(state: State, event: Event) -> dict[str, KnownLease]:
    """Leases of other machines that have not expired, as far as is known here."""
    _, shared = _shared_state(state, event)
    # If the clock was set back, the rest of a lease is unknown.
    return {
        name: one
        for name, one in shared.leases.items()
        if not one.mine and one.since - CLOCK_BACK_MS <= event.at < one.until
    }


def _tell_leases(state: State, event: Event) -> Decision | None:
    foreign = _foreign_leases(state, event)
    lines = [
        f"- {name}: held by {one.person}, {', '.join(one.paths) or 'no paths'}. {_lease_reason_text(one)}"
        for name, one in foreign.items()
    ]
    return _context_decision("team.leases", "Team leases held by others:", lines, 60)


def _lease_reason_text(lease: KnownLease) -> str:
    return f"They say: {sanitise_line(lease.why, 200)}. " if lease.why else ""


# ── news ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _show_rules(state: State, event: Event) -> Decision | None:
    # Or shown by this event: `derive` runs before `decide`.
    new = {name: rule for name, rule in _membership(state).rules.items() if rule.shown_by in ("", event.key)}
    return Decision(notices=tuple(rule_text(name, rule) for name, rule in new.items())) if new else None


def _show_budgets(state: State, event: Event) -> Decision | None:
    """Shown to the person; nothing is refused, because whether to continue is theirs to decide."""
    new = [one for one in _membership(state).budgets if one.shown_by in ("", event.key)]
    lines = (
        f"Team budget {sanitise_line(one.name, 80)}: {one.percent} % of {sanitise_line(one.text, 200)} are spent."
        for one in new
    )
    return Decision(notices=tuple(lines)) if new else None


def rule_text(name: str, rule: TeamRule) -> str:
    text = msgspec.json.encode(rule.requirement).decode()
    return f"New team rule {name}, set by {rule.by}: {text}"


def _tell_handovers(state: State, event: Event) -> Decision | None:
    _, shared = _shared_state(state, event)
    # Already shown to this session: the same event may be decided again.
    waiting = [one for one in shared.handovers if one.told in ("", event.session)]
    return _context_decision(
        "team.handover", "Work was handed over to your user:", [_handover_text(o) for o in waiting[-MOST_TOLD:]], 80
    )


def _handover_text(one: Handover) -> str:
    return f"From {one.by}:\n{one.text}"


def _context_decision(source: str, title: str, lines: list[str], weight: int) -> Decision | None:
    return Decision(contexts=(Context(source, "\n".join([title, *lines]), weight),)) if lines else None


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _membership(state: State) -> Membership:
    return MEMBERSHIP.get(state, THE_TEAM) or Membership()


def _shared_state(state: State, event: Event) -> tuple[str, SharedState]:
    """The identity of the event's project, and the team's state for it."""
    project = LOCAL_PROJECT.get(state, _path_key(event.project)) if event.project else None
    identity = project.id if project else ""
    return identity, (SHARED.get(state, bounded_name(identity)) if identity else None) or SharedState()


@lru_cache(500)
def _path_key(path: str) -> str:
    return bounded_name(path)

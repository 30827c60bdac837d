"""Which events concern the gates, and which documents each of them touches."""

from collections.abc import Callable, Iterable, Mapping

from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.gates_events import GatesPaused, GatesPruned, GatesResumed, GatesRulesAccepted, GatesRulesKept
from holdfast.core.kinds.session_events import ToolExitRead
from holdfast.core.ports import Ref

BRANCH, SESSION, FACTS, PAUSE, LIVE = "gates.branch", "gates.session", "gates.facts", "gates.pause", "gates.live"
RULES, ATTENTION, SPENT = "gates.rules", "gates.attention", "gates.spent"
REGISTRY, ATTENTION_REF = Ref(LIVE, "sessions"), Ref(ATTENTION, "all")
EVERYWHERE = "everywhere"

SESSION_OVER = frozenset({"session.ended", "session.lost", "session.stale", "session.closed", "session.left"})
"""All but the first come from the feature `sessions`, which watches the agents' processes (D6)."""
LIFE = SESSION_OVER | {"session.started", "prompt.submitted", "turn.ended", "cwd.changed"}
TOOLS = frozenset({"tool.finished", "tool.failed", "tool.exit_read"})
"""The last comes from the feature `sessions`, where an agent writes exit codes only into its transcript."""
LEAVE_FACTS = frozenset({"edit", "shell", "skill"})
ACTING = frozenset({"edit", "shell", "mcp", "other"})
"""What a tool may do while a file changes."""
UAT = frozenset({"uat.ended", "uat.reported"})
ANSWERED = "model.answered"
TEAM, TEAM_RULES = "team", frozenset(("team.rule_arrived", "team.rule_withdrawn", "team.left"))
"""The scope under which the rules of a team are kept (no folder has such a name), and the kinds that change them."""
TEAM_PREFIX = "team:"
"""Before the names of a team's rules: no settings file can name a requirement so."""


OF_A_CALL = (ToolPayload, ToolExitRead)


def repo_of(event: Event) -> str:
    """The common git directory, for the kinds that tell it."""
    return getattr(event.data, "repo", "") or ""


def branch_of(event: Event) -> str:
    return getattr(event.data, "branch", "") or ""


def repo_or_project(event: Event) -> str:
    """Worktrees share the common git directory; outside git the project's folder is used."""
    return repo_of(event) or event.project


def branch_key(where: str, branch: str) -> str:
    """Git allows no colon in a branch's name, so that two branches never have one key (D4)."""
    return bounded_name(f"{where}::{branch}")


def branch_ref(event: Event) -> Ref:
    return Ref(BRANCH, branch_key(repo_or_project(event), branch_of(event)))


def action_of(event: Event) -> str:
    """What the tool of a call does; empty for what is no call."""
    return event.data.action if isinstance(event.data, OF_A_CALL) else ""


def session_ref(event: Event) -> Ref:
    return Ref(SESSION, event.session)


def keys(event: Event) -> Iterable[Ref]:
    return _REFS[event.kind](event) if event.kind in _REFS else ()


def live_keys(event: Event) -> Iterable[Ref]:
    """Imported events prove nothing about the present; only a replay counts them."""
    data = event.data
    imported = isinstance(data, HookPayload | CheckFinished) and data.imported
    return () if imported else keys(event)


def _facts_ref(event: Event) -> Iterable[Ref]:
    return (Ref(FACTS, event.project),)


def _own_session(event: Event) -> tuple[Ref, ...]:
    return (session_ref(event),) if event.session else ()


def _tool_started(event: Event) -> Iterable[Ref]:
    return _own_session(event) if action_of(event) in ACTING else ()


def _tool_ended(event: Event) -> Iterable[Ref]:
    action = action_of(event)
    wrote = isinstance(event.data, ToolPayload) and bool(event.data.written)
    # A tool of another kind leaves a fact only if it wrote a file.
    facts = _facts_ref(event) if action in LEAVE_FACTS or wrote else ()
    ended = action in ACTING and event.kind != "tool.exit_read"
    return (*facts, *(_own_session(event) if ended else ()))


def _session_refs(event: Event) -> Iterable[Ref]:
    if not event.session:
        return ()
    more = [branch_ref(event)] if event.kind in SESSION_OVER else []
    more += [Ref(SPENT, spending_key("session", event.session))] if event.kind == "prompt.submitted" else []
    return (session_ref(event), REGISTRY, *more)


def spending_key(of: str, name: str) -> str:
    return bounded_name(f"{of}:{name}")


def spending_refs(event: Event) -> Iterable[Ref]:
    """Per session and project. Imported events do not count against a budget."""
    if isinstance(event.data, HookPayload) and event.data.imported:
        return ()
    named = (("session", event.session), ("project", event.project))
    return [Ref(SPENT, spending_key(of, name)) for of, name in named if name]


def _decision_refs(event: Event) -> Iterable[Ref]:
    ours = isinstance(event.data, DecisionMade) and any("gate" in detail for detail in event.data.details)
    return _own_session(event) if ours else ()


def _rules_refs(event: Event) -> Iterable[Ref]:
    assert isinstance(event.data, GatesRulesKept | GatesRulesAccepted)
    return (Ref(RULES, bounded_name(event.data.scope)), ATTENTION_REF)


def _pause_ref(event: Event) -> Iterable[Ref]:
    assert isinstance(event.data, GatesPaused | GatesResumed)
    return (Ref(PAUSE, bounded_name(event.data.where or EVERYWHERE)),)


def _pruned_refs(event: Event) -> Iterable[Ref]:
    assert isinstance(event.data, GatesPruned)
    return [Ref(BRANCH, branch_key(event.data.repo, branch)) for branch in event.data.branches]


_REFS: Mapping[str, Callable[[Event], Iterable[Ref]]] = {
    **dict.fromkeys(LIFE, _session_refs),
    **dict.fromkeys(TOOLS, _tool_ended),
    **dict.fromkeys(("check.finished", "gates.measured", "gates.looked", *UAT), _facts_ref),
    **dict.fromkeys(("gates.satisfied", "gates.approved"), lambda event: (*_own_session(event), branch_ref(event), ATTENTION_REF)),
    **dict.fromkeys(("gates.rules_kept", "gates.rules_accepted"), _rules_refs),
    **dict.fromkeys(("gates.paused", "gates.resumed"), _pause_ref),
    **dict.fromkeys(("gates.bypassed", "answer.undelivered"), lambda event: (*_own_session(event), ATTENTION_REF)),
    **dict.fromkeys(("gates.attempted", "daemon.started", "daemon.stopped"), lambda _event: (ATTENTION_REF,)),
    **dict.fromkeys(TEAM_RULES, lambda _event: (Ref(RULES, TEAM),)),
    "tool.started": _tool_started,
    **dict.fromkeys(("gates.triggered", "gates.held", "gates.passed"), lambda event: (session_ref(event),)),
    "gates.cleared": lambda event: (*_own_session(event), branch_ref(event)),
    "gates.pruned": _pruned_refs,
    "decision.made": _decision_refs,
    ANSWERED: spending_refs,
}  # fmt: skip
KINDS = frozenset(kind for kind in _REFS if kind.startswith("gates."))
SUBSCRIBED_KINDS = frozenset(_REFS) | {"prompt.expanded"}

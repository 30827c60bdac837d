"""Which events concern the gates, and which documents each of them touches."""

from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.gates_events import GatesPaused, GatesPruned, GatesResumed, GatesRulesAccepted, GatesRulesKept
from holdfast.core.kinds.session_events import ToolExitRead
from holdfast.core.ports import Ref

BRANCH, SESSION, FACTS, PAUSE, LIVE = "gates.branch", "gates.session", "gates.facts", "gates.pause", "gates.live"
REGISTRY = Ref(LIVE, "sessions")
SPENT = "gates.spent"
EVERYWHERE = "everywhere"

CHANGES = frozenset({"gates.satisfied", "gates.cleared", "gates.approved"})
SESSION_OVER = frozenset({"session.ended", "session.lost", "session.stale", "session.closed", "session.left"})
"""All but the first are told by the feature `sessions`, which watches the agents' processes (D6)."""
LIFE = SESSION_OVER | {"session.started", "prompt.submitted", "turn.ended", "cwd.changed"}
TOOLS = frozenset({"tool.finished", "tool.failed", "tool.exit_read"})
"""The last is told by the feature `sessions`, where an agent writes exit codes only into its transcript."""
LEAVE_FACTS = frozenset({"edit", "shell", "skill"})
ACTING = frozenset({"edit", "shell", "mcp", "other"})
"""What a tool may do while a file changes."""
CHECK = "check.finished"
RULES, ATTENTION = "gates.rules", "gates.attention"
ATTENTION_REF = Ref(ATTENTION, "all")
# What a person is shown under "needs attention".
SEEN = frozenset(
    {
        "gates.bypassed",
        "gates.attempted",
        "gates.rules_kept",
        "gates.rules_accepted",
        "gates.approved",
        "gates.satisfied",
        "daemon.started",
        "daemon.stopped",
        "answer.undelivered",
    }
)
UAT = frozenset({"uat.ended", "uat.reported"})


OWN = {"gates.bypassed", "gates.attempted", "gates.rules_kept", "gates.rules_accepted"}
KINDS = OWN | {
    "gates.triggered",
    "gates.satisfied",
    "gates.approved",
    "gates.cleared",
    "gates.paused",
    "gates.resumed",
    "gates.pruned",
    "gates.measured",
    "gates.looked",
}
ANSWERED = "model.answered"
OTHERS = {
    ANSWERED,
    CHECK,
    "answer.undelivered",
    "daemon.started",
    "daemon.stopped",
    "tool.started",
    "prompt.expanded",
    "decision.made",
}
TEAM, TEAM_RULES = "team", frozenset(("team.rule_arrived", "team.rule_withdrawn", "team.left"))
"""The scope under which the rules of a team are kept (no folder has such a name), and the kinds that change them."""
TEAM_PREFIX = "team:"
"""Before the names of a team's rules: no settings file can name a requirement so."""
SUBSCRIBED_KINDS = frozenset(KINDS) | CHANGES | LIFE | TOOLS | UAT | OTHERS | TEAM_RULES


OF_A_CALL = (ToolPayload, ToolExitRead)


def repo_of(event: Event) -> str:
    """The common git directory, for the kinds that tell it."""
    return getattr(event.data, "repo", "") or ""


def branch_of(event: Event) -> str:
    return getattr(event.data, "branch", "") or ""


def repo_or_project(event: Event) -> str:
    """Worktrees share the common git directory; outside git the project's folder stands for it."""
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
    kind = event.kind
    if kind == "tool.started":
        return (session_ref(event),) if event.session and action_of(event) in ACTING else ()
    if kind in TOOLS:
        return _tool_ended(event)
    if kind == CHECK:
        return (Ref(FACTS, event.project),)
    if kind == ANSWERED:
        return spending_refs(event)
    if kind in LIFE:
        return _session_refs(event)
    if kind == "decision.made":
        return (session_ref(event),) if event.session and _is_ours(event) else ()
    if kind == "gates.triggered":
        return (session_ref(event),)
    if kind in CHANGES:
        # Of the changes, only satisfying and approving may need a person's eye.
        shown = (ATTENTION_REF,) if kind in SEEN else ()
        return (session_ref(event), branch_ref(event), *shown) if event.session else (branch_ref(event), *shown)
    if kind in ("gates.measured", "gates.looked") or kind in UAT:
        return (Ref(FACTS, event.project),)
    return _other_refs(event)


def live_keys(event: Event) -> Iterable[Ref]:
    """An imported event proves nothing of the present; only a replay of rules on the past counts it."""
    data = event.data
    imported = isinstance(data, HookPayload | CheckFinished) and data.imported
    return () if imported else keys(event)


def _tool_ended(event: Event) -> Iterable[Ref]:
    action = action_of(event)
    wrote = isinstance(event.data, ToolPayload) and bool(event.data.written)
    # A tool of another kind leaves a fact only if it wrote a file.
    facts = (Ref(FACTS, event.project),) if action in LEAVE_FACTS or wrote else ()
    ended = event.session and action in ACTING and event.kind != "tool.exit_read"
    return (*facts, session_ref(event)) if ended else facts


def _session_refs(event: Event) -> Iterable[Ref]:
    if not event.session:
        return ()
    if event.kind in SESSION_OVER:
        return (session_ref(event), REGISTRY, branch_ref(event))
    if event.kind == "prompt.submitted":
        return (session_ref(event), REGISTRY, Ref(SPENT, spending_key("session", event.session)))
    return (session_ref(event), REGISTRY)


def spending_key(of: str, name: str) -> str:
    return bounded_name(f"{of}:{name}")


def spending_refs(event: Event) -> Iterable[Ref]:
    """By whom and where it was spent. A budget is for what is spent from now on: what was imported is in the cost alone."""
    if isinstance(event.data, HookPayload) and event.data.imported:
        return ()
    named = (("session", event.session), ("project", event.project))
    return [Ref(SPENT, spending_key(of, name)) for of, name in named if name]


def _other_refs(event: Event) -> Iterable[Ref]:
    data = event.data
    if isinstance(data, GatesRulesKept | GatesRulesAccepted):
        return (Ref(RULES, bounded_name(data.scope)), ATTENTION_REF)
    if event.kind in TEAM_RULES:
        return (Ref(RULES, TEAM),)
    if event.kind in ("gates.bypassed", "answer.undelivered"):
        return (session_ref(event), ATTENTION_REF) if event.session else (ATTENTION_REF,)
    if event.kind in SEEN:
        return (ATTENTION_REF,)
    if isinstance(data, GatesPaused | GatesResumed):
        return (Ref(PAUSE, bounded_name(data.where or EVERYWHERE)),)
    if isinstance(data, GatesPruned):
        return [Ref(BRANCH, branch_key(data.repo, branch)) for branch in data.branches]
    return ()


def _is_ours(event: Event) -> bool:
    return isinstance(event.data, DecisionMade) and any("gate" in detail for detail in event.data.details)

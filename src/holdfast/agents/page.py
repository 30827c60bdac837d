"""The tables of docs/agents.md: what each agent reports, and what a refusal does there."""

from collections.abc import Iterable

from holdfast.agents import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.decision import Context, Decision
from holdfast.core.event import Event

SHOWN = (
    "session.started", "session.ended", "prompt.submitted", "tool.started", "tool.finished", "tool.failed",
    "permission.requested", "turn.ended", "turn.failed", "turn.interrupted", "subagent.started", "subagent.ended",
    "compact.started", "compact.ended", "notification",
)  # fmt: skip
TOLD = ("session.started", "prompt.submitted", "tool.started", "tool.finished", "permission.requested", "turn.ended")
SILENT = "–"


def agents_table() -> str:
    """Agent × event × what is enforced. The words are the agent's own names for the event."""
    hooked_agents = [agent for agent in AGENTS.values() if agent.hooks]
    head = ["event", *(agent.title for agent in hooked_agents)]
    rows = [[f"`{kind}`", *(_event_cell(agent, kind) for agent in hooked_agents)] for kind in SHOWN]
    return _markdown_table([head, ["---"] * len(head), *rows])


def told_table() -> str:
    """Agent × event × what reaches the model or the person; everything else waits for the next event that has a place."""
    hooked_agents = [agent for agent in AGENTS.values() if agent.hooks]
    head = ["event", *(agent.title for agent in hooked_agents)]
    rows = [[f"`{kind}`", *(_told_cell(agent, kind) for agent in hooked_agents)] for kind in TOLD]
    return _markdown_table([head, ["---"] * len(head), *rows])


def _told_cell(agent: Agent, kind: str) -> str:
    hook = next((hook for hook in agent.hooks if hook.kind == kind and hook.register and hook.mode != "tell"), None)
    if hook is None:
        return SILENT
    event = Event(key="", kind=kind, at=0, agent=agent.name, data={"native": hook.event})
    told = agent.carried(event, Decision(contexts=(Context("", "text"),), notices=("text",)))
    refused = agent.carried(event, Decision(verdict="deny", reasons=("reason",)))
    places = {"refusal": refused.verdict == "deny", "context": told.contexts, "notice": told.notices}
    return ", ".join(name for name, place in places.items() if place) or SILENT


def files_table() -> str:
    agents_with_setup = [agent for agent in AGENTS.values() if agent.setup]
    head = ["agent", "`--agent`", "user", "project", "from version"]
    return _markdown_table([head, ["---"] * len(head), *(_files_row(agent) for agent in agents_with_setup)])


def _event_cell(agent: Agent, kind: str) -> str:
    # Events that are not registered are never reported.
    event_names = [f"`{hook.event}`" for hook in agent.hooks if hook.kind == kind and hook.register]
    if not event_names:
        return SILENT
    enforced = agent.enforces.get(kind)
    return f"{', '.join(event_names)} · **{enforced}**" if enforced else ", ".join(event_names)


def _files_row(agent: Agent) -> list[str]:
    setup = agent.setup
    if setup is None:
        return []
    oldest = ".".join(map(str, setup.oldest)) or SILENT
    return [agent.title, f"`{agent.name}`", f"`~/{setup.files['user']}`", f"`{setup.files['project']}`", oldest]


def _markdown_table(rows: Iterable[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)

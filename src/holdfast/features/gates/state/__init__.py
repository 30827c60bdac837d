"""The documents of the gates and how events change them: who is satisfied, what a session did, who is alive, what a person should see."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.ports import Doc, Ref
from holdfast.features.gates.events import (
    ATTENTION,
    BRANCH,
    FACTS,
    LIVE,
    PAUSE,
    RULES,
    SESSION,
    SPENT,
    SUBSCRIBED_KINDS,
    keys,
)
from holdfast.features.gates.evidence import Facts, reduce_facts
from holdfast.features.gates.state.attention import (
    AcceptedRules,
    Attention,
    Pause,
    reduce_attention,
    reduce_pause,
    reduce_rules,
)
from holdfast.features.gates.state.branches import BranchState, LiveSessions, reduce_branch, reduce_registry
from holdfast.features.gates.state.session import GateSession, reduce_session
from holdfast.features.gates.state.spending import Spending, reduce_spending

BRANCHES = DocumentType(BRANCH, BranchState)
SESSIONS = DocumentType(SESSION, GateSession)
FACTS_OF = DocumentType(FACTS, Facts)
PAUSES = DocumentType(PAUSE, Pause)
REGISTRIES = DocumentType(LIVE, LiveSessions)
RULES_OF = DocumentType(RULES, AcceptedRules)
ATTENTIONS = DocumentType(ATTENTION, Attention)
SPENDINGS = DocumentType(SPENT, Spending)
DOCUMENTS = (BRANCHES, SPENDINGS, SESSIONS, FACTS_OF, PAUSES, REGISTRIES, RULES_OF, ATTENTIONS)

REDUCERS: Mapping[str, Callable[[Any, Event], Doc | None]] = {
    BRANCH: reduce_branch,
    SESSION: reduce_session,
    FACTS: reduce_facts,
    LIVE: reduce_registry,
    PAUSE: reduce_pause,
    RULES: reduce_rules,
    ATTENTION: reduce_attention,
    SPENT: reduce_spending,
}


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    return REDUCERS[ref.kind](doc, event)


FOLDED = Feature(name="gates", subscribed_kinds=SUBSCRIBED_KINDS, keys=keys, reduce=reduce)
"""The documents alone, for looking at them as they were and as other rules would have made them."""


class Documents:
    """Documents in memory, in the shape that `decide` reads them."""

    def __init__(self) -> None:
        self.docs: dict[Ref, Doc] = {}

    def get(self, kind: str, key: str) -> Doc | None:
        return self.docs.get(Ref(kind, key))


def live_sessions(state: State) -> LiveSessions:
    return REGISTRIES.get(state, "sessions") or LiveSessions()

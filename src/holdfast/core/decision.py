"""What a hook client delivers, what Holdfast answers, and how answers are merged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

# What Holdfast answers, and how the answers of several features are merged.

RANK = {"none": 0, "allow": 1, "ask": 2, "deny": 3}


class ContextLine(msgspec.Struct, frozen=True):
    """One line of a context. It is injected only while one of its files exists; always if it names none."""

    text: str
    files: tuple[str, ...] = ()


class Context(msgspec.Struct, frozen=True):
    """Text offered to the agent. `weight` decides what is left out when the budget is short.

    `lines` follow the text. If there are lines and none still holds, nothing is injected.
    """

    source: str
    text: str
    weight: int = 50
    lines: tuple[ContextLine, ...] = ()

    def checked(self, exists: Callable[[str], bool]) -> "Context | None":
        """Return the context with the lines that still hold."""
        if not self.lines:
            return self
        fresh_lines = [line.text for line in self.lines if not line.files or any(exists(path) for path in line.files)]
        return Context(self.source, "\n".join([self.text, *fresh_lines]), self.weight) if fresh_lines else None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """At the end of a turn `deny` means: continue. `notices` are for the person, never for the model."""

    verdict: str = "none"
    reasons: tuple[str, ...] = ()
    contexts: tuple[Context, ...] = ()
    notices: tuple[str, ...] = ()
    details: tuple[dict[str, Any], ...] = ()

    @property
    def silent(self) -> bool:
        return self.verdict in ("none", "allow") and not (self.contexts or self.notices or self.details)


NOTHING = Decision()


def deny_decision(*reasons: str, details: tuple[dict[str, Any], ...] = ()) -> Decision:
    return Decision(verdict="deny", reasons=reasons, details=details)


def context_decision(source: str, text: str, weight: int = 50) -> Decision:
    return Decision(contexts=(Context(source, text, weight),))


def merge_decisions(decisions: Iterable[Decision | None]) -> Decision:
    """Merge answers: deny > ask > allow. Only the winner's reasons are kept; all contexts are."""
    opinions = [d for d in decisions if d is not None]
    if not opinions:
        return NOTHING
    verdict = max([d.verdict for d in opinions], key=RANK.__getitem__)
    return Decision(
        verdict=verdict,
        reasons=tuple({r: None for d in opinions if d.verdict == verdict for r in d.reasons}),
        contexts=tuple([c for d in opinions for c in d.contexts]),
        notices=tuple({n: None for d in opinions for n in d.notices}),
        details=tuple([x for d in opinions for x in d.details]),
    )


Conversation = tuple[str, str]
"""A session and its lane: a subagent's contexts are not for the main agent."""
HELD_SESSIONS, HELD_CONTEXTS, HELD_MS = 200, 4, 600_000


class HeldContexts:
    """Contexts that the agent's reply had no place for; they wait for the session's next event that has one.

    In memory only: what is lost with the daemon was never recorded as delivered.
    """

    def __init__(self) -> None:
        self._waiting: dict[Conversation, tuple[int, tuple[Context, ...]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, conversation: Conversation, contexts: Sequence[Context], now: int) -> None:
        """Replace what waits for this conversation, and drop what waited too long."""
        self._waiting.pop(conversation, None)
        if contexts and conversation[0]:
            self._waiting[conversation] = now, tuple(contexts[:HELD_CONTEXTS])
        # Oldest first.
        for key, (at, _) in list(self._waiting.items()):
            if now - at < HELD_MS and len(self._waiting) <= HELD_SESSIONS:
                break
            del self._waiting[key]

    def of(self, conversation: Conversation) -> tuple[Context, ...]:
        return self._waiting.get(conversation, (0, ()))[1]


# What a hook client delivers, before it is parsed.


class Delivery(msgspec.Struct, kw_only=True, frozen=True):
    key: str
    agent: str
    event: str
    mode: str = "tell"
    at: int = 0
    pid: int = 0
    start: int = 0
    cwd: str = ""
    client: str = ""
    via: str = ""
    state: str = ""
    env: Mapping[str, str] = {}
    body: bytes = b""
    cleaned: bool = False
    """Whether the body is cut and redacted. Then `whole` is its original length, and `digest` its hash if it was cut."""
    ancestors: tuple[int, ...] = ()
    """The client's parent processes, nearest first, as the kernel reported them on connect; empty if unknown."""
    whole: int = 0
    digest: str = ""
    confirms: bool = False
    """Whether the client confirms that it wrote the answer."""
    client_verdict: str = ""
    """What the client answered without us: `none`, or `deny` (a requirement with `when_unsure: deny`)."""
    waits: bool = False
    """Whether the client waits longer: a person may answer from elsewhere."""
    missed: bool = False
    """An answer was wanted and not given: the delivery was spooled, or the store was unavailable."""

    def unanswered(self) -> "Delivery":
        """Return the delivery as one whose question was never answered."""
        return msgspec.structs.replace(self, mode="tell", waits=False, missed=self.missed or self.mode == "ask")

    def without_reply(self) -> "Delivery":
        """Return the delivery as one that nobody waits for."""
        return msgspec.structs.replace(self, mode="tell")

"""What a hook client hands in, and what Holdfast answers: the answers of several features become one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

# What Holdfast answers, and how the answers of several features become one.

RANK = {"none": 0, "allow": 1, "ask": 2, "deny": 3}


class ContextLine(msgspec.Struct, frozen=True):
    """One line of a context, told only while one of these files is there; always where it names none."""

    text: str
    files: tuple[str, ...] = ()


class Context(msgspec.Struct, frozen=True):
    """A piece of text offered to the agent. `weight` decides who is left out when the budget is short.

    `lines` follow the text, each only if it still holds when it is told: without any that does, nothing is told.
    """

    source: str
    text: str
    weight: int = 50
    lines: tuple[ContextLine, ...] = ()

    def checked(self, exists: Callable[[str], bool]) -> "Context | None":
        """As it is told now: its lines looked at again and made part of the text."""
        if not self.lines:
            return self
        fresh_lines = [line.text for line in self.lines if not line.files or any(exists(path) for path in line.files)]
        return Context(self.source, "\n".join([self.text, *fresh_lines]), self.weight) if fresh_lines else None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """On the end of a turn `deny` means: go on working. `notices` are for the person, never for the model."""

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
    """deny > ask > allow; only the reasons of the winning verdict are given, all contexts are offered."""
    opinions = [d for d in decisions if d is not None]
    if not opinions:
        return NOTHING
    verdict = max((d.verdict for d in opinions), key=RANK.__getitem__)
    return Decision(
        verdict=verdict,
        reasons=_unique_texts(r for d in opinions if d.verdict == verdict for r in d.reasons),
        contexts=tuple(c for d in opinions for c in d.contexts),
        notices=_unique_texts(n for d in opinions for n in d.notices),
        details=tuple(x for d in opinions for x in d.details),
    )


def _unique_texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


# What a hook client hands in, before anybody has understood it.


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
    """Whether the body is cut and redacted already. Then `whole` is the length it had, and `digest` its hash if cut."""
    ancestors: tuple[int, ...] = ()
    """The processes above the client, nearest first, as the kernel told when it was connected; empty: not known."""
    whole: int = 0
    digest: str = ""
    confirms: bool = False
    """Whether the client says so when it has written an answer out."""
    client_verdict: str = ""
    """What the client told the agent without us: `none`, or `deny` (a requirement with `when_unsure: deny`)."""
    missed: bool = False
    """An answer was wanted and could not be given: it came by the spool, or the store took nothing."""

    def unanswered(self) -> "Delivery":
        """The same, now that whoever asked has gone without an answer."""
        return msgspec.structs.replace(self, mode="tell", missed=self.missed or self.mode == "ask")

    def unawaited(self) -> "Delivery":
        """The same, now that nobody waits for an answer any more."""
        return msgspec.structs.replace(self, mode="tell")

"""What a scripted model says: turns, and who they are for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Call:
    """One tool call the model makes."""

    name: str
    input: dict[str, Any]


@dataclass(frozen=True)
class Spent:
    """What the model says one reply cost, in tokens; input is what was read anew, output includes reasoning."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    """One reply of the model: words, tool calls, or an HTTP error; `after` seconds of thinking first."""

    say: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    after: float = 0.0
    # Agents ask again after an error, so an error is said until the script is replaced, unless it is to pass.
    stays: bool = False
    spent: Spent = Spent()


def text(words: str, *, after: float = 0.0) -> Turn:
    """The model only speaks, which ends the agent's turn."""
    return Turn(say=words, after=after)


def call(tool: str, fields: Mapping[str, Any] | None = None, /, **inputs: Any) -> Turn:
    """The model calls one tool; a dict takes inputs whose names are no Python names."""
    return Turn(calls=(Call(tool, {**(fields or {}), **inputs}),))


def calls(*turns: Turn) -> Turn:
    """Several tool calls in one reply, which agents run in parallel: calls(call(...), call(...))."""
    return Turn(calls=tuple(one for turn in turns for one in turn.calls))


def error(status: int, words: str = "scripted failure", *, once: bool = False) -> Turn:
    """The provider answers with an HTTP error, to every further request or only to one."""
    return Turn(say=words, status=status, stays=not once)


def slow(turn: Turn, seconds: float) -> Turn:
    """The same reply after a pause, so that a test can act while the model thinks."""
    return replace(turn, after=seconds)


def spending(turn: Turn, **tokens: int) -> Turn:
    """The same reply at this cost."""
    return replace(turn, spent=Spent(**tokens))


Turns = Iterable[Turn]


@dataclass
class Script:
    """Turns for the main conversation, for any sub-agent, and for sub-agents whose task contains a given mark."""

    main: Turns = ()
    subagent: Turns = ()
    marked: Mapping[str, Turns] = field(default_factory=dict)
    # When a queue is empty the model still answers, so that no agent hangs on a script that is one turn short.
    fallback: Turn = field(default_factory=lambda: text("done"))

    def __post_init__(self) -> None:
        self._main = deque(self.main)
        self._subagent = deque(self.subagent)
        self._marked = {mark: deque(turns) for mark, turns in self.marked.items()}

    def take(self, audience: str, task: str) -> Turn:
        """The next turn for this conversation."""
        queue = self._queue(audience, task)
        if not queue:
            return self.fallback
        return queue[0] if queue[0].stays else queue.popleft()

    def left(self) -> int:
        """How many turns nobody has asked for yet."""
        return sum(map(len, (self._main, self._subagent, *self._marked.values())))

    def _queue(self, audience: str, task: str) -> deque[Turn]:
        if audience == "main":
            return self._main
        hits = (turns for mark, turns in self._marked.items() if mark in task)
        return next(hits, self._subagent)

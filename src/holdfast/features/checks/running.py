"""Shell calls that began and have not ended, as far as hooks tell: where each began, and who may have done a git act."""

import msgspec

MAX_CALLS = 500


class RunningCall(msgspec.Struct, frozen=True):
    session: str
    lane: str
    call: str
    worktree: str
    cwd: str
    """Where it began; the hook at its end may name the folder that it changed to."""
    at: int


class RunningCalls:
    """In the memory of the daemon only: what is lost by a restart is not known, never guessed."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, str], RunningCall] = {}

    def add(self, call: RunningCall) -> None:
        if len(self._calls) >= MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        self._calls[(call.session, call.lane, call.call)] = call

    def end(self, session: str, lane: str, call: str) -> RunningCall | None:
        return self._calls.pop((session, lane, call), None)

    def forget(self, session: str, lane: str) -> None:
        """The turn is over: calls that were refused or whose end nobody told run no longer."""
        for key in [key for key in self._calls if key[:2] == (session, lane)]:
            del self._calls[key]

    def any_in(self, worktree: str) -> bool:
        return any(call.worktree == worktree for call in self._calls.values())

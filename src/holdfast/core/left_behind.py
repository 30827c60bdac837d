"""Processes that agents' tool calls left behind: what they do later would look like a person's doing."""

from pathlib import Path

import msgspec

from holdfast.core import machine
from holdfast.core.caller import find_agent, has_agent_variables, is_own_program
from holdfast.core.times import now_ms

KEPT_MS = 3_600_000
"""How long one that is gone is remembered."""
MOST = 200


class Leftover(msgspec.Struct):
    name: str
    start: int
    seen: int
    """When it was seen first, in ms: at the end of the call that began it."""
    gone: int = 0
    """When it was first seen to be gone; 0 while it runs."""


class LeftBehind:
    """In the memory of the daemon only. Looks at a process once, when it is new: what an agent starts has the agent's
    variables, and when its shell is gone nothing above it is the agent's any more."""

    def __init__(self) -> None:
        self._looked_at: set[int] = set()
        self._below_agents: set[int] = set()
        self._left: dict[int, Leftover] = {}

    def observe(self, changed: int, ended: bool) -> str:
        """What ran when the settings were changed. `ended`: a shell call did, which may have left something."""
        now = now_ms()
        found = self.name_running_at(changed, now) if now - changed < KEPT_MS else ""
        if ended:
            self.look(now)
        return found

    def look(self, now: int) -> None:
        pids = set(machine.all_pids())
        for pid in self._left:
            self._note_end(pid, now)
        # Those below an agent are looked at again: their shell may be gone by now.
        for pid in (pids - self._looked_at) | (self._below_agents & pids):
            self._look_at(pid, now)
        self._looked_at = pids
        self._below_agents &= pids
        fresh = {pid: one for pid, one in self._left.items() if not one.gone or now - one.gone < KEPT_MS}
        self._left = dict(list(fresh.items())[-MOST:])

    def name_running_at(self, moment: int, now: int) -> str:
        """One that ran at that moment, as far as is known; empty without one."""
        for pid, one in self._left.items():
            self._note_end(pid, now)
            if one.seen <= moment <= (one.gone or now):
                return f"{one.name} (process {pid})"
        return ""

    def _look_at(self, pid: int, now: int) -> None:
        # First what most processes do not have; nothing is known of it where there is no /proc.
        if not has_agent_variables(pid) or is_own_program(pid) or not _has_our_home(pid):
            return
        process = machine.look_up_process(pid)
        if process is None:
            return
        if find_agent(pid):
            self._below_agents.add(pid)
            return
        self._below_agents.discard(pid)
        self._left.setdefault(pid, Leftover(process.name, process.start, now))

    def _note_end(self, pid: int, now: int) -> None:
        left = self._left[pid]
        process = None if left.gone else machine.look_up_process(pid)
        # The number may belong to another process by now.
        if not left.gone and (process is None or process.start != left.start):
            left.gone = now


def _has_our_home(pid: int) -> bool:
    """Settings lie in the home: a process with another one is at work on other settings."""
    home = machine.environment_of(pid).get("HOME")
    return home is None or Path(home) == Path.home()


LEFT_BEHIND = LeftBehind()

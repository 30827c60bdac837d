"""Processes that outlived their agent, found when somebody looks: their environment names the session."""

import os
from collections.abc import Iterable

import msgspec

from holdfast.core import machine
from holdfast.core.caller import SESSION_VARIABLES, is_own_program, list_ancestors

VARIABLES = (*SESSION_VARIABLES, "CODEX_THREAD_ID")
LONGEST_COMMAND = 200


class Survivor(msgspec.Struct, frozen=True):
    pid: int
    command: str
    ports: list[int]
    """Where it listens."""
    since: int


def find_survivors(ended: Iterable[str], caller: int) -> dict[str, list[Survivor]]:
    """By session, of those that are over. A shell that only waits for its command is not named, nor who asks."""
    wanted, found = set(ended), dict[int, str]()
    asking = {os.getpid(), *(process.pid for process in list_ancestors(caller))}
    for pid in machine.all_pids() if wanted else ():
        environment = machine.environment_of(pid)
        session = next((environment[name] for name in VARIABLES if environment.get(name) in wanted), "")
        if session and pid not in asking and not is_own_program(pid):
            found[pid] = session
    looked_up = {pid: process for pid in found if (process := machine.look_up_process(pid))}
    parents = {process.parent for process in looked_up.values()}
    survivors: dict[str, list[Survivor]] = {}
    for pid in sorted(looked_up.keys() - parents):
        survivors.setdefault(found[pid], []).append(_describe(pid))
    return survivors


def _describe(pid: int) -> Survivor:
    command = " ".join(machine.command_line(pid))[:LONGEST_COMMAND]
    return Survivor(pid, command, _listens_on(pid), machine.process_start_ms(pid))


def _listens_on(pid: int) -> list[int]:
    import psutil

    try:
        connections = psutil.Process(pid).net_connections("inet")
    except (psutil.Error, OSError):
        return []
    return sorted({one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN})

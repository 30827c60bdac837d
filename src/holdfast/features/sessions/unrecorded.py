"""Finds agents that run without our hooks, by their processes and transcripts."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.transcripts import ImportLocation, Transcripts
from holdfast.core.agent import Agent, known_agents
from holdfast.core.caller import agent_program, list_ancestors
from holdfast.core.event import Event, own_event
from holdfast.core.feature import Call, JobCall
from holdfast.core.kinds.session_events import AgentUnrecorded
from holdfast.core.machine import (
    Process,
    all_pids,
    command_line,
    environment_of,
    look_up_process,
    process_folder,
    process_start_ms,
)
from holdfast.core.ports import EventQuery, Reader, Ref
from holdfast.features.sessions.state.documents import SESSION, WATCHED

PATIENCE_MS = 45_000
"""A session that begins has fired its first hook by then."""
MOST_SESSIONS, MOST_FILES, MOST_NAMED = 200, 500, 20
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|ses_\w{10,}")
_SWITCHES = re.compile(r"^--(?:bare|safe-mode|no-hooks|disable-hooks|settings|setting-sources|profile)\b")
"""Options under which an agent may leave our hooks out."""
_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "XDG_CONFIG_HOME",
    "CLAUDE_CODE_SIMPLE",
    "HOLDFAST_PAUSE",
)


class Unrecorded(msgspec.Struct, frozen=True):
    """A running agent from which no hook came."""

    pid: int
    start: int
    program: str
    cwd: str
    since: int
    why: str


def find_unrecorded(reader: Reader, now: int) -> list[Unrecorded]:
    candidates = [process for process in _agent_processes() if now - process_start_ms(process.pid) >= PATIENCE_MS]
    if not candidates:
        return []
    known = _known_pids(reader)
    unknown = (process for process in candidates if not _is_known(process, known))
    found = (_judge(process, reader) for process in unknown)
    return [one for one in found if one is not None][:MOST_NAMED]


def list_unrecorded(call: Call) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(one) for one in find_unrecorded(call.reader, call.now)]


def report_unrecorded(call: JobCall) -> Iterable[Event]:
    """Once per process."""
    for one in find_unrecorded(call.reader, call.now):
        data = AgentUnrecorded(**msgspec.structs.asdict(one))
        yield own_event(data, call.now, project=one.cwd, once=f"unrecorded/{one.pid}.{one.start}")


def _agent_processes() -> Iterator[Process]:
    """The outermost process of each agent that this user runs."""
    for pid in all_pids():
        try:
            process = look_up_process(pid) if Path(f"/proc/{pid}").stat().st_uid == os.geteuid() else None
        except OSError:
            continue
        if process and agent_program(process) and not any(map(agent_program, list_ancestors(process.parent))):
            yield process


def _known_pids(reader: Reader) -> set[tuple[int, int]]:
    sessions = (doc for _, doc in SESSION.list(reader, status=WATCHED, limit=MOST_SESSIONS))
    return {(doc.process.pid, doc.process.start) for doc in sessions if doc.process}


def _is_known(process: Process, known: set[tuple[int, int]]) -> bool:
    """A session may be known by a process below the outermost one."""
    if (process.pid, process.start) in known:
        return True
    return any(one.pid == process.pid for pid, start in known if _runs(pid, start) for one in list_ancestors(pid))


def _runs(pid: int, start: int) -> bool:
    process = look_up_process(pid)
    return process is not None and process.start == start


def _judge(process: Process, reader: Reader) -> Unrecorded | None:
    agent = next((one for one in known_agents() if agent_program(process) in _programs(one)), None)
    since = process_start_ms(process.pid)
    if (
        agent is None
        or _is_errand(agent, process.pid)
        or not (agent.starts_with_hook or _has_unknown_transcript(agent, process.pid, since, reader))
    ):
        return None
    program, cwd = agent_program(process), process_folder(process.pid)
    return Unrecorded(process.pid, process.start, program, cwd, since, _reason(process.pid))


def _is_errand(agent: Agent, pid: int) -> bool:
    words = command_line(pid)
    # After the program itself, or after the interpreter and its script.
    return any(word in agent.errands for word in words[1:3])


def _programs(agent: Agent) -> tuple[str, ...]:
    return (agent.program, agent.name, *agent.aliases)


def _has_unknown_transcript(agent: Agent, pid: int, since: int, reader: Reader) -> bool:
    """Whether it wrote a session that no hook reported."""
    transcripts = agent.transcripts() if agent.transcripts else None
    if not isinstance(transcripts, Transcripts):
        return False
    home = environment_of(pid).get("HOME") or str(Path.home())
    files = list(transcripts.importer.find_files(ImportLocation(Path(home), Path(process_folder(pid) or "/"))))
    recent = [path for path in files if _written_at(path) > since]
    ids = [match[0] for path in recent[:MOST_FILES] if (match := _ID.search(path.stem))]
    return any(not _is_in_log(reader, session) for session in ids)


def _is_in_log(reader: Reader, session: str) -> bool:
    return reader.document(Ref("session", session)) is not None or bool(
        reader.events(EventQuery(session=session, limit=1))
    )


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _reason(pid: int) -> str:
    """What about its start may explain it."""
    words = [word for word in command_line(pid) if _SWITCHES.match(word)]
    environment = environment_of(pid)
    named = [f"{name}={environment[name]}" for name in _VARIABLES if environment.get(name)]
    other_home = environment.get("HOME", "") not in ("", str(Path.home()))
    named += [f"HOME={environment['HOME']}"] if other_home else []
    return f"started with {' '.join([*words, *named])}" if words or named else "no hook came from it"

"""Homes as the real programs left them (a command, a subagent that runs one, an answer, a second run that goes on)."""

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw

from holdfast.agents import AGENTS
from holdfast.analysis.usage.model import NOTHING, Usage, UsageRecord
from holdfast.analysis.usage.reader import records_of

READERS = {agent.name: agent.transcripts().usage for agent in AGENTS.values() if agent.transcripts}
SAMPLES = Path(__file__).parent / "samples"

EXPECTED = {
    "claude-code": Usage(11110, 518, 151000, 300, 40, 0),
    "codex": Usage(11110, 518, 151000, 0, None, 15),
    "gemini": Usage(11110, 518, 151000, None, None, 15),
    "copilot": Usage(11100, 513, 151000, 0, None, 15),
    "qwen": Usage(11120, 523, 151000, None, None, 15),
    "opencode": Usage(11100, 513, 151000, 0, None, 15),
    "droid": Usage(6020, 316, 90000, 0, None, 0),
    "kimi": Usage(7100, 409, 101000, 0, None, None),
}
"""What the scripted model said in the runs the samples were recorded from."""


class Ledger:
    """Keys that are counted: a resumed, forked or copied session repeats what another file told already."""

    def __init__(self, counted: Iterable[str] = ()) -> None:
        self._counted = set(counted)

    def is_new(self, record: UsageRecord) -> bool:
        key = record.key
        if key in self._counted:
            return False
        self._counted.add(key)
        return True


def scan_usage(home: Path, agents: Iterable[str] = READERS, ledger: Ledger | None = None) -> Iterator[UsageRecord]:
    """Everything that the agents below a home folder wrote down, each statement once; older files first, so that a message
    belongs to the session that paid for it and not to a fork's copy."""
    ledger = ledger or Ledger()
    for agent in agents:
        for reader in READERS[agent]:
            for path in sorted(reader.find_files(home), key=lambda path: path.stat().st_mtime):
                yield from filter(ledger.is_new, records_of(reader, path))


def total_of(usages: list[Usage]) -> Usage:
    total = NOTHING
    for usage in usages:
        total = total.plus(usage)
    return total


def sample_home(folder: Path, agent: str) -> Path:
    home = folder / f"home-{agent}"
    if agent == "opencode":
        _opencode_database(home / ".local/share/opencode/opencode.db")
    else:
        shutil.copytree(SAMPLES / agent, home)
    return home


def _opencode_database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    database = apsw.Connection(str(path))
    for table, rows in json.loads((SAMPLES / "opencode" / "rows.json").read_bytes()).items():
        columns = list(rows[0])
        database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        for row in rows:
            database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", tuple(row.values()))
    database.close()

"""Whose words a folder of transcripts holds: a table by agent, and the prompts that look like a machine's."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.agents import AGENTS
from holdfast.analysis.transcripts import Found, ImportLocation, Skipped
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.state.lifecycle import prompt_text
from holdfast.features.sessions.state.reducer import reduce_session
from holdfast.setup.imports import IMPORTERS

MARKS = (
    "<",
    "[",
    "#",
    "{",
    "Caveat:",
    "This session is being continued",
    "Stop hook feedback",
    "The user doesn't want",
)
BY_NAME = {name: agent.name for agent in AGENTS.values() for name in (agent.name, *agent.aliases)} | {
    "pi": "pi",
    "agent": "claude-code",
}
UNKNOWN = ""
SHOWN, SHOWN_CHARS = 40, 110
COLUMNS = (
    "files",
    "sessions",
    "prompts",
    "queue",
    "rejection",
    "plan",
    "shell",
    "machine",
    "interrupted",
    "titled",
    "marked",
)


class Suspect(NamedTuple):
    agent: str
    what: str
    path: Path
    text: str


class Table:
    """Fed with what the import of each file finds."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.skipped: dict[str, Counter[str]] = defaultdict(Counter)
        self.sessions: dict[tuple[str, str], Session | None] = {}
        self.files: dict[tuple[str, str], set[Path]] = defaultdict(set)
        self.suspects: list[Suspect] = []
        self.empty: list[Path] = []
        self.unknown = 0

    def read(self, agent: str, path: Path, found: Iterable[Found]) -> None:
        self.counts[agent]["files"] += 1
        sessions = {self._add(agent, path, one) for one in found} - {""}
        if not sessions:
            self.empty.append(path)

    def _add(self, agent: str, path: Path, one: Found) -> str:
        if isinstance(one, Skipped):
            self.skipped[agent][one.why if one.expected else f"NOT READ: {one.why}"[:70]] += 1
            return ""
        name = one.agent, one.session
        self.sessions[name] = reduce_session(self.sessions.get(name), one)
        self.files[name].add(path)
        if isinstance(one.data, PromptSubmitted) and not one.data.lane:
            self._add_prompt(agent, path, one.data)
        self.counts[agent]["interrupted"] += one.kind == "turn.interrupted"
        return one.session

    def _add_prompt(self, agent: str, path: Path, data: PromptSubmitted) -> None:
        text = prompt_text(data)
        source = data.source or ("machine" if data.synthetic else "prompts")
        self.counts[agent][source] += 1
        if not data.synthetic and text.lstrip().startswith(MARKS):
            self.counts[agent]["marked"] += 1
            self.suspects.append(Suspect(agent, "prompt", path, text))

    def finish(self) -> None:
        for (agent, _), session in self.sessions.items():
            if session is None:
                continue
            self.counts[agent]["sessions"] += 1
            self.counts[agent]["titled"] += bool(session.title)
            if session.title.startswith(MARKS):
                self.suspects.append(Suspect(agent, "title", Path(session.transcript), session.title))


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each file with its agent, whose name a folder above it has."""
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        names = (part for part in reversed(path.relative_to(folder).parts[:-1]))
        agent = next((BY_NAME[name] for name in names if name in BY_NAME), None)
        yield agent or UNKNOWN, path


def main(folder: Path) -> Table:
    table = Table()
    for agent, path in files_of(folder):
        if agent == UNKNOWN:
            table.unknown += 1
        else:
            table.read(agent, path, read_file(agent, path))
    table.finish()
    return table


def read_file(agent: str, path: Path) -> Iterator[Found]:
    try:
        yield from IMPORTERS[agent].read(path, ImportLocation(path.parent, path.parent))
    except (OSError, ValueError) as error:
        yield Skipped(str(path), str(error)[:120])


def show(table: Table) -> None:
    print("agent".ljust(14), *(name.rjust(11) for name in COLUMNS))
    for agent, counts in sorted(table.counts.items()):
        print(agent.ljust(14), *(f"{counts[name]:>11,}" for name in COLUMNS))
    for agent, kinds in sorted(table.skipped.items()):
        print(f"{agent}: {', '.join(f'{count:,} {why}' for why, count in kinds.most_common(12))}")
    if table.unknown:
        print(f"of no known agent: {table.unknown} file{'s' if table.unknown > 1 else ''}")
    for path in table.empty:
        print(f"no session: {path}")
    for (agent, session), paths in table.files.items():
        if len(paths) > 1:
            print(f"{len(paths)} files of one session: {agent} {session}")
    for one in table.suspects[:SHOWN]:
        print(f"{one.what} of {one.agent} in {one.path}: {' '.join(one.text.split())[:SHOWN_CHARS]}")


if __name__ == "__main__":
    show(main(Path(sys.argv[1])))

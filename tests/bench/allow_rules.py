"""How many questions proposed allow rules save: each session of a person's second half, with what all before it taught."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.analysis.shell.analysis import analyse_command
from holdfast.features.attention.suggestions import Question, is_covered, propose, rule_root
from tests.bench.figures import fact, figure, heading
from tests.bench.real_sessions import VARIABLE

EDITS, ASKING_TOOLS = ("Edit", "Write", "MultiEdit"), ("WebFetch", "WebSearch", "NotebookEdit")
UNASKED_MODES = ("bypassPermissions", "auto")
REJECTED = "The user doesn't want to proceed"
# What Claude Code runs without a question in every mode, by its documentation.
UNASKED = frozenset("ls cat echo pwd head tail grep find wc which diff stat du cd".split())
UNASKED_GIT = frozenset("status log diff show blame branch rev-parse ls-files describe".split())
FEWEST = 6


def main() -> None:
    heading("Proposed allow rules: sessions of the second half, each with rules from those before it")
    folder = Path(os.environ.get(VARIABLE) or "/nonexistent")
    people = list(_people(sorted(folder.glob("*/claude-code/*.jsonl"))))
    if not people:
        fact("skipped: no transcripts", f"set {VARIABLE}")
        return
    tested = [(propose(list(chain(*before))), session) for one in people for before, session in _second_half(one)]
    for name, asks in (("all calls that can ask", lambda _: True), ("without what Claude Code never asks", _is_asked)):
        asked = [(one, is_covered(one, rules)) for rules, session in tested for one in session if asks(one)]
        for what, chosen in (
            ("shell commands", [x for x in asked if x[0].command]),
            ("edits", [x for x in asked if x[0].paths]),
        ):
            fact(f"{name}: {what}", f"{sum(covered for _, covered in chosen)} of {len(chosen)}")
        saved = 100 * sum(covered for _, covered in asked) / len(asked)
        figure(f"{name}: saved of {len(asked)}", saved, 50.0, unit="%", more_is_better=True)


def _second_half(sessions: Sequence[list[Question]]) -> Iterator[tuple[Sequence[list[Question]], list[Question]]]:
    """Each session with those before it."""
    return ((sessions[:n], sessions[n]) for n in range(len(sessions) // 2, len(sessions)))


def _people(files: Sequence[Path]) -> Iterator[list[list[Question]]]:
    """The sessions of each person in each repository, the oldest first. A person is known by the home folder."""
    people: dict[tuple[str, ...], list[tuple[str, str, Path]]] = {}
    for file in files:
        began = next(((str(one["timestamp"]), str(one["cwd"])) for one in _records(file) if one.get("cwd")), None)
        if began:
            people.setdefault((file.parts[-3], *Path(began[1]).parts[:3]), []).append((*began, file))
    for sessions in people.values():
        folders = {project for _, project, _ in sessions}
        if len(sessions) >= FEWEST:
            yield [_of_session(file, project, _repository(project, folders)) for _, project, file in sorted(sessions)]


def _repository(project: str, folders: set[str]) -> str:
    """Of a worktree inside of it, as far as its own sessions show."""
    return min((one for one in folders if project.startswith(f"{one}/")), key=len, default="")


def _records(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _of_session(file: Path, project: str, repository: str) -> list[Question]:
    """Calls that Claude Code asks about in the mode that the person had chosen."""
    mode, asked = "", dict[str, Question]()
    for record in _records(file):
        mode = str(record.get("permissionMode") or mode)
        content = (record.get("message") or {}).get("content")
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use" and (question := _question(block, mode, project, repository)):
                asked[str(block.get("id"))] = question
            elif (call := str(block.get("tool_use_id"))) in asked and REJECTED in str(block.get("content"))[:200]:
                asked[call] = replace(asked[call], allowed=False)
    return list(asked.values())


def _question(block: dict[str, Any], mode: str, project: str, repository: str) -> Question | None:
    name, given = str(block.get("name")), block.get("input") or {}
    if mode in UNASKED_MODES:
        return None
    if name == "Bash":
        return Question(str(given.get("command") or ""), allowed=True)
    if name in EDITS and mode != "acceptEdits":
        path = str(given.get("file_path"))
        # In plan mode it writes its own plan unasked.
        if "/.claude/plans/" in path:
            return None
        return Question(paths=(path,), project=project, root=rule_root(project, repository), allowed=True)
    # No rule is proposed for these: they count as asked.
    return Question(name, allowed=True) if name in ASKING_TOOLS or name.startswith("mcp__") else None


def _is_asked(question: Question) -> bool:
    analysis = analyse_command(question.command)
    return (
        bool(question.paths) or not analysis.commands or not all(_runs_unasked(one.words) for one in analysis.commands)
    )


def _runs_unasked(words: Sequence[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and words[1] in UNASKED_GIT
    return words[0] in UNASKED and not {"-exec", "-delete", "-execdir"} & set(words)

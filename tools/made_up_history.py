"""A made-up month of Claude Code sessions, as transcripts in its own format, for `make run`."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

WORK = {
    "shop": ("Add a discount code to the basket", "Fix the rounding of the tax", "Show stock on the product page"),
    "notes-app": ("Let notes have tags", "Search in titles, too", "The list is slow with 5,000 notes"),
}
DAYS = 28
TESTS = "python -m pytest -q"
EDIT_ERROR = "String to replace not found in file."
Record = dict[str, Any]


def write_history(home: Path, work: Path, now: datetime | None = None) -> int:
    """Return how many sessions were written."""
    now = now or datetime.now(UTC)
    written = 0
    for days_ago in range(DAYS, 0, -1):
        for number, (project, prompts) in enumerate(WORK.items()):
            if (days_ago + number) % 3 == 0:  # Nobody works every day.
                continue
            session = f"{days_ago * 10 + number:08d}-0000-4000-8000-{number:012d}"
            at = (now - timedelta(days=days_ago)).replace(hour=9 + 4 * number, minute=0, second=0, microsecond=0)
            folder = home / ".claude" / "projects" / f"-work-{project}"
            folder.mkdir(parents=True, exist_ok=True)
            records = _session(session, work / project, prompts[days_ago // 3 % len(prompts)], at, days_ago)
            (folder / f"{session}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
            written += 1
    return written


def _session(session: str, project: Path, prompt: str, at: datetime, days_ago: int) -> Iterator[Record]:
    """A prompt, an edit that may fail, tests that may fail first, an answer."""
    clock = iter(at + timedelta(seconds=40 * step) for step in range(40))
    ids = iter(f"{session[:8]}{step:04d}" for step in range(40))

    def record(kind: str, message: Record, **more: Any) -> Record:
        when = f"{next(clock):%Y-%m-%dT%H:%M:%S.000Z}"
        return {"type": kind, "sessionId": session, "cwd": str(project), "gitBranch": "main", "version": "2.1.37",
                "uuid": next(ids), "timestamp": when, "message": {"role": kind, **message}, **more}  # fmt: skip

    def says(content: list[Record]) -> Record:
        usage = {"input_tokens": 14, "output_tokens": 420, "cache_read_input_tokens": 31_000 + 900 * days_ago,
                 "cache_creation_input_tokens": 2_600}  # fmt: skip
        id_ = f"msg_{next(ids)}"
        return record("assistant", {"id": id_, "model": "claude-opus-4-6", "usage": usage, "content": content})

    def call(name: str, given: Record, output: str, *, ok: bool = True) -> Iterator[Record]:
        id_ = f"toolu_{next(ids)}"
        yield says([{"type": "tool_use", "id": id_, "name": name, "input": given}])
        result = {"type": "tool_result", "tool_use_id": id_, "content": output, "is_error": not ok}
        answer = {"stdout": output, "stderr": "", "interrupted": False} if ok else f"Error: {output}"
        yield record("user", {"content": [result]}, toolUseResult=answer)

    file = str(project / "src" / "main.py")
    edit = {"file_path": file, "old_string": "pass", "new_string": "return total"}
    yield record("user", {"content": prompt})
    yield from call("Read", {"file_path": file}, "def total():\n    pass\n")
    if days_ago % 4 == 0:
        yield from call("Edit", edit, EDIT_ERROR, ok=False)
    yield from call("Edit", edit, f"The file {file} has been updated.")
    if days_ago % 3 == 0:
        yield from call("Bash", {"command": TESTS}, "Exit code 1\n1 failed, 11 passed in 0.52s", ok=False)
    yield from call("Bash", {"command": TESTS}, "12 passed in 0.48s")
    yield says([{"type": "text", "text": f"Done: {prompt.lower()}. All 12 tests pass."}])

"""The project as it stands, in a few lines."""

from collections.abc import Iterator
from typing import Any

from holdfast.mcp.answer import Answer
from holdfast.mcp.arguments import Arguments
from holdfast.mcp.context import Context

KEPT = ("PROJECT", "LAST_UPDATED", "CURRENT_STATE", "WORK_CONTEXT", "RESOURCE_LOCKS")


def show_state(_args: Arguments, context: Context) -> Answer:
    document = context.view("project.state")["document"]
    return Answer("\n".join(_lines(document)), {name: document[name] for name in KEPT if name in document})


def _lines(document: dict[str, Any]) -> Iterator[str]:
    now = document["CURRENT_STATE"]
    git, tests = now["git"], now["tests"]
    yield f"project: {document['PROJECT']} | as of {document['LAST_UPDATED'] or 'unknown'}"
    changed = git["uncommitted_files"]["count"]
    yield f"git: {git['branch'] or 'unknown branch'} | {git['status']} | {changed} files not committed"
    last = git["last_commit"]
    if isinstance(last, dict):
        yield f"last commit: {last.get('hash') or ''} | {last.get('date') or last.get('at') or ''} | {last.get('message')}"
    counts = f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"
    yield f"tests: {tests['last_run'] or 'no run known'} | {tests['status']} | {counts}"
    tasks = {name: len(found) for name, found in document["TASKS"].items()}
    yield "tasks: " + ", ".join(f"{count} {name}" for name, count in tasks.items())
    yield from (f"blocker: {one}" for one in document["WORK_CONTEXT"].get("blockers") or ())

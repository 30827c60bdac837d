"""Secrets of the labelled corpus through every door; then everything kept is searched.

Only those that the redactor finds in a text are sent: how many it finds is measured in tests/analysis/redact; here it is shown that
no door leads past it. The spool is the one place where they may lie, until it is drained.
"""

import json
import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.analysis.redact import Redactor
from holdfast.paths import plain_files
from tests.analysis.redact.corpus import Record, body_of, records
from tests.campaign.acks import serving
from tests.doors.mcp.clients import Served, call_tools, over_http, over_stdio
from tests.kit import World, wait_until

FULL = 3000
LONGEST = 480
"""Of what is sent by doors that take a short text."""
EVENTS = {
    "prompt": "UserPromptSubmit",
    "answer": "Stop",
    "command": "PreToolUse",
    "edit": "PreToolUse",
    "write": "PreToolUse",
}


def run(folder: Path, size: int) -> str:
    return through_doors(World(folder / "world"), size)


def through_doors(world: World, size: int) -> str:
    sent = chosen(size)
    doors: Sequence[Callable[[World, list[Record]], None]] = (
        by_hook, by_hook_and_kill, by_spool, by_stopped_daemon, by_import, by_command, by_uat, by_mcp, by_http
    )  # fmt: skip
    try:
        for number, door in enumerate(doors):
            door(world, sent[number :: len(doors)])
        serving(world)
        wait_until(lambda: not world.ask(op="status")["spool_bytes"], "the spool is drained")
        world.ask(op="settle")
        found = leaks(world, sent)
        world.cli("backup", code=None)
        world.cli("daemon", "stop")
        found |= leaks(world, sent)
    finally:
        world.close()
    assert not found, sorted(found)[:20]
    return f"{len(sent)} secrets by {len(doors)} doors: 0 kept"


def chosen(size: int) -> list[Record]:
    """As many of the corpus as asked for, each in a payload of its own, none of which the redactor misses."""
    redactor = Redactor()
    usable = [record for record in records() if record.secret and len(record.secret) > 8 and not record.hard]
    random.Random(size).shuffle(usable)
    picked: list[Record] = []
    for record in usable:
        if len(picked) == size:
            break
        if is_removed(record, redactor):
            picked.append(record)
    return picked


def is_removed(record: Record, redactor: Redactor) -> bool:
    texts = (redactor.redact_text(record.text)[0], redactor.redact(body_of(record))[0].decode("utf-8", "replace"))
    return not any(form in text for text in texts for form in (record.secret or "", *record.forms))


# ── The doors ────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_hook(world: World, sent: list[Record]) -> None:
    serving(world)
    for record in sent:
        fire(world, record)


def by_hook_and_kill(world: World, sent: list[Record]) -> None:
    """What lies in the journal and the write-ahead log at a sudden death."""
    by_hook(world, sent)
    world.kill()
    assert not leaks(world, sent), "at the kill"


def by_spool(world: World, sent: list[Record]) -> None:
    """No daemon, and none can be started: the hooks write to the spool."""
    world.kill()
    world.paths.prepare()
    world.paths.failed.touch()
    for record in sent:
        fire(world, record)
    world.paths.failed.unlink(missing_ok=True)


def by_stopped_daemon(world: World, sent: list[Record]) -> None:
    serving(world)
    pid = world.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        for record in sent[:5]:  # each waits for its deadline
            fire(world, record)
    finally:
        os.kill(pid, signal.SIGCONT)
    for record in sent[5:]:
        fire(world, record)


def by_import(world: World, sent: list[Record]) -> None:
    folder = world.home / ".claude" / "projects" / "p"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "type": "user", "uuid": record.id, "sessionId": "imported", "timestamp": "2026-11-01T10:00:00Z",
            "cwd": str(world.project), "message": {"role": "user", "content": record.text},
        }
        for record in sent
    ]  # fmt: skip
    (folder / "imported.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    world.cli("import", "claude-code")
    (folder / "imported.jsonl").unlink()


def by_command(world: World, sent: list[Record]) -> None:
    for record in sent:
        text = record.text[:LONGEST] if record.secret and record.secret in record.text[:LONGEST] else "short"
        world.ask(op="command", name="memory.add", args={"text": text, "project": str(world.project)})


def by_uat(world: World, sent: list[Record]) -> None:
    world.cli("uat", "start", "doors", "--ad-hoc", code=None)
    for record in sent[:12]:
        world.cli("uat", "assert", record.text[:LONGEST].replace("\0", ""), "--result", "passed", code=None)
    world.cli("uat", "end", code=None)


def by_mcp(world: World, sent: list[Record]) -> None:
    call_tools(over_stdio(world), *(("memory_add", {"text": record.text[:LONGEST]}) for record in sent))


def by_http(world: World, sent: list[Record]) -> None:
    served = Served(world)
    try:
        call_tools(over_http(served), *(("memory_add", {"text": record.text[:LONGEST]}) for record in sent))
    finally:
        served.stop()


def fire(world: World, record: Record) -> None:
    assert world.hook(EVENTS.get(record.place, "PostToolUse"), body_of(record)).returncode == 0


# ── The judge ────────────────────────────────────────────────────────────────────────────────────────────────────────


def leaks(world: World, sent: list[Record]) -> set[str]:
    wanted = {form.encode(): record for record in sent for form in (record.secret or "", *record.forms)}
    kept = [
        (path.name, path.read_bytes()) for path in plain_files(world.paths.state) if path.parent != world.paths.spool
    ]
    return {
        f"{record.id} {record.context} in {name}"
        for name, content in kept
        for secret, record in wanted.items()
        if secret in content
    }

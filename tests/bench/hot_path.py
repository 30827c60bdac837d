"""Python calls, functions and files that one denied PreToolUse takes before its answer."""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from holdfast import __version__
from holdfast.core.decision import Delivery
from holdfast.core.ids import delivery_key
from holdfast.core.machine import look_up_process
from holdfast.core.times import now_ms
from holdfast.daemon.ingest.log import Log
from holdfast.daemon.service import Daemon
from holdfast.features.workspace.observe import WORKSPACE
from holdfast.paths import Paths
from tests.bench.figures import fact, figure, heading
from tests.kit import World, git

MOST_CALLS, MOST_FILES = 350, 40
ROUNDS = 30
EDIT = {"tool_name": "Edit", "tool_input": {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}}
COMMAND = {"tool_name": "Bash", "tool_input": {"command": "git commit -am 'work in progress'"}}
RULES = """
requirements:
  commit_plan: {enabled: true}
  tested:
    type: evidence
    command_pattern: 'git\\s+commit'
    evidence: {command: ['pytest*'], after_edit: 'src/**'}
"""
Site = tuple[str, str]


def main() -> None:
    heading("Hot path: a denied PreToolUse in Python calls")
    for name, tool in (("edit", EDIT), ("command", COMMAND)):
        counted = count_calls(tool)
        files = Counter(file for file, _ in counted.elements())
        figure(f"{name}: calls", counted.total(), MOST_CALLS)
        figure(f"{name}: files", len(files), MOST_FILES)
        fact(f"{name}: functions", str(len(counted)))
        if os.environ.get("HOLDFAST_HOT_PATH"):
            for (file, function), count in counted.most_common():
                print(f"{count:5} {file}:{function}")


def count_calls(tool: dict[str, Any]) -> Counter[Site]:
    """The calls of one steady question, after some like it."""
    with tempfile.TemporaryDirectory() as folder:
        daemon, project = _daemon(Path(folder))
        try:
            _handle(daemon, project, "SessionStart", {"source": "startup"})
            _handle(daemon, project, "UserPromptSubmit", {"prompt": "go on"})
            for _ in range(ROUNDS):
                _handle(daemon, project, "PreToolUse", {**tool, "tool_use_id": delivery_key()})
                # No thread does it here: the watcher is current, as it is in a daemon.
                WORKSPACE.recorder(daemon.paths.state)._scan_wanted()
            counted = Counter[Site]()
            delivery = _delivery(project, "PreToolUse", {**tool, "tool_use_id": delivery_key()})
            _count_into(counted)
            try:
                outcomes = daemon._handle([delivery])
            finally:
                sys.setprofile(None)
            assert outcomes and b'"deny"' in outcomes[0].reply, outcomes
            return counted
        finally:
            daemon.journal.close()
            daemon.ledger.close()
            daemon.app.store.close()


def _count_into(counted: Counter[Site]) -> None:
    def note(frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        if event == "call" and "/src/holdfast/" in code.co_filename:
            counted[code.co_filename.rpartition("/src/")[2], code.co_qualname] += 1

    sys.setprofile(note)


def _daemon(root: Path) -> tuple[Daemon, Path]:
    world = World(root / "w")
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "commit", "-q", "--allow-empty", "-m", "first")
    config = world.root / "config"
    config.mkdir()
    (config / "settings.yaml").write_text(RULES)
    os.environ.update({k: v for k, v in world.env.items() if k.startswith(("HOLDFAST", "XDG", "HOME"))})
    paths = Paths(world.root / "state").prepare()
    return Daemon(paths, Log(paths.log_file)), world.project


def _handle(daemon: Daemon, project: Path, event: str, payload: dict[str, Any]) -> None:
    daemon._handle([_delivery(project, event, payload)])
    daemon._flush()


def _delivery(project: Path, event: str, payload: dict[str, Any]) -> Delivery:
    body = {
        "session_id": "77b52fba-4606-4543-b51e-a02b14d6026b", "transcript_path": f"{project}/../.claude/projects/x/t.jsonl",
        "cwd": str(project), "permission_mode": "default", "hook_event_name": event, **payload,
    }  # fmt: skip
    return Delivery(
        key=delivery_key(), agent="claude-code", event=event, at=now_ms(), mode="ask", cwd=str(project),
        body=json.dumps(body).encode(), env={"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(project)}, client=__version__,
        pid=os.getpid(), start=look_up_process(os.getpid()).start,  # type: ignore[union-attr]
    )  # fmt: skip

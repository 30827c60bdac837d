"""A hook that only writes down what it was sent; it stands in for Holdfast where the harness itself is tested."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CLAUDE_LIKE = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "Stop")
GEMINI_LIKE = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")


class Recorder:
    """One file per hook call, since appends to one file from parallel hooks could interleave."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder

    @property
    def command(self) -> str:
        """The shell line to put into an agent's settings; it is renamed when complete, so no reader sees half."""
        target = shlex.quote(str(self.folder))
        return f'f={target}/$(date +%s%N).$$; cat > "$f.part" && mv "$f.part" "$f.json"'

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The payloads received so far, in order, all or those of one event."""
        payloads = [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]
        return [one for one in payloads if name is None or one.get("hook_event_name") == name]

    def names(self) -> list[str]:
        """The event names received so far, in order."""
        return [one.get("hook_event_name", "") for one in self.events()]

    def tools(self, name: str) -> list[str]:
        """The tool names of one event's payloads."""
        return [one["tool_name"] for one in self.events(name)]

    def wait_for(self, name: str, count: int = 1, timeout: float = 20.0) -> list[dict[str, Any]]:
        """Wait for an event to have come so many times."""
        limit = time.monotonic() + timeout
        while len(found := self.events(name)) < count:
            if time.monotonic() > limit:
                raise TimeoutError(f"{name} came {len(found)} times, not {count}; so far: {self.names()}")
            time.sleep(0.05)
        return found


def hooks(command: str, events: Iterable[str], **options: Any) -> dict[str, Any]:
    """The hooks table that Claude Code, Codex, Gemini and Qwen share, calling one command for every event."""
    entry = {"type": "command", "command": command, **options}
    return {event: [{"hooks": [entry]}] for event in events}


def write_settings(path: Path, value: dict[str, Any]) -> None:
    """A JSON settings file, in a folder that may not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))

"""The event that is measured with: a PostToolUse of 2.8 KB, and one of 220 KB."""

import json
from pathlib import Path

SENTENCE = "src/engine.py:64:    def handle(self, items, also=None):  # one transaction for all of them\n"


def write(path: Path, size: int = 2800, session: str = "bench-session", cwd: str = "/") -> Path:
    """Without the ids of call and turn: with them, sending it again would rightly count as the same happening."""
    payload = {
        "session_id": session,
        "transcript_path": f"/home/dev/.claude/projects/x/{session}.jsonl",
        "cwd": cwd,
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "rg -n 'def handle' src", "description": "Find where events are handled"},
        "tool_response": {"stdout": "", "stderr": "", "interrupted": False, "isImage": False},
        "duration_ms": 2312,
    }
    missing = size - len(json.dumps(payload))
    payload["tool_response"]["stdout"] = (SENTENCE * (missing // len(SENTENCE) + 1))[:missing]  # type: ignore[index]
    path.write_text(json.dumps(payload))
    return path

"""`claude -p`: the user's own Claude Code, with no tools, no hooks, no project and no memory of the call."""

import os
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.job import Run
from holdfast.features.memory.llm.request import ModelFailed, Question, Reply
from holdfast.features.memory.llm.settings import ModelSettings
from holdfast.features.memory.model import line, mapping

OWN_TOKENS = 6_000
"""What the program sends beside our words, at most (tests/real/test_memory_model.py looks at it)."""
QUIET = ("--tools", "", "--strict-mcp-config", "--setting-sources", "", "--no-session-persistence")
OF_A_SESSION = frozenset(
    ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PROJECT_DIR",
     "CLAUDE_ENV_FILE", "CLAUDE_PID")
)  # fmt: skip
"""The daemon may have been started by a hook: what Claude Code told that hook about itself is not for another one."""
COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def ask(question: Question, settings: ModelSettings, run: Run, folder: Path) -> Reply:
    """In a folder of ours: a session that did fire hooks would be no session of the user's project."""
    model = ("--model", settings.name) if settings.name else ()
    ran = run(
        ["claude", "-p", "--output-format", "json", "--system-prompt", question.system, *QUIET, *model],
        cwd=str(folder), env=_environment(settings), stdin=question.user.encode("utf-8", "replace"),
        timeout=settings.patience_seconds,
    )  # fmt: skip
    if ran.timed_out:
        raise ModelFailed(f"claude took longer than {settings.patience_seconds} s", spent=True)
    if ran.code == 127:
        raise ModelFailed("there is no program `claude` on the daemon's PATH", spent=False)
    return _understood(ran.code, ran.out, ran.err)


def _environment(settings: ModelSettings) -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if name not in OF_A_SESSION}
    return {**mine, "HOLDFAST_PAUSE": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(settings.output_tokens)}


def _understood(code: int, out: bytes, err: bytes) -> Reply:
    try:
        told: Any = msgspec.json.decode(out)
    except (msgspec.DecodeError, RecursionError):
        told = None
    result = mapping(told)
    said = line((err or out)[:500].decode("utf-8", "replace"), 200)
    if code or not result or result.get("is_error"):
        raise ModelFailed(f"claude ended with {code}: {said}", spent=bool(result) or not code)
    text = result.get("result")
    if not isinstance(text, str):
        raise ModelFailed("claude gave no text", spent=True)
    usage = mapping(result.get("usage"))
    return Reply(text, sum(n for name in COUNTED if isinstance(n := usage.get(name), int) and n > 0))

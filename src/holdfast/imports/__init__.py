"""Old formats and transcripts → events. Nothing here writes: sources stay as they are."""

from holdfast.imports import (
    auggie_sessions,
    claude_transcripts,
    codex_rollouts,
    continue_sessions,
    copilot_events,
    droid_sessions,
    gemini_chats,
    kimi_wire,
    oak,
    opencode_database,
    qwen_chats,
    reindex_state,
    requirements_state,
    session_state,
    uat_sessions,
)
from holdfast.imports.source import Importer

_AGENTS = (
    claude_transcripts, codex_rollouts, gemini_chats, copilot_events, qwen_chats, opencode_database, droid_sessions,
    kimi_wire, continue_sessions, auggie_sessions,
)  # fmt: skip
_SYSTEMS = (reindex_state, session_state, requirements_state, uat_sessions, oak)

IMPORTERS: dict[str, Importer] = {module.IMPORTER.name: module.IMPORTER for module in (*_AGENTS, *_SYSTEMS)}

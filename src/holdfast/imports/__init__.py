"""Old formats and transcripts → events. Nothing here writes: sources stay as they are."""

from holdfast.imports import (
    auggie_sessions,
    claude_transcripts,
    codex_rollouts,
    continue_sessions,
    copilot_events,
    droid_sessions,
    earlier_state,
    gemini_chats,
    kimi_wire,
    opencode_database,
    qwen_chats,
)
from holdfast.imports.source import Importer

_AGENTS = (
    claude_transcripts, codex_rollouts, gemini_chats, copilot_events, qwen_chats, opencode_database, droid_sessions,
    kimi_wire, continue_sessions, auggie_sessions,
)  # fmt: skip

IMPORTERS: dict[str, Importer] = {
    importer.name: importer for importer in (*(module.IMPORTER for module in _AGENTS), *earlier_state.IMPORTERS)
}

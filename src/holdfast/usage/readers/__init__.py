"""Where each agent writes down its token use. This dict is the one registration."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.usage.reader import LiveSession, UsageReader
from holdfast.usage.readers import (
    auggie,
    claude_code,
    codex,
    continue_cli,
    copilot,
    droid,
    gemini,
    kimi,
    opencode,
    qwen,
)

READERS: dict[str, tuple[UsageReader, ...]] = {
    "claude-code": (claude_code.READER,),
    "codex": (codex.READER,),
    "gemini": (gemini.READER, gemini.DOCUMENT_READER),
    "copilot": (copilot.READER,),
    "qwen": (qwen.READER,),
    "opencode": (opencode.OPENCODE_READER, opencode.OPENCODE_FILES_READER),
    "droid": (droid.READER,),
    "kimi": (kimi.READER,),
    "continue": (continue_cli.READER,),
    "auggie": (auggie.READER,),
}


def files_of(agent: str, session: LiveSession) -> Iterator[tuple[UsageReader, Path]]:
    """Where an agent writes down what one session spends, each file once with its reader."""
    seen: set[Path] = set()
    for reader in READERS.get(agent, ()):
        for path in _session_files(reader, session):
            if path not in seen and reader.accepts(str(path)):
                seen.add(path)
                yield reader, path


def _session_files(reader: UsageReader, session: LiveSession) -> list[Path]:
    """A path comes from a hook's payload: it may be anything."""
    try:
        return list(reader.session_files(session))
    except (OSError, ValueError):
        return []

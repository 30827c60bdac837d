"""Where each agent writes down its token use. This dict is the one registration."""

from holdfast.usage.reader import UsageReader
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
    opencode_files,
    qwen,
)

READERS: dict[str, tuple[UsageReader, ...]] = {
    "claude-code": (claude_code.READER,),
    "codex": (codex.READER,),
    "gemini": (gemini.READER, gemini.DOCUMENT_READER),
    "copilot": (copilot.READER,),
    "qwen": (qwen.READER,),
    "opencode": (opencode.READER, opencode_files.READER),
    "droid": (droid.READER,),
    "kimi": (kimi.READER,),
    "continue": (continue_cli.READER,),
    "auggie": (auggie.READER,),
}


def reader_for(agent: str, path: str) -> UsageReader | None:
    """The reader for a file that an agent's hook named; None where the agent writes no figures."""
    readers = READERS.get(agent, ())
    return next((reader for reader in readers if reader.accepts(path)), None)

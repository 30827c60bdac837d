"""Settings of memory: what is observed and injected, and how much of it."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any

from msgspec import Meta

from holdfast.core.section import Section

Tokens = Annotated[int, Meta(ge=0, le=100_000)]
Globs = Annotated[tuple[str, ...], Meta(max_length=200, extra={"join": True})]


class MemorySettings(Section):
    enabled: Annotated[bool, Meta(description="Make observations from finished turns.")] = True
    inject: Annotated[bool, Meta(description="Inject memories into agents.")] = True
    start_tokens: Annotated[Tokens, Meta(description="Most tokens of memory at the start of a session.")] = 1000
    prompt_tokens: Annotated[Tokens, Meta(description="Most tokens of memory with a prompt.")] = 250
    exclude_paths: Annotated[Globs, Meta(description="Globs: what happens there is not remembered.")] = ()
    exclude_commands: Annotated[Globs, Meta(description="Globs: such commands are not remembered.")] = ()
    agent_proposes: Annotated[
        bool, Meta(description="Ask agents to propose what their user said for good; costs their tokens.")
    ] = False


DEFAULTS = MemorySettings()


def settings_or_default(settings: Any) -> MemorySettings:
    return settings if isinstance(settings, MemorySettings) else DEFAULTS


def is_excluded(paths: Iterable[str], command: str, settings: MemorySettings) -> bool:
    """Whether events there, or by this command, must not be remembered."""
    return any(fnmatchcase(path, glob) for path in paths for glob in settings.exclude_paths) or any(
        fnmatchcase(command, glob) for glob in settings.exclude_commands
    )

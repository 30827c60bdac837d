"""Settings of memory: what is observed and injected, and which model reads turns, if any."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from holdfast.core.section import After, Section

OFF, ENDPOINT, CLAUDE = "off", "endpoint", "claude"


def _web_address(text: str) -> str:
    if text and (urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname):
        raise ValueError("not an http address")
    return text


Address = Annotated[str, Meta(max_length=500), After(_web_address)]


class ModelSettings(Section):
    """Guarded as a whole: an untrusted repository cannot send anyone's words anywhere."""

    marks = {"command": True}

    use: Annotated[
        Literal["off", "endpoint", "claude"],
        Meta(description="`endpoint`: an API in OpenAI's manner at `url`. `claude`: the program `claude -p`."),
    ] = "off"
    url: Annotated[Address, Meta(description="Of the endpoint, e.g. http://127.0.0.1:11434/v1")] = ""
    name: Annotated[
        str, Meta(max_length=200, description="Which model, as the endpoint or `claude --model` calls it.")
    ] = ""
    key_variable: Annotated[
        str, Meta(max_length=100, description="The environment variable of the daemon that holds the endpoint's key.")
    ] = ""
    daily_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000, description="Most tokens in one day (UTC).")] = 100_000
    output_tokens: Annotated[int, Meta(ge=100, le=32_000, description="Most tokens of one answer.")] = 1_000
    output_name: Annotated[
        Literal["max_tokens", "max_completion_tokens"], Meta(description="What the endpoint calls that limit.")
    ] = "max_tokens"
    turns: Annotated[int, Meta(ge=1, le=50, description="Most turns in one call.")] = 5
    wait_seconds: Annotated[
        int, Meta(ge=0, le=86_400, description="A finished turn waits so long for others to join it.")
    ] = 60
    patience_seconds: Annotated[int, Meta(ge=1, le=3_600, description="A call that takes longer is given up.")] = 120

    def __post_init__(self) -> None:
        if self.use == ENDPOINT and not (self.url and self.name):
            raise ValueError("`use: endpoint` needs `url` and `name`")


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
    model: Annotated[ModelSettings, Meta(description="A model that reads finished turns; off by default.")] = (
        ModelSettings()
    )


DEFAULTS = MemorySettings()


def settings_or_default(settings: Any) -> MemorySettings:
    return settings if isinstance(settings, MemorySettings) else DEFAULTS


def is_excluded(paths: Iterable[str], command: str, settings: MemorySettings) -> bool:
    """Whether events there, or by this command, must not be remembered."""
    return any(fnmatchcase(path, glob) for path in paths for glob in settings.exclude_paths) or any(
        fnmatchcase(command, glob) for glob in settings.exclude_commands
    )

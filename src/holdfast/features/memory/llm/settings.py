"""Which model reads finished turns, if any, and what it may cost."""

from typing import Annotated, Literal
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
    """Guarded as a whole: a repository cannot send anybody's words anywhere before it is trusted."""

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

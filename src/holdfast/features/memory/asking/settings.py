"""Which model reads finished turns, if any, and what it may cost."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

OFF, ENDPOINT, CLAUDE = "off", "endpoint", "claude"


def _web_address(text: str) -> str:
    if text and (urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname):
        raise ValueError("not an http address")
    return text


class ModelSettings(BaseModel):
    """Guarded as a whole: a repository cannot send anybody's words anywhere before it is trusted."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"command": True})

    use: Literal["off", "endpoint", "claude"] = Field(
        "off", description="`endpoint`: an API in OpenAI's manner at `url`. `claude`: the program `claude -p`."
    )
    url: Annotated[str, AfterValidator(_web_address)] = Field(
        "", max_length=500, description="Of the endpoint, e.g. http://127.0.0.1:11434/v1"
    )
    name: str = Field("", max_length=200, description="Which model, as the endpoint or `claude --model` calls it.")
    key_variable: str = Field(
        "", max_length=100, description="The environment variable of the daemon that holds the endpoint's key."
    )
    daily_tokens: int = Field(100_000, ge=0, le=1_000_000_000, description="Most tokens in one day (UTC).")
    output_tokens: int = Field(1_000, ge=100, le=32_000, description="Most tokens of one answer.")
    output_name: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="What the endpoint calls that limit."
    )
    turns: int = Field(5, ge=1, le=50, description="Most turns in one call.")
    wait_seconds: int = Field(60, ge=0, le=86_400, description="A finished turn waits so long for others to join it.")
    patience_seconds: int = Field(120, ge=1, le=3_600, description="A call that takes longer is given up.")

    @model_validator(mode="after")
    def _complete(self) -> "ModelSettings":
        if self.use == ENDPOINT and not (self.url and self.name):
            raise ValueError("`use: endpoint` needs `url` and `name`")
        return self

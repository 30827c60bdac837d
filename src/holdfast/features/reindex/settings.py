"""Settings of the code index."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from holdfast.analysis.search.settings import IndexSettings
from holdfast.core.section import After, Section

STATE_FILE = "logs/state/session-reindex-tracking.json"


def _check_inside_project(path: str) -> str:
    parts = path.split("/")
    if not path or path.startswith(("/", "~")) or ".." in parts or ".git" in parts or "\0" in path:
        raise ValueError("a path inside the project, e.g. logs/state/session-reindex-tracking.json")
    return path


Inside = Annotated[str, Meta(max_length=500), After(_check_inside_project)]
Globs = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=500)], ...], Meta(max_length=500)]


class Settings(Section):
    enabled: Annotated[bool, Meta(description="Index in the background; false: only when asked.")] = True
    cooldown_s: Annotated[
        int, Meta(ge=0, le=86_400, description="Seconds between runs that ends of turns ask for.")
    ] = 300
    max_age_s: Annotated[int, Meta(ge=0, description="An index older than this is refreshed at the end of a turn.")] = (
        3600
    )
    recheck_hours: Annotated[
        int, Meta(ge=0, le=8760, description="When a checkout that could not be indexed is tried again.")
    ] = 24
    timeout_s: Annotated[int, Meta(ge=10, le=86_400, description="A run that takes longer is ended.")] = 1800
    state_file: Annotated[
        Inside, Meta(description="Where the file that older scripts read is written, in the project.")
    ] = STATE_FILE
    state_file_version: Annotated[Literal[1, 2], Meta(description="The shape of that file.")] = 1
    include: Annotated[Globs, Meta(description="Only these files (globs); empty: all.")] = ()
    exclude: Annotated[Globs, Meta(description="Files left out, besides those git ignores.")] = ()
    largest_kb: Annotated[int, Meta(ge=1, le=16_384, description="Larger files are left out.")] = 1024
    most_files: Annotated[int, Meta(ge=1, le=1_000_000, description="A checkout with more is not indexed.")] = 100_000
    # An address from a repository would send its code somewhere: only after trust.
    embedder: Annotated[
        str,
        Meta(
            max_length=500,
            description="builtin, off, or the address of an OpenAI-compatible endpoint (http://localhost:11434/v1).",
            extra={"guarded": ["builtin", "off"]},
        ),
    ] = "builtin"
    model: Annotated[str, Meta(max_length=200, description="The endpoint's model.")] = ""
    key_variable: Annotated[
        str, Meta(max_length=100, description="Environment variable with the endpoint's key.", extra={"guarded": True})
    ] = ""
    context: Annotated[bool, Meta(description="Suggest up to three places in the code that fit the prompt.")] = False
    context_score: Annotated[float, Meta(ge=0, le=1, description="How well a place must fit, at least.")] = 0.58

    def index(self) -> IndexSettings:
        return IndexSettings(
            include=self.include, exclude=self.exclude, largest_kb=self.largest_kb, most_files=self.most_files,
            embedder=self.embedder, model=self.model, key_variable=self.key_variable,
        )  # fmt: skip


DEFAULTS = Settings()


def settings_or_default(settings: Any) -> Settings:
    return settings if isinstance(settings, Settings) else DEFAULTS

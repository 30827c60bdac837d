"""The foundation's own sections, and the marks by which any model says what a project may not set untrusted.

A field is marked in `json_schema_extra`, so that a feature needs no import of ours:
`command`: it runs or reaches something; a project sets it only after `holdfast config trust`.
`guarded`: the same, for what is no command; a list under it names the values that need no trust, and `pattern` lets
regular expressions through that are sure to be quick.
`whole` (on a model): one wrong value takes out all that its layer, and those above it, say about that thing.
`join`: the lists of all layers are joined, so that a higher layer can only add.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def _pattern(text: str) -> str:
    try:
        re.compile(text.encode())
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_pattern)]
Name = Annotated[str, Field(min_length=3, max_length=100)]


class Store(Section):
    model_config = ConfigDict(json_schema_extra={"guarded": True})

    url: str = Field("", description="Empty: SQLite in the state directory. Else postgresql://…")
    body_days: int = Field(90, ge=1, le=36500, description="Raw payloads are kept so long; the events for ever.")
    size_warn_mb: int = Field(5000, ge=1, description="`status` warns above this size.")


class Daemon(Section):
    model_config = ConfigDict(json_schema_extra={"guarded": True})

    idle_exit_minutes: int = Field(120, ge=0, description="Ends after so long without an event; 0 = never.")
    log_mb: int = Field(10, ge=1, le=10_000, description="The log is rotated at this size.")
    workers: int = Field(2, ge=1, le=64, description="Background jobs that run at once.")


class ContextBudget(Section):
    start_tokens: int = Field(1500, ge=0, le=100_000, description="Most tokens told at the start of a session.")
    prompt_tokens: int = Field(400, ge=0, le=100_000, description="Most tokens told with a prompt.")


class Redact(Section):
    enabled: bool = Field(True, json_schema_extra={"guarded": [True]})
    names: tuple[Name, ...] = Field((), max_length=200, json_schema_extra={"join": True})
    """Further names whose values are secret, e.g. `badge_number`."""
    # A regular expression from a repository could hold the daemon up for ever, hence guarded.
    patterns: tuple[Pattern, ...] = Field((), max_length=100, json_schema_extra={"join": True, "guarded": True})
    keep: tuple[str, ...] = Field((), max_length=1000, json_schema_extra={"join": True, "guarded": True})
    """Exact texts that are no secrets though they look like some."""


class Backup(Section):
    model_config = ConfigDict(json_schema_extra={"guarded": True})

    hours: int = Field(24, ge=1, le=8760, description="Hours between two backups of the database.")
    keep: int = Field(7, ge=1, le=1000, description="So many are kept.")


class Dashboard(Section):
    model_config = ConfigDict(json_schema_extra={"guarded": True})

    port: int = Field(8417, ge=1, le=65535, description="On 127.0.0.1; another one is taken when it is in use.")
    idle_minutes: int = Field(60, ge=0, description="The web server ends after so long without a viewer; 0 = never.")


FOUNDATION: dict[str, type[BaseModel]] = {
    "store": Store,
    "daemon": Daemon,
    "context": ContextBudget,
    "redact": Redact,
    "backup": Backup,
    "dashboard": Dashboard,
}

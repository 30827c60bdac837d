"""The foundation's own sections, and the marks by which any of them says what a project may not set untrusted.

A field is marked in `Meta(extra=…)`, a whole struct by its `marks`:
`command`: it runs or reaches something; a project sets it only after `holdfast config trust`.
`guarded`: the same, for what is no command; a list under it names the values that need no trust, and `pattern` lets
regular expressions through that are sure to be quick.
`whole` (on a struct): one wrong value takes out all that its layer, and those above it, say about that thing.
`lenient` (on a struct): a name it does not know is left out, and the rest of it counts.
`join`: the lists of all layers are joined, so that a higher layer can only add.
"""

import re
from typing import Annotated

from msgspec import Meta

from holdfast.core.section import After, Section

Tokens = Annotated[int, Meta(ge=0, le=100_000)]


def _check_pattern(text: str) -> str:
    try:
        re.compile(text.encode())
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, Meta(min_length=1, max_length=1000), After(_check_pattern)]
# Shorter names stand in too many words.
Name = Annotated[str, Meta(min_length=3, max_length=100)]


class Store(Section):
    marks = {"guarded": True}

    url: Annotated[str, Meta(description="Empty: SQLite in the state directory. Else postgresql://…")] = ""
    body_days: Annotated[
        int, Meta(ge=1, le=36500, description="Raw payloads are kept so long; the events for ever.")
    ] = 90
    size_warn_mb: Annotated[int, Meta(ge=1, description="`status` warns above this size.")] = 5000


class Daemon(Section):
    marks = {"guarded": True}

    idle_exit_minutes: Annotated[int, Meta(ge=0, description="Ends after so long without an event; 0 = never.")] = 120
    log_mb: Annotated[int, Meta(ge=1, le=10_000, description="The log is rotated at this size.")] = 10
    workers: Annotated[int, Meta(ge=1, le=64, description="Background jobs that run at once.")] = 2


class ContextBudget(Section):
    start_tokens: Annotated[Tokens, Meta(description="Most tokens told at the start of a session.")] = 1500
    prompt_tokens: Annotated[Tokens, Meta(description="Most tokens told with a prompt.")] = 400


class Redact(Section):
    enabled: Annotated[bool, Meta(extra={"guarded": [True]})] = True
    names: Annotated[tuple[Name, ...], Meta(max_length=200, extra={"join": True})] = ()
    """Further names whose values are secret, e.g. `badge_number`."""
    # A regular expression from a repository could hold the daemon up for ever, hence guarded.
    patterns: Annotated[tuple[Pattern, ...], Meta(max_length=100, extra={"join": True, "guarded": True})] = ()
    keep: Annotated[tuple[str, ...], Meta(max_length=1000, extra={"join": True, "guarded": True})] = ()
    """Exact texts that are no secrets though they look like some."""


class Backup(Section):
    marks = {"guarded": True}

    hours: Annotated[int, Meta(ge=1, le=8760, description="Hours between two backups of the database.")] = 24
    keep: Annotated[int, Meta(ge=1, le=1000, description="So many are kept.")] = 7


class Dashboard(Section):
    marks = {"guarded": True}

    port: Annotated[int, Meta(ge=1, le=65535, description="On 127.0.0.1; another one is taken when it is in use.")] = (
        8417
    )
    idle_minutes: Annotated[
        int, Meta(ge=0, description="The web server ends after so long without a viewer; 0 = never.")
    ] = 60
    editor: Annotated[
        str,
        Meta(
            max_length=200,
            description="Where links to code lead: vscode, cursor, windsurf, zed, idea, sublime, textmate, file, off, "
            "or an address with {path} and {line}.",
        ),
    ] = "vscode"


FOUNDATION: dict[str, type[Section]] = {
    "store": Store,
    "daemon": Daemon,
    "context": ContextBudget,
    "redact": Redact,
    "backup": Backup,
    "dashboard": Dashboard,
}

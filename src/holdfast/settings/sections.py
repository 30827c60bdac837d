"""Sections of the foundation, and the marks that say what an untrusted project may not set."""

# A field is marked in `Meta(extra=…)`, a whole struct by its `marks`: `command`: it runs or reaches something; a
# project sets it only after `holdfast config trust`. `guarded`: the same for other values; a list names the values
# that need no trust, and `pattern` allows regular expressions that are certainly fast. `whole` (on a struct): one
# wrong value drops everything that its layer and higher ones say about that thing. `lenient` (on a struct): unknown
# names are ignored. `join`: the lists of all layers are joined.

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from holdfast.core.section import After, Section

# A settings value with its file, line and column, and the notices about it.

# Notices about a settings file, and where a value comes from.


@dataclass(frozen=True)
class Notice:
    """Lines and columns start at 1; line 0 means the whole file, or an environment variable."""

    file: str
    line: int
    column: int
    message: str
    fix: str = ""
    path: str = ""
    """The dotted name of the setting, if one is concerned."""

    @property
    def problem(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.message}"

    def __str__(self) -> str:
        return f"{self.problem.rstrip('.')}. {self.fix}" if self.fix else self.problem


@dataclass(frozen=True)
class Origin:
    """`layer` is one of default, user, project, local, environment."""

    layer: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if not self.file:
            return self.layer
        return f"{self.layer} {self.file}:{self.line}" if self.line else f"{self.layer} {self.file}"


DEFAULT = Origin("default")


# A settings value with its file, line and column.


@dataclass(frozen=True)
class Source:
    """Where values come from. A source that is not `free` may not set guarded values."""

    layer: str
    file: str
    free: bool = True


@dataclass(slots=True, eq=False)
class Node:
    """`value` is a scalar, a list of nodes or a dict of nodes; `line` and `column` are those of its key, if any."""

    value: Any
    source: Source
    line: int = 0
    column: int = 0
    value_line: int = 0
    value_column: int = 0
    dead: bool = False
    """Found wrong; `prune` removes it."""
    top: "Node | None" = None
    """In a merged tree: the node of the highest layer."""

    @property
    def origin(self) -> Origin:
        return Origin(self.source.layer, self.source.file, self.line)

    def notice(self, message: str, fix: str = "", path: str = "") -> Notice:
        return Notice(self.source.file, self.line, self.column, message, fix, path)

    def value_notice(self, message: str, fix: str = "", path: str = "") -> Notice:
        """A notice at the value itself, if it is a scalar: that is what must be changed."""
        if isinstance(self.value, dict | list):
            return self.notice(message, fix, path)
        return Notice(self.source.file, self.value_line, self.value_column, message, fix, path)

    def kill(self) -> "Node":
        """Drop the node and return the one in its file."""
        # In a merged tree the highest layer that set the value is at fault.
        victim = self.top or self
        victim.dead = True
        return victim

    def children(self) -> Iterator["Node"]:
        if isinstance(self.value, dict):
            yield from self.value.values()
        elif isinstance(self.value, list):
            yield from self.value

    def prune(self) -> None:
        if isinstance(self.value, dict):
            self.value = {name: node for name, node in self.value.items() if not node.dead}
        elif isinstance(self.value, list):
            self.value = [node for node in self.value if not node.dead]
        for node in self.children():
            node.prune()

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def copy(self) -> "Node":
        value = self.value
        if isinstance(value, dict):
            value = {name: node.copy() for name, node in value.items()}
        elif isinstance(value, list):
            value = [node.copy() for node in value]
        return Node(value, self.source, self.line, self.column, self.value_line, self.value_column)

    def size(self) -> int:
        return 1 + sum(node.size() for node in self.children())

    def at(self, path: Sequence[Any]) -> tuple["Node", int]:
        """The deepest existing node on the path, and how many steps were found."""
        node, steps = self, 0
        for step in path:
            named = isinstance(node.value, dict) and step in node.value
            counted = isinstance(node.value, list) and isinstance(step, int) and step < len(node.value)
            if not (named or counted):
                break
            node, steps = node.value[step], steps + 1
        return node, steps


def printable_name(text: str) -> str:
    """A name from a file, made printable."""
    return "".join(c if c.isprintable() else "?" for c in str(text)[:60])


def dotted_path(path: Sequence[Any]) -> str:
    return ".".join(printable_name(str(step)) for step in path)


Tokens = Annotated[int, Meta(ge=0, le=100_000)]


def _check_pattern(text: str) -> str:
    try:
        re.compile(text.encode())
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, Meta(min_length=1, max_length=1000), After(_check_pattern)]
# Shorter names occur in too many words.
Name = Annotated[str, Meta(min_length=3, max_length=100)]


class Store(Section):
    marks = {"guarded": True}

    url: Annotated[str, Meta(description="Empty: holdfast.db in the state directory. Else sqlite:///PATH.")] = ""
    body_days: Annotated[
        int, Meta(ge=1, le=36500, description="Raw payloads are kept so long; the events for ever.")
    ] = 90
    encrypt_bodies: Annotated[
        bool,
        Meta(
            description="Encrypts stored payloads with a key in the system's keyring. Only the user's setting counts."
        ),
    ] = False
    size_warn_mb: Annotated[int, Meta(ge=1, description="`status` warns above this size.")] = 5000


class Daemon(Section):
    marks = {"guarded": True}

    idle_exit_minutes: Annotated[int, Meta(ge=0, description="Ends after so long without an event; 0 = never.")] = 120
    log_mb: Annotated[int, Meta(ge=1, le=10_000, description="The log is rotated at this size.")] = 10
    workers: Annotated[int, Meta(ge=1, le=64, description="Background jobs that run at once.")] = 2


class ContextBudget(Section):
    start_tokens: Annotated[Tokens, Meta(description="Most tokens injected at the start of a session.")] = 1500
    prompt_tokens: Annotated[Tokens, Meta(description="Most tokens injected with a prompt.")] = 400


class Redact(Section):
    enabled: Annotated[bool, Meta(extra={"guarded": [True]})] = True
    names: Annotated[tuple[Name, ...], Meta(max_length=200, extra={"join": True})] = ()
    """Further names whose values are secret, e.g. `badge_number`."""
    # Guarded, because a regular expression from a repository could block the daemon.
    patterns: Annotated[tuple[Pattern, ...], Meta(max_length=100, extra={"join": True, "guarded": True})] = ()
    keep: Annotated[tuple[str, ...], Meta(max_length=1000, extra={"join": True, "guarded": True})] = ()
    """Exact texts that look like secrets and are not."""


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

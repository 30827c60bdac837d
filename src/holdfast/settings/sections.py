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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from holdfast.core.section import After, Section

# A value of a settings file that knows its file, line and column, and what a person is told about it.

# What a person is told about a settings file, and where a value came from.


@dataclass(frozen=True)
class Notice:
    """Lines and columns count from 1; line 0 means the file as a whole (or a variable of the environment)."""

    file: str
    line: int
    column: int
    message: str
    fix: str = ""
    path: str = ""
    """The dotted name of the setting, where one is concerned."""

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


# A value of a settings file that knows its file, line and column.


@dataclass(frozen=True)
class Source:
    """Where values come from. What is not `free` may not set what is guarded."""

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
    """Found wrong: to be removed by `prune`."""
    top: "Node | None" = None
    """For what was merged from several layers: the part of the highest of them."""

    @property
    def origin(self) -> Origin:
        return Origin(self.source.layer, self.source.file, self.line)

    def notice(self, message: str, fix: str = "", path: str = "") -> Notice:
        return Notice(self.source.file, self.line, self.column, message, fix, path)

    def value_notice(self, message: str, fix: str = "", path: str = "") -> Notice:
        """At the value itself, where it is a scalar: that is what must be changed."""
        if isinstance(self.value, dict | list):
            return self.notice(message, fix, path)
        return Notice(self.source.file, self.value_line, self.value_column, message, fix, path)

    def kill(self) -> "Node":
        """The node of a file that is out of the game now."""
        # In a merged tree the fault lies in the highest layer that set the value.
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
        """The deepest node on the path, and how many steps of it were found."""
        node, steps = self, 0
        for step in path:
            named = isinstance(node.value, dict) and step in node.value
            counted = isinstance(node.value, list) and isinstance(step, int) and step < len(node.value)
            if not (named or counted):
                break
            node, steps = node.value[step], steps + 1
        return node, steps


def printable_name(text: str) -> str:
    """A name out of a file, fit to be printed."""
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
# Shorter names stand in too many words.
Name = Annotated[str, Meta(min_length=3, max_length=100)]


class Store(Section):
    marks = {"guarded": True}

    url: Annotated[str, Meta(description="Empty: holdfast.db in the state directory. Else sqlite:///PATH.")] = ""
    body_days: Annotated[
        int, Meta(ge=1, le=36500, description="Raw payloads are kept so long; the events for ever.")
    ] = 90
    encrypt_bodies: Annotated[
        bool,
        Meta(description="Encrypts stored payloads; the key lies in the system's keyring. Counts only for the user."),
    ] = False
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

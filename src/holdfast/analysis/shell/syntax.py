"""The syntax tree of a shell command, reduced to what decides which programs ran and how they ended."""

from typing import TypeAlias

import msgspec

UNKNOWN = "\ufffd"
"""Stands in a word for the part whose value cannot be known from the command alone."""

ROOT_FOLDER = f"{UNKNOWN}root"
"""The root of the repository, whose name the command does not tell: unknown to all who do not ask for it."""


class Part(msgspec.Struct, frozen=True):
    """A piece of a word: literal text, or an expansion that is resolved when the command is followed."""

    kind: str
    """`text`, `variable`, `substitution`, `process`, `number` (of an arithmetic expression) or `unknown`."""
    text: str = ""
    """The literal text, or the name of the variable."""
    quoted: bool = False
    body: "Node | None" = None
    """The commands inside of `$(…)` or `<(…)`."""
    default: "Word | None" = None
    """The word after `:-`, `-`, `:=` or `:+` in `${name:-word}`."""
    operator: str = ""


class Word(msgspec.Struct, frozen=True):
    parts: tuple[Part, ...]


class Redirect(msgspec.Struct, frozen=True):
    descriptor: int
    """-1 is standard output and standard error together."""
    operator: str
    """`>`, `>>`, `<`, `>&`, `<&`, `<<<` or `<<` (the target is then the text itself)."""
    target: Word


class Assignment(msgspec.Struct, frozen=True):
    name: str
    value: Word | None
    """None where the value is an array or cannot be read."""
    append: bool = False
    elements: tuple[Word, ...] | None = None
    """Of an array."""


class Simple(msgspec.Struct, frozen=True):
    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class Condition(msgspec.Struct, frozen=True):
    """`[ … ]`, `[[ … ]]` or `(( … ))`. `words` is empty where the expression has more than one comparison."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


class Pipeline(msgspec.Struct, frozen=True):
    stages: tuple["Node", ...]
    stderr_too: tuple[bool, ...]
    """For each stage whether `|&` follows it."""


class Negation(msgspec.Struct, frozen=True):
    body: "Node"


class AndOr(msgspec.Struct, frozen=True):
    left: "Node"
    operator: str
    right: "Node"


class Sequence(msgspec.Struct, frozen=True):
    items: tuple["Node", ...]


class Background(msgspec.Struct, frozen=True):
    body: "Node"


class Group(msgspec.Struct, frozen=True):
    body: "Node"
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


class If(msgspec.Struct, frozen=True):
    branches: tuple[tuple["Node", "Node"], ...]
    otherwise: "Node | None" = None
    redirects: tuple[Redirect, ...] = ()


class While(msgspec.Struct, frozen=True):
    condition: "Node"
    body: "Node"
    until: bool
    redirects: tuple[Redirect, ...] = ()


class For(msgspec.Struct, frozen=True):
    variable: str
    values: tuple[Word, ...]
    body: "Node"
    redirects: tuple[Redirect, ...] = ()


class Case(msgspec.Struct, frozen=True):
    value: Word
    branches: tuple[tuple[tuple[Word, ...], "Node"], ...]
    redirects: tuple[Redirect, ...] = ()


class Function(msgspec.Struct, frozen=True):
    name: str
    body: "Node"


class Unparsed(msgspec.Struct, frozen=True):
    """A construct that is not followed. Its content may have run or not."""

    text: str


Node: TypeAlias = (
    Simple
    | Condition
    | Pipeline
    | Negation
    | AndOr
    | Sequence
    | Background
    | Group
    | If
    | While
    | For
    | Case
    | Function
    | Unparsed
)

NOTHING = Sequence(())

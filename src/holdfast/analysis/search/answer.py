"""The input and output types of a search."""

import msgspec


class Neighbour(msgspec.Struct, frozen=True):
    """A definition in the file of a hit."""

    symbol: str
    kind: str
    line: int
    end: int


class Hit(msgspec.Struct, kw_only=True):
    """The block from `line` to `end`, inclusive; `focus` is the most relevant line."""

    path: str
    line: int
    end: int
    symbol: str
    kind: str
    lang: str
    score: float
    why: list[str]
    focus: int = 0
    excerpt: str = ""
    chunk: int = 0
    excerpt_line: int = 0
    """The first line of the excerpt."""
    within: Neighbour | None = None
    before: Neighbour | None = None
    after: Neighbour | None = None


class Answer(msgspec.Struct, kw_only=True):
    hits: list[Hit]
    note: str = ""
    """Why a better answer was not possible: no vectors yet, another model in progress."""
    at: int = 0
    """When the index last matched its checkout, in ms."""
    files: int = 0
    chunks: int = 0


class Question(msgspec.Struct, kw_only=True, frozen=True):
    text: str
    lang: str = ""
    path: str = ""
    """A glob, or a path prefix."""
    kind: str = ""
    limit: int = 10

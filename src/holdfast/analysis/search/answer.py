"""What a search takes and returns."""

import msgspec


class Neighbour(msgspec.Struct, frozen=True):
    """A definition in the file of a hit."""

    symbol: str
    kind: str
    line: int
    end: int


class Hit(msgspec.Struct, kw_only=True):
    """The block from `line` to `end`, both included; `focus` is the line in it to look at first."""

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
    """Of the excerpt's first line."""
    within: Neighbour | None = None
    before: Neighbour | None = None
    after: Neighbour | None = None


class Answer(msgspec.Struct, kw_only=True):
    hits: list[Hit]
    note: str = ""
    """Why it is not the best that could be had: no vectors yet, another model at work."""
    at: int = 0
    """When the index was last brought up to its checkout, in milliseconds."""
    files: int = 0
    chunks: int = 0


class Question(msgspec.Struct, kw_only=True, frozen=True):
    text: str
    lang: str = ""
    path: str = ""
    """A glob, or the beginning of a path."""
    kind: str = ""
    limit: int = 10

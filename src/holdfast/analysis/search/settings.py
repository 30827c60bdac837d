"""What the library is told: plain values, so that they travel to the worker as JSON."""

import msgspec

BUILTIN, OFF = "builtin", "off"


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True):
    include: tuple[str, ...] = ()
    """Only these (globs); empty means all."""
    exclude: tuple[str, ...] = ()
    largest_kb: int = 1024
    most_files: int = 100_000
    embedder: str = BUILTIN
    """`builtin`, `off`, or the address of an endpoint in OpenAI's manner."""
    model: str = ""
    key_variable: str = ""
    """The environment variable that holds the endpoint's key."""

"""The settings of the library as plain values, so that they reach the worker as JSON."""

import msgspec

BUILTIN, OFF = "builtin", "off"


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True):
    include: tuple[str, ...] = ()
    """Only these globs; empty means all."""
    exclude: tuple[str, ...] = ()
    largest_kb: int = 1024
    most_files: int = 100_000
    embedder: str = BUILTIN
    """`builtin`, `off`, or the address of an OpenAI-compatible endpoint."""
    model: str = ""
    key_variable: str = ""
    """The environment variable with the endpoint's key."""

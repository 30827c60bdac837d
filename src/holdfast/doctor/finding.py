"""One thing that is wrong, in one line, with the command that mends it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    problem: str
    mend: str
    safely: Callable[[], object] | None = None
    """What `--fix` does; None where a person must choose."""

"""One problem, with the command that fixes it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    problem: str
    fix: str
    safely: Callable[[], object] | None = None
    """What `--fix` does; None if a person must choose."""

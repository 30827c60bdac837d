"""Secrets are removed before the first write to disk. Rules are data; one pass finds candidates."""

from functools import cache

from holdfast.redact.redactor import Redactor
from holdfast.redact.rule import Finding


@cache
def _default() -> Redactor:
    return Redactor()


def redact(body: bytes) -> tuple[bytes, int]:
    """The body with every secret replaced by `[redacted:<kind>]`, and how many there were."""
    return _default().redact(body)


__all__ = ["Finding", "Redactor", "redact"]

"""Secrets go before the first write to disk (P10). Pure, and fast: it runs inside the agent's wait on every hook."""

from holdfast.core.redact.redactor import Redactor

_PLAIN = Redactor()


def redact(body: bytes) -> tuple[bytes, int]:
    """The body with every secret replaced by `[redacted:<what>]`, and how many there were."""
    return _PLAIN.redact(body)


__all__ = ["Redactor", "redact"]

"""Removes secrets before anything is written to disk."""

import os
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from holdfast.analysis.redact.redactor import Finding, Redactor

RULES_VARIABLE = "HOLDFAST_REDACTION_RULES"
"""Passes a user's rules to processes that read no settings."""


class UserRules(msgspec.Struct, frozen=True):
    """A user's additions to the built-in rules: names of secrets, patterns, and texts to keep."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    enabled: bool = True


class _Configured:
    read: Callable[[], UserRules] | None = None


def use_rules(read: Callable[[], UserRules]) -> None:
    """Set the source of the user's rules, which is read on every call so that changes apply at once."""
    _Configured.read = read


# A process that reads no settings takes its parent's rules from the environment.
def current_rules() -> UserRules:
    return _Configured.read() if _Configured.read else _rules_of(os.environ.get(RULES_VARIABLE, ""))


def current_redactor() -> Redactor:
    """The redactor of this process: built-in rules and the user's."""
    return _cached_redactor(current_rules())


def redact(body: bytes) -> tuple[bytes, int]:
    """Replace every secret in the body by `[redacted:<kind>]`; return the body and the count."""
    return current_redactor().redact(body)


def redact_lines(body: bytes) -> bytes:
    """The same for a file read in the background; line numbers are kept."""
    return current_redactor().redact_lines(body)


def rules_environment() -> Mapping[str, str]:
    """The environment that makes a child process redact like this one."""
    return {RULES_VARIABLE: msgspec.json.encode(current_rules()).decode()}


# Building a redactor compiles the user's patterns, and every call needs one.
@lru_cache(16)
def _cached_redactor(rules: UserRules) -> Redactor:
    return Redactor(names=rules.names, patterns=rules.patterns, keep=rules.keep, enabled=rules.enabled)


@lru_cache(2)
def _rules_of(text: str) -> UserRules:
    try:
        return msgspec.json.decode(text, type=UserRules) if text else UserRules()
    # Broken user rules must not stop redaction: the built-in ones still apply.
    except msgspec.DecodeError:
        return UserRules()


__all__ = [
    "Finding",
    "Redactor",
    "UserRules",
    "current_redactor",
    "redact",
    "redact_lines",
    "rules_environment",
    "use_rules",
]

"""Removes secrets before anything is written to disk. Rules are data; one pass finds candidates."""

import os
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from holdfast.analysis.redact.redactor import Finding, Redactor

RULES_VARIABLE = "HOLDFAST_REDACTION_RULES"
"""Hands a user's rules to processes that read no settings."""


class UserRules(msgspec.Struct, frozen=True):
    """What a user adds to the built-in rules: names whose values are secret, patterns, and texts that are none."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    enabled: bool = True


class _Configured:
    read: Callable[[], UserRules] | None = None


def use_rules(read: Callable[[], UserRules]) -> None:
    """From now on `redact` follows these rules of the user; they are asked for each time, so a change counts at once."""
    _Configured.read = read


# A process that reads no settings takes the rules that its parent put into the environment.
def current_rules() -> UserRules:
    return _Configured.read() if _Configured.read else _rules_of(os.environ.get(RULES_VARIABLE, ""))


def current_redactor() -> Redactor:
    """The one redactor of this process: built-in rules and those of the user."""
    return _cached_redactor(current_rules())


def redact(body: bytes) -> tuple[bytes, int]:
    """The body with every secret replaced by `[redacted:<kind>]`, and how many there were."""
    return current_redactor().redact(body)


def redact_lines(body: bytes) -> bytes:
    """The same for a file that is read in the background: every line stays where it is."""
    return current_redactor().redact_lines(body)


def rules_environment() -> Mapping[str, str]:
    """For a child process: it redacts as this one does."""
    return {RULES_VARIABLE: msgspec.json.encode(current_rules()).decode()}


# Building a redactor compiles the user's patterns, and `redact` asks for one on every call.
@lru_cache(16)
def _cached_redactor(rules: UserRules) -> Redactor:
    return Redactor(names=rules.names, patterns=rules.patterns, keep=rules.keep, enabled=rules.enabled)


@lru_cache(2)
def _rules_of(text: str) -> UserRules:
    try:
        return msgspec.json.decode(text, type=UserRules) if text else UserRules()
    # Broken rules must not stop redaction: the built-in ones still apply.
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

"""The words of a git command: options before the verb, the verb, its arguments; and what `git_verbs.toml` says of verbs."""

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from holdfast.core.data_files import load_data


class Verb(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One verb of `git_verbs.toml`; every text is a regular expression except `dry` and `hooks`."""

    values: str = ""
    looks: str = ""
    looks_first: tuple[str, ...] = ()
    dry: str = ""
    unchanged: str = ""
    shown: str = ""
    changed: str | None = None
    no_effect: str = ""
    unclear: str = ""
    half: bool = False
    hooks: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reads: str
    changes: str
    others: str
    global_values: str
    moves_refs: str
    usual_aliases: dict[str, str]
    verbs: dict[str, Verb]


class GitWords(msgspec.Struct):
    verb: str = ""
    arguments: list[str] = []
    settings: dict[str, str] = {}
    """Of `-c` and `--config-env`, with their names in small letters."""


@cache
def _table() -> _Table:
    return load_data(__file__, "git_verbs", _Table)


@cache
def reading_verbs() -> frozenset[str]:
    return frozenset(_table().reads.split())


@cache
def changing_verbs() -> frozenset[str]:
    return frozenset(_table().changes.split())


@cache
def git_verbs() -> frozenset[str]:
    return reading_verbs() | changing_verbs() | frozenset(_table().others.split())


@cache
def _global_values() -> frozenset[str]:
    return frozenset(_table().global_values.split())


_NO_VERB = Verb()


def verb_facts(verb: str) -> Verb:
    return _table().verbs.get(verb, _NO_VERB)


def usual_meaning(alias: str) -> str:
    """The verb that people commonly mean by this name; the name itself if it is unusual."""
    return next((verb for verb, names in _table().usual_aliases.items() if alias in names.split()), alias)


def split_git(words: list[str], environment: Mapping[str, str] | None = None) -> GitWords:
    """`words` begins with git itself."""
    at, settings = 1, dict[str, str]()
    while at < len(words) and words[at].startswith("-"):
        word, following = words[at], "".join(words[at + 1 : at + 2])
        if word == "-c" and following:
            key, _, value = following.partition("=")
            settings[key.lower()] = value
        elif word.startswith("--config-env="):
            key, _, variable = word[13:].rpartition("=")
            settings[key.lower()] = (environment or {}).get(variable, "")
        at += 2 if word in _global_values() else 1
    return GitWords("".join(words[at : at + 1]), words[at + 1 :], settings)


def option_words(verb: str, arguments: list[str]) -> list[str]:
    """The options up to `--`, without the values of others: the message of a commit may be `--help`."""
    takes_value = verb_facts(verb).values
    options, skip = [], False
    for word in arguments:
        if word == "--" and not skip:
            break
        if word.startswith("-") and not skip:
            options.append(word)
        skip = not skip and bool(takes_value) and re.match(takes_value, word) is not None
    return options


def hook_files(verb: str, settings: Mapping[str, str]) -> list[str]:
    """The hooks that git may start for a verb, seen from the top of the repository."""
    folder = settings.get("core.hookspath", ".git/hooks").rstrip("/")
    names = verb_facts(verb).hooks.split()
    names += ["reference-transaction"] if verb in _table().moves_refs.split() else []
    return [f"{folder}/{name}" for name in names]

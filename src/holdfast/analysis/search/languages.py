"""Determines a file's language and role by its name alone."""

import posixpath
import re
from functools import lru_cache

import msgspec

from holdfast.core.data_files import load_data


class FileLists(msgspec.Struct, frozen=True):
    ignored_suffixes: tuple[str, ...]
    examples: tuple[str, ...]
    secret: tuple[str, ...]
    generated: tuple[str, ...]
    data: frozenset[str]
    not_walked: frozenset[str]


class Role(msgspec.Struct, frozen=True):
    name: str
    patterns: tuple[str, ...] = ()
    languages: frozenset[str] = frozenset()


class FileTables(msgspec.Struct, frozen=True):
    suffixes: dict[str, tuple[str, ...]]
    names: dict[str, tuple[str, ...]]
    files: FileLists
    interpreters: dict[str, str]
    role: tuple[Role, ...]


TABLES = load_data(__file__, "files", FileTables)
_BY_SUFFIX = {suffix: language for language, suffixes in TABLES.suffixes.items() for suffix in suffixes}
_BY_NAME = {name: language for language, names in TABLES.names.items() for name in names}
_ROLES = [(role, [re.compile(pattern) for pattern in role.patterns]) for role in TABLES.role]
LANGUAGES = frozenset((*TABLES.suffixes, *TABLES.names))
PROSE = frozenset(("markdown", "rst", "text"))
CODE, TEST, CONFIGURATION = "code", "test", "configuration"
# Rust keeps tests in a module `tests` in the same file.
_RUST_TEST = re.compile(r"(?:^|\.)(?:tests?|test_\w+|\w+_tests?)(?:\.|$)")


def language_of_path(path: str) -> str:
    """Empty if the name says nothing."""
    name = posixpath.basename(path).lower()
    for ending in TABLES.files.ignored_suffixes:
        name = name.removesuffix(ending)
    # `Dockerfile.alpine` is named the other way round.
    first = name.partition(".")[0]
    return _BY_NAME.get(name) or _BY_SUFFIX.get(posixpath.splitext(name)[1], "") or _BY_NAME.get(first, "")


@lru_cache(maxsize=20_000)
def role_of(path: str) -> str:
    """What a file is for, by its path alone."""
    language = language_of_path(path)
    fitting = (
        role.name
        for role, patterns in _ROLES
        if language in role.languages or any(pattern.search(path) for pattern in patterns)
    )
    return next(fitting, CODE)


def role_of_chunk(path: str, symbol: str) -> str:
    """As `role_of`; where tests are in the same file, by the definition's name."""
    return TEST if path.endswith(".rs") and _RUST_TEST.search(symbol) else role_of(path)

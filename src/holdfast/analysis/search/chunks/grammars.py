"""Loads what counts as a definition in each language."""

import importlib
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.core.data_files import load_data


class Grammar(msgspec.Struct, frozen=True):
    """Types of nodes."""

    package: str
    functions: frozenset[str]
    containers: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    entry: str = "language"


class Nodes(msgspec.Struct, frozen=True):
    looked_into: frozenset[str]
    values: frozenset[str]
    before: tuple[str, ...]
    wrappers: frozenset[str]
    in_class: frozenset[str]
    methods: frozenset[str]


class Outlines(msgspec.Struct, frozen=True):
    languages: frozenset[str]
    functions: frozenset[str]


class ChunkTables(msgspec.Struct, frozen=True):
    grammar: dict[str, Grammar]
    nodes: Nodes
    outline: Outlines


TABLES = load_data(__file__, "grammars", ChunkTables)
GRAMMARS, NODES, OUTLINE = TABLES.grammar, TABLES.nodes, TABLES.outline


@lru_cache(maxsize=64)
def load_parser(language: str) -> Any:
    """None if the grammar is not installed: the file is then cut by its outline."""
    grammar = GRAMMARS.get(language)
    if grammar is None:
        return None
    try:
        import tree_sitter

        package = importlib.import_module(grammar.package)
        return tree_sitter.Parser(tree_sitter.Language(getattr(package, grammar.entry)()))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None

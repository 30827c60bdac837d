"""Defines what counts as a definition in each language."""

import importlib
from functools import lru_cache
from typing import Any

import msgspec


class Grammar(msgspec.Struct, frozen=True):
    package: str
    functions: frozenset[str]
    containers: frozenset[str]
    """Definitions that contain others, each of which is a chunk."""
    leaves: frozenset[str] = frozenset()
    """Definitions that are one chunk, whatever they contain."""
    entry: str = "language"


def _make_grammar(
    package: str, functions: str, containers: str = "", leaves: str = "", entry: str = "language"
) -> Grammar:
    return Grammar(
        package, frozenset(functions.split()), frozenset(containers.split()), frozenset(leaves.split()), entry
    )


# Functions, containers, and (for TypeScript) leaves, as `_make_grammar` takes them.
_JS = (
    "function_declaration generator_function_declaration method_definition",
    "class_declaration class abstract_class_declaration internal_module module",
)
_TS = (
    "function_declaration generator_function_declaration method_definition function_signature abstract_method_signature",
    _JS[1],
    "interface_declaration enum_declaration type_alias_declaration",
)
_TYPES = "class_declaration struct_declaration interface_declaration record_declaration"

GRAMMARS: dict[str, Grammar] = {
    "python": _make_grammar("tree_sitter_python", "function_definition", "class_definition"),
    "javascript": _make_grammar("tree_sitter_javascript", *_JS),
    "typescript": _make_grammar("tree_sitter_typescript", *_TS, entry="language_typescript"),
    "tsx": _make_grammar("tree_sitter_typescript", *_TS, entry="language_tsx"),
    "go": _make_grammar("tree_sitter_go", "function_declaration method_declaration", "", "type_declaration"),
    "rust": _make_grammar(
        "tree_sitter_rust",
        "function_item function_signature_item",
        "impl_item trait_item mod_item",
        "struct_item enum_item union_item macro_definition type_item",
    ),
    "java": _make_grammar(
        "tree_sitter_java",
        "method_declaration constructor_declaration compact_constructor_declaration",
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration",
    ),
    "c": _make_grammar("tree_sitter_c", "function_definition", "", "type_definition struct_specifier enum_specifier"),
    "cpp": _make_grammar(
        "tree_sitter_cpp",
        "function_definition",
        "class_specifier struct_specifier namespace_definition",
        "type_definition enum_specifier alias_declaration",
    ),
    "c-sharp": _make_grammar(
        "tree_sitter_c_sharp",
        "method_declaration constructor_declaration property_declaration operator_declaration",
        f"{_TYPES} namespace_declaration",
        "enum_declaration delegate_declaration",
    ),
    "ruby": _make_grammar("tree_sitter_ruby", "method singleton_method", "class module singleton_class"),
    "php": _make_grammar(
        "tree_sitter_php",
        "function_definition method_declaration",
        "class_declaration interface_declaration trait_declaration enum_declaration",
        entry="language_php",
    ),
    "bash": _make_grammar("tree_sitter_bash", "function_definition"),
}

LOOKED_INTO = frozenset(
    # Nodes between a definition and its contents, or around a definition.
    [
        "block",
        "declaration_list",
        "class_body",
        "interface_body",
        "enum_body",
        "enum_body_declarations",
        "annotation_type_body",
        "statement_block",
        "body_statement",
        "field_declaration_list",
        "preproc_ifdef",
        "preproc_if",
        "preproc_else",
        "preproc_elif",
        "linkage_specification",
        "export_statement",
        "decorated_definition",
        "template_declaration",
        "expression_statement",
        "lexical_declaration",
        "variable_declaration",
        "ambient_declaration",
        "compound_statement",
        "namespace_definition",
        "file_scoped_namespace_declaration",
        "declaration",
        "field_declaration",
        "if_statement",
        "try_statement",
        "program",
        "call_expression",
        "parenthesized_expression",
        "arguments",
        "internal_module",
        "public_field_definition",
    ]
)
# Right-hand sides that are a definition when assigned to a name.
VALUES = frozenset(["arrow_function", "function_expression", "function", "generator_function", "class"])
BEFORE = ("comment", "attribute", "decorator", "annotation")
"""Siblings right above a definition that belong to it."""


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

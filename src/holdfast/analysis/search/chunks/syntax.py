"""Cuts code along its syntax tree."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast.analysis.search.chunks.chunk import LONGEST_LINES, Chunk, named_chunks, of_lines, uncovered_spans
from holdfast.analysis.search.chunks.grammars import GRAMMARS, NODES, Grammar, load_parser

PATIENCE_S = 2.0
"""Processor seconds, independent of the machine's load. A megabyte of code takes 0.2 s."""
# Bytes handed to the parser at a time, so that the deadline is checked often.
PAGE = 4096
# Bounds the recursion.
DEEPEST = 40
LONGEST_NAME = 200
# In lines.
MOST_SCRAPS = 2
_DECLARATIONS = ("lexical_declaration", "variable_declaration")
Node = Any


class DefinitionNode(msgspec.Struct):
    """A definition in the tree. Rows from 0, end exclusive."""

    kind: str
    symbol: str
    start: int
    end: int
    inner: list["DefinitionNode"]


def cut_by_syntax(lines: Sequence[str], language: str) -> list[Chunk]:
    """Nothing if there is no grammar, the text is in another language, or it takes too long."""
    parse = load_parser(language)
    tree = _parse_in_time(parse, "\n".join(lines).encode("utf-8", "replace")) if parse else None
    if tree is None:
        return []
    # Overlaps first: scraps go to the definition that ends right before them.
    definitions = _remove_overlaps(_definitions_within(tree.root_node, GRAMMARS[language], "", DEEPEST), 0, len(lines))
    _take_scraps(lines, definitions, len(lines))
    return list(_chunks_of_file(lines, definitions)) if definitions else []


def _parse_in_time(parse: Any, content: bytes) -> Any:
    """None if it took too long: some texts make a grammar reparse repeatedly."""
    latest, late, parsing = time.process_time() + PATIENCE_S, False, True

    def read(at: int, _point: Any) -> bytes:
        """Later reads of names in the tree use this function too."""
        nonlocal late
        late = late or (parsing and time.process_time() > latest)
        return b"" if late else content[at : at + PAGE]

    tree = parse.parse(read)
    parsing = False
    return None if late else tree


def _chunks_of_file(lines: Sequence[str], definitions: list[DefinitionNode]) -> Iterator[Chunk]:
    rest = [(d.start, d.end) for d in definitions]
    pieces = [(start, end, None) for start, end in uncovered_spans(rest, 0, len(lines))] + [
        (d.start, d.end, d) for d in definitions
    ]
    for start, end, definition in sorted(pieces, key=lambda piece: piece[0]):
        if definition is None:
            yield from of_lines(lines, start, end, "module", "")
        else:
            yield from _definition_chunks(lines, definition)


def _definition_chunks(lines: Sequence[str], definition: DefinitionNode) -> Iterator[Chunk]:
    kind, symbol, first, last = definition.kind, definition.symbol, definition.start, definition.end
    spans = uncovered_spans([(d.start, d.end) for d in definition.inner], first, last)
    own = (chunk for start, end in spans for chunk in of_lines(lines, start, end, kind, symbol))
    yield from named_chunks(own, kind, symbol, first, last)
    for one in definition.inner:
        yield from _definition_chunks(lines, one)


def _remove_overlaps(definitions: list[DefinitionNode], start: int, end: int) -> list[DefinitionNode]:
    """In order, without overlap: two definitions on one line are one."""
    tidied: list[DefinitionNode] = []
    # Of two with the same start the longer one first, because it contains the other.
    for one in sorted(definitions, key=lambda d: (d.start, -d.end)):
        one.start, one.end = max(one.start, start), min(one.end, end)
        if one.start < one.end:
            tidied.append(one)
            start = one.end
            one.inner = _remove_overlaps(one.inner, one.start, one.end)
    return tidied


def _take_scraps(lines: Sequence[str], definitions: list[DefinitionNode], end: int) -> None:
    """A line or two after a definition (a closing brace, an alias) belong to it."""
    for number, one in enumerate(definitions):
        until = definitions[number + 1].start if number + 1 < len(definitions) else end
        if sum(1 for line in lines[one.end : until] if line.strip()) <= MOST_SCRAPS:
            one.end = until
        _take_scraps(lines, one.inner, one.end)


def _definitions_within(node: Node, grammar: Grammar, prefix: str, depth: int) -> list[DefinitionNode]:
    definitions: list[DefinitionNode] = []
    if depth == 0:
        return definitions
    for child in node.named_children:
        definitions += _definitions_of_node(child, grammar, prefix, depth)
    return definitions


def _definitions_of_node(node: Node, grammar: Grammar, prefix: str, depth: int) -> list[DefinitionNode]:
    kind = node.type
    if kind in grammar.functions or kind in grammar.leaves:
        return _build_definition(node, grammar, prefix, depth, "function" if kind in grammar.functions else "class")
    if kind in grammar.containers:
        return _build_definition(node, grammar, prefix, depth, "class")
    if kind in ("variable_declarator", "assignment_expression", "pair", "public_field_definition"):
        return _assigned_definitions(node, grammar, prefix, depth)
    return (
        _definitions_within(node, grammar, prefix, depth - 1)
        if kind in NODES.looked_into or kind in NODES.values
        else []
    )


def _build_definition(
    node: Node, grammar: Grammar, prefix: str, depth: int, kind: str, name: str = ""
) -> list[DefinitionNode]:
    name = name or _node_name(node)
    # An anonymous struct or enum belongs to the enclosing definition.
    if kind == "class" and not name and node.type.endswith("_specifier"):
        return []
    symbol = ".".join(part for part in (prefix, _receiver_type(node), name) if part)
    outer = _outermost_wrapper(node)
    start, end = _first_row(outer), outer.end_point[0] + 1
    # Functions are only split if they are too long for one chunk.
    holds = node.type in grammar.containers or end - start > LONGEST_LINES
    inner = _definitions_within(node, grammar, symbol, depth - 1) if holds else []
    if kind == "function" and prefix and _in_class(node):
        kind = "method"
    return [DefinitionNode(kind, symbol, start, end, inner)]


def _assigned_definitions(node: Node, grammar: Grammar, prefix: str, depth: int) -> list[DefinitionNode]:
    """`const f = () => …`, `exports.f = function …`, `f = class …`"""
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is None:
        return []
    if value.type not in NODES.values:
        return _definitions_of_node(value, grammar, prefix, depth - 1) if value.type in NODES.looked_into else []
    target = (
        node.child_by_field_name("name") or node.child_by_field_name("left") or node.child_by_field_name("property")
    )
    # `module.exports.f = …` is found as `f`.
    name = _node_text(target).removeprefix("module.").removeprefix("exports.") if target is not None else ""
    return _build_definition(node, grammar, prefix, depth, "class" if value.type == "class" else "function", name)


def _outermost_wrapper(node: Node) -> Node:
    """The export, decorator or template around a definition bounds it."""
    outer = node
    while (parent := outer.parent) is not None and parent.type in NODES.wrappers:
        # `const a = 1,` and `b = () => …` below it: the declaration begins too early for the second.
        if parent.start_point[0] < outer.start_point[0] and parent.type in _DECLARATIONS:
            break
        outer = parent
    return outer


def _first_row(node: Node) -> int:
    row: int = node.start_point[0]
    above = node.prev_sibling
    while above is not None and any(word in above.type for word in NODES.before) and row - above.end_point[0] <= 1:
        before = above.prev_sibling
        if before is not None and before.end_point[0] == above.start_point[0] and "comment" not in before.type:
            break  # A remark at the end of the line before.
        row, above = above.start_point[0], before
    return row


def _in_class(node: Node) -> bool:
    return node.type in NODES.methods or (node.parent is not None and node.parent.type in NODES.in_class)


def _node_name(node: Node) -> str:
    # Rust: `impl Trait for Type` is named after the type.
    for field in ("type",) if node.type == "impl_item" else ("name", "declarator"):
        name_node = node.child_by_field_name(field)
        # C and C++ wrap the name in pointer and function declarators.
        while name_node is not None and (inner := name_node.child_by_field_name("declarator")) is not None:
            name_node = inner
        if name_node is not None:
            return _node_text(name_node)
    return _inner_name(node)


def _inner_name(node: Node) -> str:
    """Of a definition whose name is in one of its children."""
    if node.type == "type_declaration":
        inside = next((c for c in node.named_children if c.type in ("type_spec", "type_alias")), None)
        return _node_name(inside) if inside is not None else ""
    if node.type == "type_definition":
        named = [c for c in node.named_children if c.type == "type_identifier"]
        return _node_text(named[-1]) if named else ""
    return ""


def _receiver_type(node: Node) -> str:
    """Of a Go method: `func (s *Server) Serve()` is Server.Serve."""
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    if receiver is None:
        return ""
    words = _node_text(receiver).strip("()").replace("*", " ").split()
    return words[-1].partition("[")[0] if words else ""


def _node_text(node: Node) -> str:
    text = node.text.decode("utf-8", "replace") if node.text else ""
    # Without type parameters; `::` of C++ and Rust becomes a dot.
    return " ".join(text.partition("<")[0].split())[:LONGEST_NAME].strip().replace("::", ".")

"""Functions of a file with what their authors said about them: the sentence, and the code without it.

Both sides use it: `training/train.py` learns from such pairs, `tests/bench/search.py` measures with them (as CodeSearchNet
does: the sentence is the question, its function the one right answer).
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.analysis.search.chunks.grammars import GRAMMARS, load_parser

SHORTEST_BODY = 3
"""Lines."""
MOST_WORDS, LEAST_WORDS = 60, 3
LONGEST_BODY = 20_000

Node = Any


class Function(msgspec.Struct):
    path: str
    symbol: str
    name: str
    body: str
    sentence: str = ""
    """Empty where nobody said anything that could be a question."""


def functions(text: str, language: str, path: str) -> Iterator[Function]:
    if language in ("kotlin", "swift"):
        yield from braced_functions(text, path)
        return
    parse = load_parser(language)
    if parse is None:
        return
    content = text.encode("utf-8", "replace")
    for node, owner in _definitions(parse.parse(content).root_node, language):
        made = _function(node, owner, content, language, path)
        if made and made.body.count("\n") + 1 >= SHORTEST_BODY and len(made.body) <= LONGEST_BODY:
            yield made


def _definitions(root: Node, language: str) -> Iterator[tuple[Node, str]]:
    """Every function, also those inside others' bodies of classes; not those inside functions."""
    grammar = GRAMMARS[language]
    waiting: list[tuple[Node, str]] = [(root, "")]
    while waiting:
        node, owner = waiting.pop()
        if node.type in grammar.functions:
            yield node, owner
            continue
        if node.type == "variable_declarator" and _is_function(node.child_by_field_name("value")):
            yield node, owner
            continue
        if node.type in grammar.containers:
            owner = _text(node.child_by_field_name("type" if node.type == "impl_item" else "name")) or owner
        waiting.extend((child, owner) for child in reversed(node.named_children))


def _is_function(node: Node | None) -> bool:
    return node is not None and node.type in ("arrow_function", "function_expression", "function")


def _function(node: Node, owner: str, content: bytes, language: str, path: str) -> Function | None:
    name = _name(node)
    if not name:
        return None
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")) is not None:
        owner = _text(receiver).strip("()").replace("*", " ").split()[-1:][0] if _text(receiver).strip("() ") else owner
    doc, body = _python(node, content) if language == "python" else _commented(node, content)
    symbol = f"{owner.partition('<')[0].partition('[')[0]}.{name}" if owner else name
    return Function(path, symbol, name, body, sentence(doc))


def _name(node: Node) -> str:
    """C and C++ wrap it into the declarator."""
    found = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    while found is not None and (inner := found.child_by_field_name("declarator")) is not None:
        found = inner
    return _text(found).rpartition("::")[2].strip()


def _python(node: Node, content: bytes) -> tuple[str, str]:
    whole = content[node.start_byte : node.end_byte]
    block = node.child_by_field_name("body")
    first = block.named_children[0] if block is not None and block.named_children else None
    if (
        first is None
        or first.type != "expression_statement"
        or not first.named_children
        or first.named_children[0].type != "string"
    ):
        return "", whole.decode("utf-8", "replace")
    doc = _text(first.named_children[0])
    start, end = first.start_byte - node.start_byte, first.end_byte - node.start_byte
    return doc.lstrip("rRbBuUfF").strip("\"'"), (whole[:start] + whole[end:]).decode("utf-8", "replace")


def _commented(node: Node, content: bytes) -> tuple[str, str]:
    outer = node
    while outer.parent is not None and outer.parent.type in (
        "export_statement",
        "lexical_declaration",
        "variable_declaration",
        "declaration_list",
    ):
        if outer.parent.type == "declaration_list" or outer.parent.named_child_count > 2:
            break
        outer = outer.parent
    comments: list[str] = []
    row, above = outer.start_point[0], outer.prev_sibling
    while above is not None and ("comment" in above.type or "attribute" in above.type or above.type == "decorator"):
        end = above.end_point[0] - (1 if above.end_point[1] == 0 else 0)
        if row - end > 1:
            break
        if "comment" in above.type:
            comments.insert(0, _text(above, whole=True))
        row, above = above.start_point[0], above.prev_sibling
    return _uncommented("\n".join(comments)), content[outer.start_byte : outer.end_byte].decode("utf-8", "replace")


def _uncommented(text: str) -> str:
    lines = [re.sub(r"^\s*(?:/\*\*?!?|\*/|\*|///?!?|#+)\s?", "", line) for line in text.split("\n")]
    return "\n".join(line.removesuffix("*/").rstrip() for line in lines)


_REMARK = re.compile(r"^\s*(?://+|#+|--)\s+(\S.*)$")
_LOOKS_LIKE_CODE = re.compile(
    r"[;{}=<>]|\(\)|^\W|\w\.\w+\(|https?:|TODO|FIXME|XXX|HACK|noqa|type:|pylint|eslint|rubocop|^\w+:$"
)
LEAST_LINES_AROUND = 8
MOST_REMARKS = 2


def remarks(body: str) -> Iterator[tuple[str, str]]:
    """(what a remark inside a function says, the function without any remarks), for functions long enough to hold more."""
    lines = body.split("\n")
    if len(lines) < LEAST_LINES_AROUND:
        return
    said: list[str] = []
    rest: list[str] = []
    before = False
    for line in lines:
        match = _REMARK.match(line)
        if match is None:
            rest.append(line)
        elif before and said:
            said[-1] += " " + match[1]
        else:
            said.append(match[1])
        before = match is not None
    found = [told for one in said if (told := sentence(one)) and not _LOOKS_LIKE_CODE.search(told)]
    for told in sorted((t for t in found if len(t.split()) >= 4), key=len, reverse=True)[:MOST_REMARKS]:
        yield told, "\n".join(rest)


_BRACED = re.compile(
    r"^[ \t]*(?:[\w@()\"]+[ \t]+)*?(?:fun|func)[ \t]+(?:<[^>]*>[ \t]*)?(?:\w+\.)?(\w+)[ \t]*[(<]", re.MULTILINE
)


def braced_functions(text: str, path: str) -> Iterator[Function]:
    """Kotlin and Swift, for which there is no grammar: from `fun` to the brace that closes it."""
    for match in _BRACED.finditer(text):
        start = text.rfind("\n", 0, match.start() + 1) + 1
        opened = text.find("{", match.end())
        end = _closing(text, opened) if 0 <= opened - match.end() < 400 else -1
        if end < 0 or end - start > LONGEST_BODY or text.count("\n", start, end) + 1 < SHORTEST_BODY:
            continue
        yield Function(path, match[1], match[1], text[start : end + 1], sentence(_comment_above(text, start)))


def _closing(text: str, opened: int) -> int:
    depth = 0
    for at in range(opened, min(len(text), opened + LONGEST_BODY)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    return -1


def _comment_above(text: str, start: int) -> str:
    lines = text[max(0, start - 3_000) : start].split("\n")[:-1]
    taken: list[str] = []
    for line in reversed(lines):
        bare = line.strip()
        if bare.startswith("@"):
            continue
        if not bare.startswith(("///", "/**", "*", "//")):
            break
        taken.insert(0, line)
    return _uncommented("\n".join(taken))


_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n\s*\n")
_STOP = re.compile(
    r"^\s*(?:@\w|:param|:return|Args:|Parameters\b|Returns?:|Raises:|>>>|```|# (?:Examples|Panics|Errors|Safety))",
    re.MULTILINE,
)
_MARKUP = re.compile(
    # C# names what it speaks of in attributes: <see cref="T:Namespace.Type"/>, <paramref name="count"/>.
    r"<(?:see|seealso|paramref|typeparamref)\s+(?:cref|name|langword|href)=\"(?:\w:)?(?:[\w.]*\.)?(\w+)[^\"]*\"\s*/?>"
    r"|\{@\w+\s+([^}]*)\}|</?\w[^>]*>|:\w+:`([^`]*)`|\[([^\]]*)\]\([^)]*\)|`+([^`]*)`+"
)
_NOISE = re.compile(
    r"copyright|licen[cs]e|nolint|eslint|todo|fixme|rubocop|deprecated|autogenerated|generated by|noqa|---|===|\*\*\*",
    re.IGNORECASE,
)


def sentence(doc: str) -> str:
    doc = _STOP.split(doc.strip(), maxsplit=1)[0].strip()
    doc = _MARKUP.sub(lambda m: next((g for g in m.groups() if g), " "), doc)
    match = _SENTENCE_END.search(doc)
    first = " ".join((doc[: match.start()] if match else doc).split())
    words = first.split()
    if not LEAST_WORDS <= len(words) <= MOST_WORDS or _NOISE.search(first):
        return ""
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in first)
    return first if letters >= 0.7 * len(first) else ""


def _text(node: Node | None, whole: bool = False) -> str:
    if node is None or not node.text:
        return ""
    text = node.text.decode("utf-8", "replace")
    return text if whole else text[:5_000]


def is_test(path: str, name: str) -> bool:
    low = path.lower()
    return bool(
        re.search(r"(^|[/_.-])(tests?|testing|testdata|spec|specs|benches|examples?|__tests__)([/_.-]|$)", low)
    ) or bool(re.match(r"(?i)test", name))

"""From the text of a command to its syntax tree."""

# The grammar is tree-sitter's; nothing else here reads shell text.

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from holdfast.analysis.shell import syntax
from holdfast.analysis.shell.grammar_fixes import add_redirects, append_to_list, rebalance_pipeline, spell_plainly
from holdfast.analysis.shell.redirects import HERE_STRING, MARKED, MAX_HEREDOCS, Heredoc, extract_heredocs
from holdfast.analysis.shell.syntax import Assignment, Node, Part, Redirect, Simple, Word

if TYPE_CHECKING:
    from tree_sitter import Node as Leaf
    from tree_sitter import Parser

# With the bodies of heredocs, which are taken out before the grammar sees the text.
MAX_CHARACTERS = 400_000
MAX_CHARACTERS_WITHOUT_HEREDOCS = 32_000
MAX_SEPARATORS = 2_000
MAX_PARENTHESES = 1_200
"""Of both kinds together. The grammar takes long to recover from hundreds that do not match."""
MAX_NODES = 2_500
"""Nodes of the grammar's tree: walking over more takes longer than a hook may wait."""
# The tree is walked recursively; this stays far below Python's own recursion limit.
MAX_DEPTH = 60
# Characters that begin a command, a group or a quoted text: a cheap bound on how many there are.
_SEPARATOR = re.compile(r"[;&|(`\n{'\"]")
_PARENTHESIS = re.compile(r"[()]")
_QUOTED = re.compile(r"""\\.|\$'(?:\\.|[^'\\])*'|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
# Groups: hex digits of \x, hex digits of \u, octal digits, any other escaped character.
_ANSI_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(\n|.))", re.DOTALL)
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b", "0": "\0"}


class ShellTooLarge(Exception):
    """The command is larger or deeper than what is followed."""


class ShellUnreadable(Exception):
    """The command is not valid shell text as far as the grammar can tell."""


@lru_cache(maxsize=1)
def _bash_parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse_command(text: str) -> Node:
    """Raises `ShellTooLarge` or `ShellUnreadable`; both are checked before work is done that could take long."""
    if len(text) > MAX_CHARACTERS:
        raise ShellTooLarge
    extracted = extract_heredocs(text)
    if len(extracted.heredocs) > MAX_HEREDOCS or _is_too_large(extracted.text):
        raise ShellTooLarge
    if "\0" in text:
        raise ShellUnreadable
    return _Builder(extracted.heredocs).build(extracted.text)


def _is_too_large(text: str) -> bool:
    """Quoted text costs almost nothing, as far as quotes can be found without a parser."""
    if len(text) < MAX_PARENTHESES // 4:
        return False
    if len(text) > MAX_CHARACTERS_WITHOUT_HEREDOCS or len(_PARENTHESIS.findall(text)) > MAX_PARENTHESES:
        return True
    bare = _QUOTED.sub("", text)
    too_many_words = len(bare) > MAX_NODES and len(bare.split()) > MAX_NODES
    too_many_parentheses = len(_PARENTHESIS.findall(bare)) > MAX_PARENTHESES // 4
    return too_many_words or too_many_parentheses or len(_SEPARATOR.findall(text)) > MAX_SEPARATORS


class _Builder:
    def __init__(self, heredocs: tuple[Heredoc, ...]) -> None:
        self.heredocs = heredocs
        self.depth = 0

    def build(self, text: str) -> Node:
        root = _bash_parser().parse(text.encode("utf-8", "replace")).root_node
        if root.has_error and (plain := spell_plainly(text)) != text:
            root = _bash_parser().parse(plain.encode("utf-8", "replace")).root_node
        if root.has_error:
            raise ShellUnreadable
        if root.descendant_count > MAX_NODES:
            raise ShellTooLarge
        return self.sequence(root.children)

    # ── statements ───────────────────────────────────────────────────────────────────────────────────────────────────

    def sequence(self, children: "list[Leaf]") -> Node:
        items: list[Node] = []
        for child in children:
            # The grammar shows `&` as a sibling behind the command that it sends to the background.
            if child.type == "&" and items:
                items[-1] = syntax.Background(items[-1])
            elif child.is_named and child.type != "comment":
                items.append(self.statement(child))
        return items[0] if len(items) == 1 else syntax.Sequence(tuple(items))

    def statement(self, leaf: "Leaf") -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellTooLarge
        try:
            build = _STATEMENTS.get(leaf.type)
            return build(self, leaf) if build else syntax.Unparsed(_leaf_text(leaf))
        finally:
            self.depth -= 1

    def command(self, leaf: "Leaf") -> Node:
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        for child in leaf.children:
            kind = child.type
            if kind == "variable_assignment":
                assignments.append(self.assignment(child))
            elif kind.endswith("_redirect"):
                redirects.append(self.redirect(child))
            elif kind == "command_name":
                words.append(self.word(child.children[0]))
            elif kind == "subshell" and _leaf_text(leaf).startswith("coproc"):
                return syntax.Background(self.group(child))
            elif child.is_named:
                words.append(self.word(child))
        return Simple(tuple(words), tuple(assignments), tuple(redirects), leaf.start_point[0])

    def assignments(self, leaf: "Leaf") -> Node:
        children = leaf.children if leaf.type == "variable_assignments" else [leaf]
        return Simple((), tuple(self.assignment(child) for child in children), (), leaf.start_point[0])

    def assignment(self, leaf: "Leaf") -> Assignment:
        name, value = leaf.child_by_field_name("name"), leaf.child_by_field_name("value")
        append = any(child.type == "+=" for child in leaf.children)
        text = _leaf_text(name).partition("[")[0] if name else ""
        # `a[0]=x`: the array keeps its name, but what it holds from now on is not known.
        if name is None or name.type != "variable_name":
            return Assignment(text, None, append)
        if value is not None and value.type == "array":
            return Assignment(text, None, append, tuple(self.word(child) for child in value.children if child.is_named))
        return Assignment(text, self.word(value) if value is not None else Word(()), append)

    def declaration(self, leaf: "Leaf") -> Node:
        """`export`, `local`, `declare`, `readonly`, `typeset`: a command whose operands may be assignments."""
        words = [_literal_word(_leaf_text(leaf.children[0]))]
        assignments: list[Assignment] = []
        for child in leaf.children[1:]:
            if child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.is_named:
                words.append(self.word(child))
        return Simple(tuple(words), tuple(assignments), (), leaf.start_point[0])

    def unset(self, leaf: "Leaf") -> Node:
        return Simple(tuple(_literal_word(_leaf_text(child)) for child in leaf.children), (), (), leaf.start_point[0])

    def redirected(self, leaf: "Leaf") -> Node:
        body: Node = syntax.NOTHING
        redirects: list[Redirect] = []
        words: list[Word] = []
        for child in leaf.children:
            if child.type.endswith("_redirect"):
                redirects.append(self.redirect(child))
                words += self._words_behind(child)
            else:
                body = self.statement(child)
        if words and isinstance(body, Simple):
            body = msgspec.structs.replace(body, words=(*body.words, *words))
        return add_redirects(body, tuple(redirects))

    def _words_behind(self, leaf: "Leaf") -> list[Word]:
        """`tee < a b`: the parser takes all words after the operator for the redirection's."""
        named = [child for child in leaf.children if child.is_named and child.type != "file_descriptor"]
        return [self.word(child) for child in named[1:]] if leaf.type == "file_redirect" else []

    def redirect(self, leaf: "Leaf") -> Redirect:
        descriptor, operator, target = None, "", Word(())
        for child in leaf.children:
            if child.type == "file_descriptor":
                descriptor = int(_leaf_text(child)) if _leaf_text(child).isdecimal() else None
            elif not child.is_named:
                operator = operator or _leaf_text(child)
            elif not target.parts:
                target = self.word(child)
        return self._redirect(descriptor, operator, target)

    def _redirect(self, descriptor: int | None, operator: str, target: Word) -> Redirect:
        if operator == "<":
            return self._input(descriptor, target)
        # `>& FILE` without a number sends both streams to the file; `>&2` only copies a descriptor.
        if operator in ("&>", "&>>") or (operator == ">&" and descriptor is None and not _is_descriptor(target)):
            return Redirect(-1, ">>" if operator == "&>>" else ">", target)
        standard = 0 if operator.startswith("<") else 1
        return Redirect(standard if descriptor is None else descriptor, ">" if operator == ">|" else operator, target)

    def _input(self, descriptor: int | None, target: Word) -> Redirect:
        text = target.parts[0].text if len(target.parts) == 1 else ""
        match = MARKED.fullmatch(text)
        if match is None:
            here = descriptor == HERE_STRING
            return Redirect(0 if here else descriptor or 0, "<<<" if here else "<", target)
        number = int(match[1])
        # A command may contain the text of our mark by itself; then no heredoc belongs to it.
        heredoc = self.heredocs[number] if number < len(self.heredocs) else Heredoc("", True)
        if heredoc.literal or not ("$" in heredoc.body or "`" in heredoc.body):
            return Redirect(0, "<<", _literal_word(heredoc.body))
        return Redirect(0, "<<", self._expanded_body(heredoc.body))

    def _expanded_body(self, body: str) -> Word:
        """An unquoted heredoc is expanded like a string in double quotes."""
        # A bare quote would end the string that the body is parsed as; `x` only makes it an argument.
        quoted = body.replace('"', '\\"')
        root = _bash_parser().parse(f'x "{quoted}"'.encode("utf-8", "replace")).root_node
        command = root.children[0] if root.children and not root.has_error else None
        if command is None or len(command.children) != 2 or root.descendant_count > MAX_NODES:
            return Word((Part("unknown"),))
        return self.word(command.children[1])

    def pipeline(self, leaf: "Leaf") -> Node:
        stages: list[Node] = []
        merged: list[bool] = []
        negated = False
        for child in leaf.children:
            if child.type in ("|", "|&"):
                merged.append(child.type == "|&")
            elif child.is_named and child.type != "comment":
                stage = self.statement(child)
                # `! a | b` negates the whole pipeline; the grammar hangs the negation on its first stage.
                if isinstance(stage, syntax.Negation) and not stages:
                    negated, stage = True, stage.body
                stages.append(stage)
        merged += [False] * (len(stages) - len(merged))
        whole = rebalance_pipeline(stages[0], tuple(stages[1:]), tuple(merged))
        return syntax.Negation(whole) if negated else whole

    def list_(self, leaf: "Leaf") -> Node:
        parts = [child for child in leaf.children if child.type != "comment"]
        if len(parts) < 3:
            return syntax.Unparsed(_leaf_text(leaf))
        node = self.statement(parts[0])
        for operator, right in zip(parts[1::2], parts[2::2], strict=False):
            node = append_to_list(node, operator.type, self.statement(right))
        return node

    def negation(self, leaf: "Leaf") -> Node:
        return syntax.Negation(self.statement(leaf.children[-1]))

    def group(self, leaf: "Leaf") -> Node:
        # `(( ... ))` is a compound statement for the grammar, but it only evaluates a number.
        if leaf.type == "compound_statement" and leaf.children and leaf.children[0].type == "((":
            return syntax.Condition(self._condition_words(leaf))
        return syntax.Group(self.sequence(leaf.children), leaf.type == "subshell")

    def condition(self, leaf: "Leaf") -> Node:
        return syntax.Condition(self._condition_words(leaf))

    def _condition_words(self, leaf: "Leaf") -> tuple[Word, ...]:
        words: list[Word] = []
        if self._flatten(leaf, words):
            return tuple(words)
        return (Word((opaque,)),) if (opaque := self._opaque("unknown", leaf, "", False)).body else ()

    def _flatten(self, leaf: "Leaf", words: list[Word]) -> bool:
        for child in leaf.children:
            if child.type in ("&&", "||", "(", ")"):
                return False
            if child.type in ("binary_expression", "unary_expression", "negation_expression"):
                if not self._flatten(child, words):
                    return False
            elif child.type not in ("[", "]", "[[", "]]", "((", "))"):
                words.append(self.word(child) if child.is_named else _literal_word(_leaf_text(child)))
        # More words than `! a = b` has are more than one comparison, which nobody evaluates.
        return len(words) <= 4

    def if_(self, leaf: "Leaf") -> Node:
        branches: list[tuple[Node, Node]] = []
        otherwise: Node | None = None
        head: list[Leaf] = []
        for child in leaf.children:
            if child.type in ("elif_clause", "else_clause"):
                if child.type == "elif_clause":
                    branches.append(self._branch(child.children))
                else:
                    otherwise = self.sequence(child.children)
            else:
                head.append(child)
        return syntax.If((self._branch(head), *branches), otherwise)

    def _branch(self, children: "list[Leaf]") -> tuple[Node, Node]:
        cut = next((n for n, child in enumerate(children) if child.type == "then"), len(children))
        return self.sequence(children[:cut]), self.sequence(children[cut:])

    def while_(self, leaf: "Leaf") -> Node:
        body = leaf.child_by_field_name("body")
        condition = [c for n, c in enumerate(leaf.children) if leaf.field_name_for_child(n) == "condition"]
        inner = self.sequence(body.children) if body else syntax.NOTHING
        return syntax.While(self.sequence(condition), inner, leaf.children[0].type == "until")

    def for_(self, leaf: "Leaf") -> Node:
        body, variable = leaf.child_by_field_name("body"), leaf.child_by_field_name("variable")
        values = tuple(
            self.word(c) for n, c in enumerate(leaf.children) if leaf.field_name_for_child(n) == "value" and c.is_named
        )
        # `for x; do` takes the positional parameters and `select` asks a person: values that are not known.
        listed = any(child.type == "in" for child in leaf.children) and leaf.children[0].type == "for"
        words = values if listed else (Word((Part("unknown"),)),)
        return syntax.For(
            _leaf_text(variable) if variable else "", words, self.sequence(body.children) if body else syntax.NOTHING
        )

    def counting_for(self, leaf: "Leaf") -> Node:
        body = leaf.child_by_field_name("body")
        return syntax.For("", (Word((Part("unknown"),)),), self.sequence(body.children) if body else syntax.NOTHING)

    def case(self, leaf: "Leaf") -> Node:
        value = leaf.child_by_field_name("value")
        branches = [self._case_item(child) for child in leaf.children if child.type == "case_item"]
        return syntax.Case(self.word(value) if value else Word(()), tuple(branches))

    def _case_item(self, leaf: "Leaf") -> tuple[tuple[Word, ...], Node]:
        patterns = [c for n, c in enumerate(leaf.children) if leaf.field_name_for_child(n) == "value" and c.is_named]
        rest = [c for n, c in enumerate(leaf.children) if leaf.field_name_for_child(n) is None]
        return tuple(_literal_word(_leaf_text(p).strip("'\"")) for p in patterns), self.sequence(rest)

    def function(self, leaf: "Leaf") -> Node:
        name, body = leaf.child_by_field_name("name"), leaf.child_by_field_name("body")
        return syntax.Function(_leaf_text(name) if name else "", self.statement(body) if body else syntax.NOTHING)

    # ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def word(self, leaf: "Leaf") -> Word:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellTooLarge
        try:
            return Word(tuple(self.parts(leaf, False)))
        finally:
            self.depth -= 1

    def parts(self, leaf: "Leaf", quoted: bool) -> list[Part]:
        kind = leaf.type
        if read := _TEXTS.get(kind):
            return [Part("text", read(_leaf_text(leaf)), quoted or kind not in _BARE_TEXTS)]
        if kind in ("string", "translated_string", "heredoc_body"):
            return self._string_parts(leaf)
        if kind == "concatenation":
            return [part for child in leaf.children for part in self.parts(child, quoted)]
        if kind in ("simple_expansion", "expansion"):
            return [self._expansion(leaf, quoted)]
        if inner := _SUBSTITUTIONS.get(kind):
            # The part's text is how it begins; the executor tells `<(` from `>(` by it.
            return [Part(inner, leaf.children[0].type, quoted, self.sequence(leaf.children))]
        return [self._opaque("number" if kind == "arithmetic_expansion" else "unknown", leaf, _leaf_text(leaf), quoted)]

    def _opaque(self, kind: str, leaf: "Leaf", text: str, quoted: bool) -> Part:
        """An expression that is not evaluated; the substitutions in it run all the same."""
        inner = tuple(syntax.Group(self.sequence(one.children), True) for one in _substitutions_in(leaf))
        return Part(kind, text, quoted, syntax.Sequence(inner) if inner else None)

    def _string_parts(self, leaf: "Leaf") -> list[Part]:
        """Text between the children of a string belongs to it too: the grammar leaves blanks out."""
        raw, base = leaf.text or b"", leaf.start_byte
        parts: list[Part] = []
        at = leaf.start_byte + (2 if leaf.type == "translated_string" else 1)
        end = leaf.end_byte - 1
        for child in leaf.children:
            if child.type in ('"', "string_content", '$"') or child.end_byte <= at:
                continue
            parts += _string_text(raw[at - base : child.start_byte - base])
            parts += self.parts(child, True)
            at = child.end_byte
        parts += _string_text(raw[at - base : end - base])
        return parts or [Part("text", "", True)]

    def _expansion(self, leaf: "Leaf", quoted: bool) -> Part:
        names = [_leaf_text(child) for child in leaf.children if child.type in _VARIABLE_NAMES]
        operators = [_leaf_text(child) for child in leaf.children if not (child.is_named or child.type in _DOLLARS)]
        if leaf.type == "simple_expansion" or (names and not operators):
            return Part("variable", "".join(names[:1]), quoted)
        # `${x-w}` and `${x:-w}` differ only for a variable that is set and empty; they are treated alike.
        if names and len(operators) == 1 and operators[0] in _DEFAULT_OPERATORS:
            default = self._default(leaf.named_children[1:])
            return Part("variable", names[0], quoted, None, default, operators[0].lstrip(":"))
        opaque = self._opaque("unknown", leaf, "".join(names[:1]), quoted)
        return msgspec.structs.replace(opaque, operator=_leaf_text(leaf))

    def _default(self, leaves: "list[Leaf]") -> Word:
        return Word(tuple(part for leaf in leaves for part in self.parts(leaf, False)))


def _string_text(raw: bytes) -> list[Part]:
    text = raw.decode("utf-8", "replace")
    # Inside of double quotes a backslash escapes only these characters; before others it stays.
    return [Part("text", re.sub(r'\\([$`"\\\n])', _unescape_match, text), True)] if text else []


def _unescape_match(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _unescape_ansi(match: re.Match[str]) -> str:
    if code := match[1] or match[2]:
        return chr(int(code, 16))
    return chr(int(match[3], 8) % 256) if match[3] else _ANSI_ESCAPES.get(match[4], syntax.UNKNOWN)


def _leaf_text(leaf: "Leaf") -> str:
    return (leaf.text or b"").decode("utf-8", "replace")


def _substitutions_in(leaf: "Leaf") -> "Iterator[Leaf]":
    for child in leaf.children:
        if child.type in ("command_substitution", "process_substitution"):
            yield child
        else:
            yield from _substitutions_in(child)


def _literal_word(text: str) -> Word:
    return Word((Part("text", text, True),))


def _is_descriptor(word: Word) -> bool:
    return len(word.parts) == 1 and word.parts[0].kind == "text" and word.parts[0].text.rstrip("-").isdecimal()


_BARE_TEXTS = frozenset(("word", "number", "variable_name", "test_operator", "regex", "extglob_pattern"))
# Kind of leaf → what its text says.
_TEXTS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(_BARE_TEXTS, lambda text: _ESCAPE.sub(_unescape_match, text)),
    "raw_string": lambda text: text[1:-1],
    "ansi_c_string": lambda text: _ANSI_ESCAPE.sub(_unescape_ansi, text[2:-1]),
}
_SUBSTITUTIONS = {"command_substitution": "substitution", "process_substitution": "process"}
_VARIABLE_NAMES = frozenset(("variable_name", "special_variable_name", "subscript"))
_DOLLARS = frozenset(("$", "${", "}"))
_DEFAULT_OPERATORS = frozenset((":-", "-", ":=", "=", ":+", "+"))
_STATEMENTS = {
    "command": _Builder.command, "variable_assignment": _Builder.assignments, "variable_assignments": _Builder.assignments,
    "declaration_command": _Builder.declaration, "unset_command": _Builder.unset, "redirected_statement": _Builder.redirected,
    "pipeline": _Builder.pipeline, "list": _Builder.list_, "negated_command": _Builder.negation, "compound_statement": _Builder.group,
    "subshell": _Builder.group, "test_command": _Builder.condition, "if_statement": _Builder.if_, "while_statement": _Builder.while_,
    "for_statement": _Builder.for_, "c_style_for_statement": _Builder.counting_for, "case_statement": _Builder.case,
    "function_definition": _Builder.function,
}  # fmt: skip

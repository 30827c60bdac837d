"""Corrects what tree-sitter's bash grammar does not know or groups wrongly."""

import msgspec

from holdfast.analysis.shell import syntax
from holdfast.analysis.shell.syntax import Node, Redirect
from holdfast.core.lazy import lazy_pattern

# `{git,commit,-m,x}` where a command begins: the whole word is a list of words.
_BRACES_AS_COMMAND = lazy_pattern(
    r"((?:^|[;&|(\n`!]|\b(?:do|then|else)\b)[ \t]*)\{([^\s{},;'\"$`\\]+(?:,[^\s{},;'\"$`\\]+)+)\}(?=[\s;&|)`]|$)"
)
_NAMED_COPROCESS = lazy_pattern(r"\bcoproc([ \t]+\w+)(?=[ \t]*\()")


def spell_plainly(text: str) -> str:
    """Rewrites constructs that the grammar refuses, keeping the length."""
    text = _BRACES_AS_COMMAND.sub(lambda match: f"{match[1]} {match[2].replace(',', ' ')} ", text)
    return _NAMED_COPROCESS.sub(lambda match: "coproc" + " " * len(match[1]), text)


def rebalance_pipeline(first: Node, rest: tuple[Node, ...], merged: tuple[bool, ...]) -> Node:
    """The grammar takes `a && b 2>&1 | c` for a pipeline of the list; only `b` is piped."""
    if isinstance(first, syntax.AndOr):
        return syntax.AndOr(first.left, first.operator, rebalance_pipeline(first.right, rest, merged))
    if isinstance(first, syntax.Negation):
        return syntax.Negation(rebalance_pipeline(first.body, rest, merged))
    if isinstance(first, syntax.Pipeline):
        return syntax.Pipeline((*first.stages, *rest), (*first.stderr_too[:-1], *merged))
    return syntax.Pipeline((first, *rest), merged)


def append_to_list(left: Node, operator: str, right: Node) -> Node:
    """Lists group from the left, whatever the grammar nested."""
    if isinstance(right, syntax.AndOr):
        return syntax.AndOr(append_to_list(left, operator, right.left), right.operator, right.right)
    return syntax.AndOr(left, operator, right)


def add_redirects(node: Node, redirects: tuple[Redirect, ...]) -> Node:
    """The grammar attaches the redirection of `a && b > f` to the list; it belongs to `b`."""
    if not redirects:
        return node
    if isinstance(node, syntax.Sequence) and not node.items:
        return syntax.Simple((), (), redirects)
    if isinstance(node, syntax.AndOr):
        return syntax.AndOr(node.left, node.operator, add_redirects(node.right, redirects))
    if isinstance(node, syntax.Pipeline):
        return syntax.Pipeline((*node.stages[:-1], add_redirects(node.stages[-1], redirects)), node.stderr_too)
    if isinstance(node, syntax.Negation):
        return syntax.Negation(add_redirects(node.body, redirects))
    if isinstance(
        node, syntax.Simple | syntax.Group | syntax.If | syntax.While | syntax.For | syntax.Case | syntax.Condition
    ):
        return msgspec.structs.replace(node, redirects=node.redirects + redirects)
    return node

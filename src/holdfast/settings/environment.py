"""The highest layer: `HOLDFAST_<SECTION>__<NAME>=value`, deeper names with further double underscores."""

from collections.abc import Mapping

from holdfast.settings.node import Node, Source

PREFIX = "HOLDFAST_"


def environment_layer(environ: Mapping[str, str]) -> Node:
    root = Node({}, Source("environment", "environment"))
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and "__" in variable:
            source = Source("environment", f"${variable}")
            _put(
                root, variable.removeprefix(PREFIX).lower().split("__"), Node(_value(environ[variable], source), source)
            )
    return root


def _value(text: str, source: Source) -> object:
    """A scalar stays text: the model turns it into what it needs, and a password of digits stays a password."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    from holdfast.settings.document import parse_text

    return parse_text(text, source)


def _put(node: Node, names: list[str], leaf: Node) -> None:
    for name in names[:-1]:
        node = node.value.setdefault(name, Node({}, leaf.source))
        if not isinstance(node.value, dict):
            node.value = {}
    node.value[names[-1]] = leaf

"""Settings from `HOLDFAST_…` variables."""

from collections.abc import Mapping

from holdfast.settings.sections import Node, Source

PREFIX = "HOLDFAST_"


def environment_layer(environ: Mapping[str, str]) -> Node:
    root = Node({}, Source("environment", "environment"))
    for variable in sorted(environ):
        # Variables with single underscores are switches of programs, not settings.
        if variable.startswith(PREFIX) and "__" in variable:
            source = Source("environment", f"${variable}")
            _put_leaf(
                root,
                variable.removeprefix(PREFIX).lower().split("__"),
                Node(_environment_value(environ[variable], source), source),
            )
    return root


def _environment_value(text: str, source: Source) -> object:
    """A scalar stays text: the model converts it, and a password of digits stays a password."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    from holdfast.settings.yaml_document import parse_text

    return parse_text(text, source)


def _put_leaf(node: Node, names: list[str], leaf: Node) -> None:
    for name in names[:-1]:
        node = node.value.setdefault(name, Node({}, leaf.source))
        # A longer name replaces a scalar that a shorter variable set.
        if not isinstance(node.value, dict):
            node.value = {}
    node.value[names[-1]] = leaf

"""Merges layers into one section: the highest layer wins, and a wrong value falls back to the layer below."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.core.section import Fault, Faults, Part, Section, ValuePath, part_of
from holdfast.settings.quick_regex import is_quick
from holdfast.settings.resolved import Resolved
from holdfast.settings.sections import Node, Notice, Source, dotted_path, printable_name
from holdfast.settings.walk import NamedNode, walk_places

# The most notices shown, and the most passes over a file whose values are removed one by one.
MOST_NOTICES = 100
MOST_PASSES = 100
NEARLY_ALIKE = 0.8
BELOW = "Until it is corrected, what the layer below says counts."
TRUST = "Read that file, then run `holdfast config trust`."
NOBODY = Source("default", "")
Sections = Mapping[str, type[Section]]


class Notices(list[Notice]):
    """Collects at most the first hundred notices."""

    @property
    def full(self) -> bool:
        return len(self) >= MOST_NOTICES

    def add(self, notice: Notice) -> None:
        if not self.full:
            self.append(notice)


def resolve_sections(sections: Sections, layers: Sequence[Node], notices: Notices) -> Resolved:
    """`layers` from lowest to highest; they are consumed."""
    for layer in layers:
        _check_names(sections, layer, notices)
    models: dict[str, Section] = {}
    trees: dict[str, Node] = {}
    for name, model in sections.items():
        mine = [layer.value[name] for layer in layers if name in layer.value]
        if mine:
            models[name], trees[name] = _resolve_section(name, part_of(model), mine, notices)
        else:  # nobody said anything: most sections, most of the time
            models[name], trees[name] = model(), Node({}, NOBODY)
        _attach_notices(models[name], name, notices)
    return Resolved(models, trees, notices)


def _resolve_section(name: str, part: Part, layers: list[Node], notices: Notices) -> tuple[Any, Node]:
    # What is dropped as a whole in one layer is dropped in higher ones, which were written to change it.
    gone: set[ValuePath] = set()
    for node in layers:
        # From the lowest layer up, because `gone` grows.
        gone |= _check_places(name, part, node, notices, gone)
    return _read_until_valid(name, part, _inherited_layers(layers, part), notices)


def _check_names(sections: Sections, layer: Node, notices: Notices) -> None:
    for name, node in layer.value.items():
        if name not in sections:
            node.dead = True
            _report_unknown_name(name, sections, node, notices, "section", (name,))
        elif not isinstance(node.value, dict):
            node.dead = True
            if node.value is not None:  # `context:` with nothing below it is an empty section
                notices.add(node.value_notice(f"`{name}` must be a mapping.", BELOW, name))
    layer.prune()


def _inherited_layers(layers: list[Node], part: Part) -> list[Node]:
    """`inherit: false` in a section drops the layers below it."""
    if "inherit" not in part.fields:
        return layers
    # The highest layer with it decides.
    cuts = [n for n, layer in enumerate(layers) if (inherit := layer.value.get("inherit")) and inherit.value is False]
    return layers[cuts[-1] :] if cuts else layers


def _attach_notices(section: Section, name: str, notices: Notices) -> None:
    """Attach notices to the section, so that a feature can report them where they matter."""
    mine = [n for n in notices if not n.path or f"{n.path}.".startswith(f"{name}.")]
    if mine:
        section.__dict__["notices"] = tuple(str(n) for n in mine)


def _check_places(section: str, part: Part, node: Node, notices: Notices, gone: set[ValuePath]) -> set[ValuePath]:
    """Return the paths dropped as a whole, in this layer or a lower one (`gone`)."""
    removed = set(gone)
    for path in gone:
        _mark_dead(node, path)
    node.prune()
    for setting in walk_places([part], node, (section,)):
        if setting.unknown:
            # An unknown name is harmless; a misspelt one was meant to say something.
            left_out: set[ValuePath] = set()
            if setting.mark("lenient") and not _nearest_name(setting.path[-1], setting.names()):
                setting.node.dead = True
            else:
                left_out = _take_out(setting, node)
            removed |= left_out
            _report_unknown_name(
                setting.path[-1],
                setting.names(),
                setting.node,
                notices,
                "setting",
                setting.path,
                min(left_out, default=()),
            )
        elif not node.source.free and _is_guarded(setting):
            removed |= _take_out(setting, node)
            what = "is a command" if setting.mark("command") else "is not for a project to set"
            text = f"`{dotted_path(setting.path)}` {what}, and you have not trusted this file."
            notices.add(setting.node.notice(text, TRUST, dotted_path(setting.path)))
    node.prune()
    return removed


def _nearest_name(name: Any, known_names: Iterable[str]) -> str:
    """Find the known name that a misspelt one was meant to be; without it the rest could mean something else."""
    from difflib import get_close_matches

    # Close enough to be a typo: `adr_path` is no `warn_at`.
    return next(iter(get_close_matches(str(name)[:60].lower(), list(known_names), n=1, cutoff=NEARLY_ALIKE)), "")


def _without_whole(section: str, whole: ValuePath) -> str:
    return f"Until it is corrected, this file's `{dotted_path((section, *whole))}` does not count."


def _take_out(setting: NamedNode, layer: Node) -> set[ValuePath]:
    setting.node.dead = True
    return {_mark_dead(layer, path[1:]) for path in setting.wholes}


def _mark_dead(layer: Node, path: ValuePath) -> ValuePath:
    node, steps = layer.at(path)
    node.dead = node.dead or steps == len(path)
    return path


def _is_guarded(setting: NamedNode) -> bool:
    if setting.mark("command"):
        return True
    guard = setting.mark("guarded")
    if guard == "pattern":
        # A project may set a regular expression untrusted if it cannot be slow.
        return not is_quick(setting.node.value)
    return setting.node.value not in guard if isinstance(guard, list) else bool(guard)


def _report_unknown_name(
    name: Any, known_names: Any, node: Node, notices: Notices, what: str, path: ValuePath, left_out: ValuePath = ()
) -> None:
    """`left_out`: what is ignored because of it."""
    if notices.full:
        return
    near = _nearest_name(name, known_names)
    known = sorted(set(known_names))
    fix = f"Did you mean `{near}`?" if near else f"Known here: {', '.join(known[:12])}{' …' if known[12:] else '.'}"
    fix += f" {_without_whole(str(path[0]), left_out)}" if left_out else ""
    notices.add(node.notice(f"unknown {what} `{printable_name(name)}`.", fix, dotted_path(path)))


def _read_until_valid(section: str, part: Part, layers: list[Node], notices: Notices) -> tuple[Any, Node]:
    """Read, remove what is wrong, and repeat until it is valid."""
    joins = {name for name, field in part.fields.items() if field.marks.get("join")}
    # Each pass removes at least one value; the number bounds a validator that never agrees.
    for _ in range(MOST_PASSES):
        layers = [layer for layer in layers if not layer.dead]
        merged = _merge_layers(layers, joins)
        faults: Faults = []
        try:
            made = part.read(merged.plain(), faults)
            if not faults:
                return made, merged
            _report_faults(section, merged, faults, notices, _Wholes(part, merged, layers))
        except Exception as error:  # a validator of a feature with a fault in it
            notices.add(
                merged.kill().notice(f"`{section}` cannot be used: {printable_name(str(error))}.", BELOW, section)
            )
        # Nothing of any layer is left, so the defaults count.
        if merged.top is None:
            break
        for layer in layers:
            layer.prune()
    return part.model(), Node({}, NOBODY)


class _Wholes:
    """Models marked `whole`: one wrong value drops everything that its layer and higher ones say about that thing,
    because they were written to change it."""

    def __init__(self, part: Part, merged: Node, layers: list[Node]) -> None:
        self.paths = {path for setting in walk_places([part], merged) for path in setting.wholes}
        self.layers = layers

    def take_out(self, loc: tuple[Any, ...], victim: Node) -> ValuePath:
        """Return the path of what no longer counts; empty if only the value is dropped."""
        sources = [layer.source for layer in self.layers]
        # A victim without a layer comes from the defaults.
        first = sources.index(victim.source) if victim.source in sources else len(sources)
        for path in self.paths:
            if loc[: len(path)] == path:
                for layer in self.layers[first:]:
                    _mark_dead(layer, path)
        return min((path for path in self.paths if loc[: len(path)] == path), default=())


def _report_faults(section: str, merged: Node, faults: list[Fault], notices: Notices, wholes: _Wholes) -> None:
    for loc, text in faults:
        node, steps = merged.at(loc)
        path = dotted_path((section, *loc[:steps]))
        below = dotted_path(loc[steps:])
        message = f"`{path}`" + (f" ({below})" if below else "") + f": {shown_message(text)}."
        # The part of the highest layer is dropped; the one below is tried in the next pass.
        victim = node.kill()
        whole = wholes.take_out(loc, victim)
        notices.add(victim.value_notice(message, _without_whole(section, whole) if whole else BELOW, path))


def shown_message(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:300]).removesuffix(".")


def _merge_layers(layers: Sequence[Node], joins: set[str]) -> Node:
    merged = Node({}, NOBODY)
    for layer in layers:
        merged = _merge_nodes(merged, layer, joins)
    return merged


def _merge_nodes(low: Node, high: Node, joins: set[str] = frozenset()) -> Node:  # type: ignore[assignment]
    if not (isinstance(low.value, dict) and isinstance(high.value, dict)):
        return high
    value = dict(low.value)
    for name, node in high.value.items():
        under = value.get(name)
        if under is None:
            value[name] = node
        # A higher layer adds to a joined list and cannot remove from it.
        elif name in joins and isinstance(under.value, list) and isinstance(node.value, list):
            value[name] = _merged_node([*under.value, *node.value], node)
        else:
            value[name] = _merge_nodes(under, node)
    return _merged_node(value, high)


def _merged_node(value: Any, top: Node) -> Node:
    return Node(value, top.source, top.line, top.column, top.value_line, top.value_column, top=top)

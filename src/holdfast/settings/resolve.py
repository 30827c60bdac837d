"""Layers become one section: the highest layer wins, and whatever is wrong gives way to the layer below it."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.section import Section, part_of
from holdfast.core.section.groups import Part
from holdfast.core.section.leaves import Fault, Faults, Path
from holdfast.settings.node import Node, Source, dotted, shown
from holdfast.settings.notice import Notice
from holdfast.settings.quick import is_quick
from holdfast.settings.resolved import Resolved
from holdfast.settings.shape import Place, places

MOST_NOTICES = 100
MOST_PASSES = 100
BELOW = "Until it is corrected, what the layer below says counts."
TRUST = "Read that file, then run `holdfast config trust`."
NOBODY = Source("default", "")
Sections = Mapping[str, type[Section]]


class Notices(list[Notice]):
    """A file can be wrong in five thousand places; a person reads the first hundred."""

    @property
    def full(self) -> bool:
        return len(self) >= MOST_NOTICES

    def add(self, notice: Notice) -> None:
        if not self.full:
            self.append(notice)


def resolve(sections: Sections, layers: Sequence[Node], notices: Notices) -> Resolved:
    """`layers` from the lowest to the highest; they are used up."""
    for layer in layers:
        _check_names(sections, layer, notices)
    models: dict[str, Section] = {}
    trees: dict[str, Node] = {}
    for name, model in sections.items():
        mine = [layer.value[name] for layer in layers if name in layer.value]
        if mine:
            models[name], trees[name] = _resolved(name, part_of(model), mine, notices)
        else:  # nobody said anything: most sections, most of the time
            models[name], trees[name] = model(), Node({}, NOBODY)
        _tell(models[name], name, notices)
    return Resolved(models, trees, notices)


def _resolved(name: str, part: Part, layers: list[Node], notices: Notices) -> tuple[Any, Node]:
    gone: set[Path] = set()
    for node in layers:
        gone |= _check_places(name, part, node, notices, gone)
    return _settle(name, part, _inheriting(layers, part), notices)


def _check_names(sections: Sections, layer: Node, notices: Notices) -> None:
    for name, node in layer.value.items():
        if name not in sections:
            node.dead = True
            _unknown(name, sections, node, notices, "section", (name,))
        elif not isinstance(node.value, dict):
            node.dead = True
            if node.value is not None:  # `context:` with nothing below it is an empty section
                notices.add(node.value_notice(f"`{name}` must be a mapping.", BELOW, name))
    layer.prune()


def _inheriting(layers: list[Node], part: Part) -> list[Node]:
    """`inherit: false` in a section that knows the word leaves out what the layers below it say."""
    if "inherit" not in part.fields:
        return layers
    cuts = [n for n, layer in enumerate(layers) if (said := layer.value.get("inherit")) and said.value is False]
    return layers[cuts[-1] :] if cuts else layers


def _tell(section: Section, name: str, notices: Notices) -> None:
    """A section knows what is wrong with it, so that a feature can say so where it matters."""
    mine = [n for n in notices if not n.path or f"{n.path}.".startswith(f"{name}.")]
    if mine:
        section.__dict__["notices"] = tuple(str(n) for n in mine)


def _check_places(section: str, part: Part, node: Node, notices: Notices, gone: set[Path]) -> set[Path]:
    """The paths of what was taken out as a whole, in this layer or in one below it (`gone`)."""
    found = set(gone)
    for path in gone:
        _kill(node, path)
    node.prune()
    for place in places([part], node, (section,)):
        if place.unknown:
            if place.mark("lenient") and not _looks_meant(place):
                place.node.dead = True
            else:
                found |= _take_out(place, node)
            _unknown(place.path[-1], place.names(), place.node, notices, "setting", place.path)
        elif not node.source.free and _guarded(place):
            found |= _take_out(place, node)
            what = "is a command" if place.mark("command") else "is not for a project to set"
            text = f"`{dotted(place.path)}` {what}, and you have not trusted this file."
            notices.add(place.node.notice(text, TRUST, dotted(place.path)))
    node.prune()
    return found


def _looks_meant(place: Place) -> bool:
    """A word that is nearly one we know was meant to say something; without it the rest would mean something else."""
    from difflib import get_close_matches

    return bool(get_close_matches(str(place.path[-1])[:60].lower(), place.names(), n=1))


def _take_out(place: Place, layer: Node) -> set[Path]:
    place.node.dead = True
    return {_kill(layer, path[1:]) for path in place.wholes}


def _kill(layer: Node, path: Path) -> Path:
    node, steps = layer.at(path)
    node.dead = node.dead or steps == len(path)
    return path


def _guarded(place: Place) -> bool:
    if place.mark("command"):
        return True
    guard = place.mark("guarded")
    if guard == "pattern":
        return not is_quick(place.node.value)
    return place.node.value not in guard if isinstance(guard, list) else bool(guard)


def _unknown(name: Any, known: Any, node: Node, notices: Notices, what: str, path: Path) -> None:
    if notices.full:
        return
    from difflib import get_close_matches

    near = get_close_matches(str(name)[:60].lower(), list(known), n=1)
    fix = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(sorted(set(known))[:12])}."
    notices.add(node.notice(f"unknown {what} `{shown(name)}`.", fix, dotted(path)))


def _settle(section: str, part: Part, layers: list[Node], notices: Notices) -> tuple[Any, Node]:
    """Read it, take out what is wrong, again, until it holds."""
    joins = {name for name, field in part.fields.items() if field.marks.get("join")}
    for _ in range(MOST_PASSES):
        layers = [layer for layer in layers if not layer.dead]
        merged = _merge(layers, joins)
        faults: Faults = []
        try:
            made = part.read(merged.plain(), faults)
            if not faults:
                return made, merged
            _blame(section, merged, faults, notices, _Wholes(part, merged, layers))
        except Exception as error:  # a validator of a feature with a fault in it
            notices.add(merged.kill().notice(f"`{section}` cannot be used: {shown(str(error))}.", BELOW, section))
        if merged.top is None:
            break
        for layer in layers:
            layer.prune()
    return part.model(), Node({}, NOBODY)


class _Wholes:
    """Models marked `whole`: one wrong value takes out all that its layer, and those above it, say about that thing.

    What stands above was written to change it, and would mean something else alone."""

    def __init__(self, part: Part, merged: Node, layers: list[Node]) -> None:
        self.paths = {path for place in places([part], merged) for path in place.wholes}
        self.layers = layers

    def take_out(self, loc: tuple, victim: Node) -> None:
        sources = [layer.source for layer in self.layers]
        first = sources.index(victim.source) if victim.source in sources else len(sources)
        for path in self.paths:
            if loc[: len(path)] == path:
                for layer in self.layers[first:]:
                    _kill(layer, path)


def _blame(section: str, merged: Node, faults: list[Fault], notices: Notices, wholes: _Wholes) -> None:
    for loc, text in faults:
        node, steps = merged.at(loc)
        path = dotted((section, *loc[:steps]))
        below = dotted(loc[steps:])
        message = f"`{path}`" + (f" ({below})" if below else "") + f": {shown_message(text)}."
        victim = node.kill()
        notices.add(victim.value_notice(message, BELOW, path))
        wholes.take_out(loc, victim)


def shown_message(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:300]).removesuffix(".")


def _merge(layers: Sequence[Node], joins: set[str]) -> Node:
    merged = Node({}, NOBODY)
    for layer in layers:
        merged = _over(merged, layer, joins)
    return merged


def _over(low: Node, high: Node, joins: set[str] = frozenset()) -> Node:  # type: ignore[assignment]
    if not (isinstance(low.value, dict) and isinstance(high.value, dict)):
        return high
    value = dict(low.value)
    for name, node in high.value.items():
        under = value.get(name)
        if under is None:
            value[name] = node
        elif name in joins and isinstance(under.value, list) and isinstance(node.value, list):
            value[name] = _stacked([*under.value, *node.value], node)
        else:
            value[name] = _over(under, node)
    return _stacked(value, high)


def _stacked(value: Any, top: Node) -> Node:
    return Node(value, top.source, top.line, top.column, top.value_line, top.value_column, top=top)

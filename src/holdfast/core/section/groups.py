"""What is made of other values: lists, mappings, parts with names of their own, and one thing or another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.core.section.leaves import Faults, Kind


class ListOf(Kind):
    called = "a list"

    def __init__(self, item: Kind, made: Callable[[list[Any]], Any], *, alone: bool) -> None:
        self.item, self.made, self.alone = item, made, alone

    def read(self, value: Any, faults: Faults) -> Any:
        if self.alone and isinstance(value, str | dict):
            return self.made([self.item.read(value, faults)])
        if not isinstance(value, list | tuple):
            return self.refuse(faults)
        return self.made([_inside(self.item, one, step, faults) for step, one in enumerate(value)])


class MappingOf(Kind):
    called = "a mapping"

    def __init__(self, name: Kind, item: Kind) -> None:
        self.name, self.item = name, item

    def read(self, value: Any, faults: Faults) -> Any:
        if not isinstance(value, Mapping):
            return self.refuse(faults)
        found = {}
        for name, one in value.items():
            wrong: Faults = []
            self.name.read(name, wrong)
            faults += [((name,), f"its name {text}") for _, text in wrong]
            found[name] = _inside(self.item, one, name, faults)
        return found


class Either(Kind):
    def __init__(self, kinds: tuple[Kind, ...], *, optional: bool) -> None:
        self._kinds, self._optional = kinds, optional
        self._alternatives = tuple(one for kind in kinds for one in kind.alternatives)

    @property
    def alternatives(self) -> tuple[Kind, ...]:
        return self._alternatives

    def read(self, value: Any, faults: Faults) -> Any:
        """A mapping is about a part, where one is possible; of the others the first that holds, or its faults."""
        if value is None and self._optional:
            return None
        first: Faults | None = None
        for kind in self._likely(value):
            wrong: Faults = []
            read = kind.read(value, wrong)
            if not wrong:
                return read
            first = first or wrong
        faults += first or []
        return None

    def _likely(self, value: Any) -> tuple[Kind, ...]:
        if isinstance(value, dict):
            return tuple(kind for kind in self._kinds if _has_names(kind)) or self._kinds
        return self._kinds


@dataclass(frozen=True, slots=True)
class Field:
    attribute: str
    kind: Kind
    marks: Mapping[str, Any]
    required: bool


class Part(Kind):
    """A struct, by the names that a file uses."""

    called = "a mapping"

    def __init__(self, model: type[msgspec.Struct], fields: Mapping[str, Field]) -> None:
        self.model, self.fields = model, fields
        self.marks: Mapping[str, Any] = getattr(model, "marks", {})
        self.open = not model.__struct_config__.forbid_unknown_fields
        self._required = [name for name, field in fields.items() if field.required]

    def read(self, value: Any, faults: Faults) -> Any:
        if isinstance(value, self.model):
            return value
        if not isinstance(value, Mapping):
            return self.refuse(faults)
        before, found, more = len(faults), {}, {}
        for name, one in value.items():
            if field := self.fields.get(name):
                found[field.attribute] = _inside(field.kind, one, name, faults)
            elif self.open:
                more[name] = one
            else:
                faults.append(((name,), "is not known here"))
        faults += [((name,), "is missing") for name in self._required if name not in value]
        return self._made(found, more, faults) if len(faults) == before else None

    def _made(self, found: dict[str, Any], more: dict[str, Any], faults: Faults) -> Any:
        try:
            made = self.model(**found)
        except ValueError as error:
            faults.append(((), str(error)))
            return None
        if more:
            made.__dict__["more"] = more
        return made


def _has_names(kind: Kind) -> bool:
    return any(isinstance(one, Part) for one in kind.alternatives)


def _inside(kind: Kind, value: Any, step: Any, faults: Faults) -> Any:
    before = len(faults)
    read = kind.read(value, faults)
    if len(faults) > before:
        faults[before:] = [((step, *path), text) for path, text in faults[before:]]
    return read

"""From a field's annotation to the kind that reads it."""

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import msgspec

from holdfast.core.section.groups import Either, Field, ListOf, MappingOf, Part
from holdfast.core.section.leaves import Anything, Choice, Faults, Kind, Number, Text, Truth, Whole
from holdfast.core.section.limits import limits


@dataclass(frozen=True)
class Before:
    """In an annotation: what people write becomes what the rest of the annotation is about."""

    change: Callable[[Any], Any]


@dataclass(frozen=True)
class After:
    """In an annotation: the last word about a value that holds so far. A ValueError says what is wrong."""

    check: Callable[[Any], Any]


ALONE = msgspec.Meta(extra={"alone": True})
"""In an annotation: `paths: src/**` is `paths: [src/**]`, people write both."""


class Checked(Kind):
    """A kind with all that its annotation says besides."""

    def __init__(self, kind: Kind, said: list[Any]) -> None:
        self.kind = kind
        self._before = [one.change for one in said if isinstance(one, Before)]
        self._limits = [limit for one in said if isinstance(one, msgspec.Meta) for limit in limits(one, kind)]
        self._after = [one.check for one in said if isinstance(one, After)]

    @property
    def alternatives(self) -> tuple[Kind, ...]:
        return self.kind.alternatives

    @property
    def needed(self) -> bool:
        return bool(self._before or self._limits or self._after)

    def read(self, value: Any, faults: Faults) -> Any:
        for change in self._before:
            value = change(value)
        before = len(faults)
        value = self.kind.read(value, faults)
        return self._judged(value, faults) if len(faults) == before else None

    def _judged(self, value: Any, faults: Faults) -> Any:
        for keeps, message in self._limits:
            if not keeps(value):
                faults.append(((), message))
                return None
        try:
            for check in self._after:
                value = check(value)
        except ValueError as error:
            faults.append(((), str(error)))
        return value


def kind_of(annotation: Any) -> Kind:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        checked = Checked(_plain_kind(args[0], alone=bool(marks_of(annotation).get("alone"))), list(args[1:]))
        return checked if checked.needed else checked.kind
    return _plain_kind(annotation)


def _plain_kind(annotation: Any, *, alone: bool = False) -> Kind:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        kinds = tuple(kind_of(one) for one in args if one is not types.NoneType)
        return Either(kinds, optional=types.NoneType in args)
    if origin is Literal:
        return Choice(args)
    if origin in (list, tuple):
        return ListOf(kind_of(args[0]), origin, alone=alone)
    if origin is dict:
        return MappingOf(kind_of(args[0]), kind_of(args[1]))
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return part_of(annotation)
    if annotation not in LEAVES:
        raise TypeError(f"a section cannot have a field of type {annotation}")
    return LEAVES[annotation]


LEAVES: dict[Any, Kind] = {Any: Anything(), str: Text(), int: Whole(), float: Number(), bool: Truth()}


def marks_of(annotation: Any) -> Mapping[str, Any]:
    """What a field's annotation says to whoever deals with it (`Meta(extra=…)`)."""
    if typing.get_origin(annotation) is not Annotated:
        return {}
    found: dict[str, Any] = {}
    for one in typing.get_args(annotation)[1:]:
        found |= (one.extra or {}) if isinstance(one, msgspec.Meta) else {}
    return found


@functools.cache
def part_of(model: type[msgspec.Struct]) -> Part:
    fields = {
        field.encode_name: Field(field.name, kind_of(field.type), marks_of(field.type), field.required)
        for field in msgspec.structs.fields(model)
    }
    return Part(model, fields)

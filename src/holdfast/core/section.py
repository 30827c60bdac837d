"""Defines a settings section: fields, nested parts, limits, and faults of values."""

import functools
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, Union, dataclass_transform

import msgspec

# Readers of single values, as people write them in YAML or in the environment.

ValuePath = tuple[Any, ...]
Fault = tuple[ValuePath, str]
"""The place inside the value, and what is wrong there."""
Faults = list[Fault]

YES, NO = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
TRUTHS = dict.fromkeys(YES, True) | dict.fromkeys(NO, False)


class Kind:
    called = "a value"

    @property
    def alternatives(self) -> "tuple[Kind, ...]":
        return (self,)

    def read(self, value: Any, faults: Faults) -> Any:
        """Parse the value. Faults are added to `faults`; then the result is meaningless."""
        raise NotImplementedError

    def refuse(self, faults: Faults) -> None:
        faults.append(((), f"must be {self.called}"))


class Anything(Kind):
    def read(self, value: Any, _faults: Faults) -> Any:
        return value


class Text(Kind):
    called = "text"

    def read(self, value: Any, faults: Faults) -> Any:
        if isinstance(value, str):
            return value
        quoted = isinstance(value, int | float)  # YAML read `1.0` or `yes` before we could
        faults.append(((), "must be text; put it in quotes" if quoted else "must be text"))
        return None


class Whole(Kind):
    called = "a whole number"

    def read(self, value: Any, faults: Faults) -> Any:
        # `isinstance` would accept True for 1.
        if type(value) is int:
            return value
        number = _parse_number(value)
        if isinstance(number, int) or (number is not None and number.is_integer()):
            return int(number)
        return self.refuse(faults)


class Number(Kind):
    called = "a number"

    def read(self, value: Any, faults: Faults) -> Any:
        number = _parse_number(value)
        try:
            return float(number) if number is not None else self.refuse(faults)
        except OverflowError:
            return self.refuse(faults)


class Truth(Kind):
    called = "true or false"

    def read(self, value: Any, faults: Faults) -> Any:
        if isinstance(value, bool):
            return value
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        if isinstance(value, str) and (truth := TRUTHS.get(value.strip().lower())) is not None:
            return truth
        return self.refuse(faults)


class Choice(Kind):
    def __init__(self, values: tuple[Any, ...]) -> None:
        self._by_text = {str(one): one for one in values}
        self._types = {type(one) for one in values}
        self.called = f"one of {', '.join(text or '(nothing)' for text in self._by_text)}"

    def read(self, value: Any, faults: Faults) -> Any:
        # YAML and JSON may write 1 as 1.0.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if (isinstance(value, str) or type(value) in self._types) and str(value) in self._by_text:
            return self._by_text[str(value)]
        return self.refuse(faults)


def _parse_number(value: Any) -> int | float | None:
    """Parse a number, also from text, as in the environment. Booleans are refused."""
    if value is True or not isinstance(value, int | float | str):
        return None
    # `int` first: "3" is 3 and not 3.0.
    for read in (int, float) if isinstance(value, str) else ():
        try:
            return read(value)
        except ValueError:
            continue
    return None if isinstance(value, str) else value


# Readers of composed values: lists, mappings, named parts and alternatives.


class ListOf(Kind):
    called = "a list"

    def __init__(self, item: Kind, made: Callable[[list[Any]], Any], *, alone: bool) -> None:
        self.item, self.made, self.alone = item, made, alone

    def read(self, value: Any, faults: Faults) -> Any:
        if self.alone and isinstance(value, str | dict):
            return self.made([self.item.read(value, faults)])
        if not isinstance(value, list | tuple):
            return self.refuse(faults)
        return self.made([_read_inner(self.item, one, step, faults) for step, one in enumerate(value)])


class MappingOf(Kind):
    called = "a mapping"

    def __init__(self, name: Kind, item: Kind) -> None:
        self.name, self.item = name, item

    def read(self, value: Any, faults: Faults) -> Any:
        if not isinstance(value, Mapping):
            return self.refuse(faults)
        items = {}
        for name, one in value.items():
            wrong: Faults = []
            self.name.read(name, wrong)
            faults += [((name,), f"its name {text}") for _, text in wrong]
            items[name] = _read_inner(self.item, one, name, faults)
        return items


class Either(Kind):
    def __init__(self, kinds: tuple[Kind, ...], *, optional: bool) -> None:
        self._kinds, self._optional = kinds, optional
        self._alternatives = tuple(one for kind in kinds for one in kind.alternatives)

    @property
    def alternatives(self) -> tuple[Kind, ...]:
        return self._alternatives

    def read(self, value: Any, faults: Faults) -> Any:
        """A mapping is read as a part if one is possible; otherwise the first alternative without faults wins."""
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
    """A struct, by the names that files use."""

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
        before, values, more = len(faults), {}, {}
        for name, one in value.items():
            if field := self.fields.get(name):
                values[field.attribute] = _read_inner(field.kind, one, name, faults)
            elif self.open:
                more[name] = one
            else:
                faults.append(((name,), "is not known here"))
        faults += [((name,), "is missing") for name in self._required if name not in value]
        # Only without faults, so `__post_init__` may rely on every field.
        return self._make_model(values, more, faults) if len(faults) == before else None

    def _make_model(self, values: dict[str, Any], more: dict[str, Any], faults: Faults) -> Any:
        try:
            made = self.model(**values)
        except ValueError as error:
            faults.append(((), str(error)))
            return None
        if more:
            # The struct is frozen; its `__dict__` is not.
            made.__dict__["more"] = more
        return made


def _has_names(kind: Kind) -> bool:
    return any(isinstance(one, Part) for one in kind.alternatives)


def _read_inner(kind: Kind, value: Any, step: Any, faults: Faults) -> Any:
    before = len(faults)
    read = kind.read(value, faults)
    if len(faults) > before:
        # Each level prepends its own step to the path.
        faults[before:] = [((step, *path), text) for path, text in faults[before:]]
    return read


# Limits of an annotation, and the fault for each.

Limit = tuple[Callable[[Any], bool], str]


def value_limits(meta: msgspec.Meta, kind: Kind) -> Iterator[Limit]:
    least, most = meta.ge, meta.le
    if least is not None and most is not None:
        yield (lambda value: least <= value <= most), f"must be from {least} to {most}"
    elif least is not None:
        yield (lambda value: value >= least), f"must be at least {least}"
    elif most is not None:
        yield (lambda value: value <= most), f"must be at most {most}"
    yield from _length_limits(meta.min_length, meta.max_length, "character" if isinstance(kind, Text) else "entry")
    if meta.pattern is not None:
        whole = re.compile(meta.pattern).fullmatch
        yield (lambda value: whole(value) is not None), (meta.extra or {}).get("says", f"must fit {meta.pattern}")


def _length_limits(least: int | None, most: int | None, unit: str) -> Iterator[Limit]:
    if least is not None:
        says = "must not be empty" if least == 1 else f"must have at least {_counted_unit(least, unit)}"
        yield (lambda value: len(value) >= least), says
    if most is not None:
        yield (lambda value: len(value) <= most), f"must have at most {_counted_unit(most, unit)}"


def _counted_unit(number: int, unit: str) -> str:
    many = {"character": "characters", "entry": "entries"}
    return f"{number} {unit if number == 1 else many[unit]}"


# Builds the reader for a field's annotation.


@dataclass(frozen=True)
class Before:
    """In an annotation: converts the raw value before the rest of the annotation applies."""

    change: Callable[[Any], Any]


@dataclass(frozen=True)
class After:
    """In an annotation: the final check of a value. A ValueError is its fault."""

    check: Callable[[Any], Any]


ALONE = msgspec.Meta(extra={"alone": True})
"""In an annotation: accepts a single item for a list (`paths: src/**`)."""


class Checked(Kind):
    """A reader with the limits and checks of its annotation."""

    def __init__(self, kind: Kind, annotations: list[Any]) -> None:
        self.kind = kind
        self._before = [one.change for one in annotations if isinstance(one, Before)]
        self._limits = [
            limit for one in annotations if isinstance(one, msgspec.Meta) for limit in value_limits(one, kind)
        ]
        self._after = [one.check for one in annotations if isinstance(one, After)]

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
        # ALONE is in the annotation of the list, not of its items.
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
    """The marks in a field's annotation (`Meta(extra=…)`)."""
    if typing.get_origin(annotation) is not Annotated:
        return {}
    marks: dict[str, Any] = {}
    for one in typing.get_args(annotation)[1:]:
        marks |= (one.extra or {}) if isinstance(one, msgspec.Meta) else {}
    return marks


@functools.cache
def part_of(model: type[msgspec.Struct]) -> Part:
    fields = {
        # By the name that files use, which may differ from the attribute.
        field.encode_name: Field(field.name, kind_of(field.type), marks_of(field.type), field.required)
        for field in msgspec.structs.fields(model)
    }
    return Part(model, fields)


# A settings section, or part of one: a frozen struct.

MOST_SHOWN = 5


class Unfit(ValueError):
    """All faults of a given value."""

    def __init__(self, faults: list[Fault]) -> None:
        shown = [f"{'.'.join(map(str, path))}: {text}" if path else text for path, text in faults[:MOST_SHOWN]]
        left = len(faults) - len(shown)
        super().__init__("; ".join(shown) + (f"; and {left} more" if left else ""))
        self.faults = faults


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Calling the class checks nothing; `of` does. `__post_init__` checks what must hold between fields (ValueError).

    Limits and descriptions are in `msgspec.Meta`; marks (settings/sections.py) are in its `extra`.
    """

    marks: ClassVar[Mapping[str, Any]] = {}
    notices: ClassVar[tuple[str, ...]] = ()
    """Faults in the files the instance was built from."""
    more: ClassVar[Mapping[str, Any]] = {}
    """Unknown fields, where they are allowed (`forbid_unknown_fields=False`)."""

    @classmethod
    def of(cls, given: Any) -> Self:
        faults: Faults = []
        made: Self = part_of(cls).read(given, faults)
        if faults:
            raise Unfit(faults)
        return made

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    def plain(self, *, none: bool = True) -> dict[str, Any]:
        """As in a file, in JSON types. `none=False` omits fields that are None."""
        names = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)
        values = ((name, getattr(self, attribute)) for name, attribute in names)
        return {name: _plain_value(value, none) for name, value in values if none or value is not None} | dict(
            self.more
        )


def _plain_value(value: Any, none: bool) -> Any:
    if isinstance(value, Section):
        return value.plain(none=none)
    if isinstance(value, Mapping):
        return {name: _plain_value(one, none) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(one, none) for one in value]
    return value

"""Which field of which model a value of a file belongs to, through nested models, lists and dicts."""

import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

from holdfast.settings.node import Node

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Place:
    """No fields = no model knows this name."""

    path: Path
    node: Node
    fields: tuple[FieldInfo, ...]
    models: tuple[type[BaseModel], ...]

    def mark(self, name: str) -> Any:
        """The mark of that name on the field, or on the whole model."""
        for field in self.fields:
            if found := _extra(field.json_schema_extra).get(name):
                return found
        for model in self.models:
            if found := _extra(model.model_config.get("json_schema_extra")).get(name):
                return found
        return None

    @property
    def unknown(self) -> bool:
        return not self.fields and all(m.model_config.get("extra") != "allow" for m in self.models)

    def names(self) -> list[str]:
        return [name for model in self.models for name in model.model_fields]


def places(annotations: Iterable[Any], node: Node, path: Path = ()) -> Iterator[Place]:
    leaves = [leaf for annotation in annotations for leaf in _alternatives(annotation)]
    if isinstance(node.value, dict):
        models = tuple(leaf for leaf in leaves if isinstance(leaf, type) and issubclass(leaf, BaseModel))
        if models:
            yield from _named(models, node, path)
        else:
            yield from _each(_inner(leaves, Mapping), node.value.items(), path)
    elif isinstance(node.value, list):
        yield from _each(_inner(leaves, Collection), enumerate(node.value), path)


def _named(models: tuple[type[BaseModel], ...], node: Node, path: Path) -> Iterator[Place]:
    for name, child in node.value.items():
        fields = tuple(field for model in models if (field := _field(model, name)))
        yield Place((*path, name), child, fields, models)
        yield from places([field.annotation for field in fields], child, (*path, name))


def _each(inner: list[Any], children: Iterable, path: Path) -> Iterator[Place]:
    for step, child in children if inner else ():
        yield from places(inner, child, (*path, step))


def _inner(leaves: list[Any], kind: type) -> list[Any]:
    """What such a mapping or collection is made of, as its annotation says."""
    fitting = [leaf for leaf in leaves if isinstance(o := typing.get_origin(leaf), type) and issubclass(o, kind)]
    return [arg for leaf in fitting for arg in typing.get_args(leaf) if arg is not ...]


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(typing.get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for one in typing.get_args(annotation):
            yield from _alternatives(one)
    elif isinstance(annotation, type) and issubclass(annotation, RootModel):
        yield from _alternatives(annotation.model_fields["root"].annotation)
    else:
        yield annotation


def _field(model: type[BaseModel], name: str) -> FieldInfo | None:
    if field := model.model_fields.get(name):
        return field
    return next((f for f in model.model_fields.values() if name in (f.alias, f.validation_alias)), None)


def _extra(extra: Any) -> Mapping[str, Any]:
    return extra if isinstance(extra, Mapping) else {}

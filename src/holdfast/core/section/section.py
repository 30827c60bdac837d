"""A section of a settings file, or a part of one: a frozen struct that says what may stand in it."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self, dataclass_transform

import msgspec

from holdfast.core.section.annotation import part_of
from holdfast.core.section.leaves import Fault, Faults

MOST_SHOWN = 5


class Unfit(ValueError):
    """All that is wrong with what was given."""

    def __init__(self, faults: list[Fault]) -> None:
        said = [f"{'.'.join(map(str, path))}: {text}" if path else text for path, text in faults[:MOST_SHOWN]]
        left = len(faults) - len(said)
        super().__init__("; ".join(said) + (f"; and {left} more" if left else ""))
        self.faults = faults


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Calling the class checks nothing; `of` does. What must hold between fields, `__post_init__` says (ValueError).

    Limits and descriptions of fields are in `msgspec.Meta`; marks (settings/sections.py) are in its `extra`, or here.
    """

    marks: ClassVar[Mapping[str, Any]] = {}
    notices: ClassVar[tuple[str, ...]] = ()
    """Each instance has its own: what is wrong in the files it was made from."""
    more: ClassVar[Mapping[str, Any]] = {}
    """The same: what was given beyond the fields, where that is allowed (`forbid_unknown_fields=False`)."""

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
        """As a file would say it, in JSON's types. `none=False` leaves out fields that are None."""
        names = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)
        values = ((name, getattr(self, attribute)) for name, attribute in names)
        return {name: _plain(value, none) for name, value in values if none or value is not None} | dict(self.more)


def _plain(value: Any, none: bool) -> Any:
    if isinstance(value, Section):
        return value.plain(none=none)
    if isinstance(value, Mapping):
        return {name: _plain(one, none) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, none) for one in value]
    return value

"""A feature that does what commands do, as badly as one can: it puts whatever it is told on one line, and cuts it."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.core.authority import ANYONE
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult, Feature
from holdfast.core.ids import delivery_key

LONGEST = 4000


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (key, *texts_in(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


def join_lines(call: Call) -> CommandResult:
    words = " ".join(" ".join(texts_in(call.args)).split())[:LONGEST]
    event = Event(key=delivery_key(call.now), kind="joining.joined", at=call.now, data={"words": words})
    return CommandResult((event,), answer=words)


FEATURE = Feature(
    name="joining",
    kinds={"joining.joined": "lines were joined"},
    commands={"join": join_lines},
    authority={"join": ANYONE},
)

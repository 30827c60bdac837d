"""Events that jobs of this room report with."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc


def told(doc: Doc, kind: str, now: int, key: str, **data: Any) -> Event:
    """The same thing found twice is one event: the key says what was found, not when."""
    where = {"session": doc["session"], "project": doc["project"]}
    return Event(key=f"{kind}/{doc['id']}/{key}", kind=kind, at=now, data={"uat": doc["id"], **data}, **where)

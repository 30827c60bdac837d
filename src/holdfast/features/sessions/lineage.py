"""Where a session comes from: a fork or a clear has a parent. Parents are older than children, so no cycle can be."""

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import MOST_CHILDREN


def linked(doc: Doc, event: Event) -> None:
    """In the child. The first link stays."""
    parent, older = event.get("parent", ""), event.get("parent_seq", 0) < doc["first_seq"]
    if parent and parent != doc["id"] and older and not doc["parent"]:
        doc["parent"], doc["parent_reason"] = parent, event.get("reason", "")


def branched(doc: Doc, event: Event) -> None:
    """In the parent."""
    child = event.get("child", "")
    if child and child != doc["id"] and child not in doc["children"]:
        doc["children"] = [*doc["children"], child][-MOST_CHILDREN:]
        doc["children_seen"] += 1

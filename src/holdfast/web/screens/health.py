"""Health: how Holdfast itself is."""

from typing import Any

from holdfast.web.condition import condition
from holdfast.web.screen import Screen, Visit


def page(visit: Visit) -> dict[str, Any]:
    return condition(visit.client)


SCREEN = Screen(
    name="health", title="Health", path="/health", page=page, key="h", live="daemon. spool. job. store. state."
)

"""Health: how Holdfast itself is."""

from typing import Any

from holdfast.web.condition import collect_health
from holdfast.web.screen import Screen, Visit


def health_page(visit: Visit) -> dict[str, Any]:
    return collect_health(visit.client)


SCREEN = Screen(
    name="health", title="Health", path="/health", page=health_page, key="h", live="daemon. spool. job. store. state."
)

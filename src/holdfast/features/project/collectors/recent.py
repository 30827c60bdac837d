"""Which projects are worth a look by schedule: those something happened in lately."""

from holdfast.core.ports import Reader, StateQuery
from holdfast.features.project.model import DAY, PROJECT

LATELY = 7 * DAY
MOST = 50


def recent_projects(reader: Reader, now: int) -> list[str]:
    rows = reader.states(StateQuery(kind=PROJECT, limit=MOST))
    return [doc["project"] for _, doc in rows if now - doc["at"] < LATELY]

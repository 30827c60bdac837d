"""Events that jobs of UAT report with."""

from typing import Any

from holdfast.core.event import Event
from holdfast.features.uat.state import Run


def told(doc: Run, kind: str, now: int, key: str, **data: Any) -> Event:
    """The same thing found twice is one event: the key says what was found, not when."""
    return Event(
        key=f"{kind}/{doc.id}/{key}", kind=kind, at=now, session=doc.session, project=doc.project,
        data={"uat": doc.id, **data},
    )  # fmt: skip

"""The token budget: what this project's sessions used in the present period, and what one of them usually costs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.core.ports import Doc
from holdfast.features.project.settings import Tokens


def budget(doing: Doc | None, settings: Tokens, now: int) -> dict[str, Any]:
    if not doing:
        return {"used": 0, "limit": settings.limit, "per_session": 0}
    first = _first_day(settings.period, now)
    ended = doing["ended"]
    return {
        "used": sum(spent for day, spent in doing["spent"].items() if day >= first),
        "limit": settings.limit,
        "per_session": round(sum(ended) / len(ended), 1) if ended else 0,
    }


def _first_day(period: str, now: int) -> str:
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    if period == "week":
        return (today - timedelta(days=today.weekday())).isoformat()
    return today.replace(day=1).isoformat() if period == "month" else today.isoformat()

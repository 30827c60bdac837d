"""A range of a session's rows, for the list that scrolls. The same rows as on the page."""

from typing import Any

from holdfast.web.screen import Screen, Visit
from holdfast.web.screens.session import asked, row_words


def page(visit: Visit) -> dict[str, Any]:
    limit = visit.number("limit", 200)
    told = visit.view("sessions.rows", id=visit.query.get("id", ""), limit=limit, **asked(visit))
    return {**told, **row_words(visit)}


SCREEN = Screen(name="rows", title="Rows", path="/rows", page=page, live="*")

"""The page on which one question of an agent is answered."""

from typing import Any

from holdfast.core.attention import ASKS
from holdfast.core.errors import CommandRefused
from holdfast.doors.web.screen import Screen, Visit


def answer_page(visit: Visit) -> dict[str, Any]:
    try:
        need = visit.view("attention.show", id=visit.path["id"], first=True)
    except CommandRefused:
        # An open page is looked at again once it is answered.
        return {"need": None}
    return {"need": {**need, "asks": need["kind"] in ASKS}}


ANSWER_SCREEN = Screen(
    name="answer", title="Answer", path="/answer/{id:path}", page=answer_page,
    live="attention. tool. permission. turn. prompt. session.",
)  # fmt: skip

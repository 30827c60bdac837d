"""The read side, address by address."""

from typing import TYPE_CHECKING

from holdfast.web.api import finding, log, projects, sessions
from holdfast.web.api.answers import ERRORS, Answer
from holdfast.web.api.asked import Views
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import House


def register(routes: Routes, house: "House", prefix: str) -> None:
    routes.web.state.views = Views(house.asking)
    for part in (sessions, log, projects, finding):
        tag = part.__name__.rpartition(".")[2]
        for path, handler in part.ADDRESSES.items():
            how = {"response_model": Answer, "responses": ERRORS, "tags": [tag]}
            routes.add("GET", f"{prefix}/{path}", Permission.READ, handler, **how)

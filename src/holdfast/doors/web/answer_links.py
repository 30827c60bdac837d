"""The routes behind a link that answers one question: the link is the key, and works once."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.doors.web.api_answers import json_answer
from holdfast.doors.web.pages import Pages
from holdfast.doors.web.peers import refuse_agents
from holdfast.doors.web.permissions import Permission, Routes

if TYPE_CHECKING:
    from holdfast.doors.web.server import WebContext

FILES = ("tokens.css", "parts.css", "answer.css", "answer.js")
NOT_KEPT = {"cache-control": "no-store"}
Link = Annotated[str, Path(max_length=200)]


class LinkedAnswer(BaseModel):
    """The answer to a question; `answer-0` and so on are the answers of a question with choices."""

    model_config = ConfigDict(extra="allow")

    verdict: str = Field("", max_length=20)
    reason: str = Field("", max_length=2000)
    code: str = Field("", max_length=100)

    def arguments(self, link: str) -> dict[str, Any]:
        more = {
            name: str(value)[:2000] for name, value in (self.model_extra or {}).items() if name.startswith("answer-")
        }
        return {"link": link, "verdict": self.verdict, "reason": self.reason, "code": self.code, **more}


def register_answer_links(routes: Routes, web_context: "WebContext", pages: Pages) -> None:
    client = web_context.client

    def rendered(link: str, code: str = "") -> HTMLResponse:
        shown: dict[str, Any] = {"need": None, "wants_code": False, "problem": ""}
        try:
            shown["need"] = client.daemon("view", name="attention.linked", args={"link": link, "code": code})
        except HoldfastError as error:
            shown |= {"wants_code": "your code" in error.message and not code, "problem": error.message}
        return HTMLResponse(pages.render("answer_link.html", shown), 200 if shown["need"] else 403, NOT_KEPT)

    async def show(link: Link) -> HTMLResponse:
        return await client.run(lambda: rendered(link))

    async def show_with_code(link: Link, given: LinkedAnswer) -> HTMLResponse:
        return await client.run(lambda: rendered(link, given.code))

    async def answer(link: Link, given: LinkedAnswer, request: Request) -> Any:
        peer = request.client

        def run() -> Any:
            refuse_agents(client, (peer.host, peer.port) if peer else None, web_context.port)
            return client.daemon("command", name="attention.answer_link", args=given.arguments(link))

        return json_answer(await client.run(run))

    async def file(name: str) -> Response:
        if name not in FILES:
            raise CommandRefused("there is no such file")
        static = web_context.static
        return Response(static.files[name], media_type=static.type_of(name), headers=NOT_KEPT)

    routes.add("GET", "/a/{link}", Permission.ANSWER, show)
    routes.add("POST", "/a/{link}/show", Permission.ANSWER, show_with_code)
    routes.add("POST", "/a/{link}", Permission.ANSWER, answer)
    routes.add("GET", "/a-static/{name}", Permission.ANSWER, file)

"""What a page may do: commands of the features, each named here. Only the daemon carries them out."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from holdfast.core.errors import CommandRefused
from holdfast.web.api.requests import ERRORS, Answer, json_answer
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import WebContext

ALLOWED = frozenset(
    (
        "sessions.close", "sessions.reopen", "log.note",
        "gates.satisfy", "gates.approve", "gates.accept", "gates.pause", "gates.resume", "gates.clear",
        "memory.add", "memory.pin", "memory.promote", "memory.keep", "memory.drop", "memory.forget",
        "project.look", "project.add_task", "project.finish_task", "project.dismiss_task",
    )
)  # fmt: skip
"""Nothing that imports or runs a program of the caller's choice; `memory.forget` erases, and its page asks first."""


class Order(BaseModel):
    """A command: its arguments, and for which project and session."""

    model_config = ConfigDict(extra="forbid")

    args: dict[str, Any] = Field(default_factory=dict)
    project: str = Field("", max_length=5000)
    session: str = Field("", max_length=600)


def register(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def command(name: Annotated[str, Path(max_length=100)], order: Order) -> Any:
        """Carry out one command of a feature. It is an event in the log, like everything else."""
        if name not in ALLOWED:
            raise CommandRefused(f"{name} cannot be done from a page", fix="Use the command line.")
        request: dict[str, Any] = order.model_dump() | {"name": name}
        return json_answer(await web_context.client.run(lambda: web_context.client.daemon("command", **request)))

    routes.add(
        "POST", f"{prefix}/commands/{{name}}", Permission.WRITE, command,
        response_model=Answer, responses=ERRORS, tags=["commands"],
    )  # fmt: skip

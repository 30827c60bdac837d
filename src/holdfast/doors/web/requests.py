"""The parameters of API requests."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi.responses import Response

from holdfast.core.errors import CommandRefused
from holdfast.doors.web.api_answers import decode_cursor, json_answer
from holdfast.doors.web.view_client import ViewClient

# JavaScript holds integers up to this one exactly.
LARGEST = (1 << 53) - 1

Limit = Annotated[int, Query(ge=1, le=500, description="So many at most.")]
Hundred = Annotated[int, Query(ge=1, le=100, description="So many at most.")]
Cursor = Annotated[str, Query(max_length=2000, description="`next` of the page before.")]
Project = Annotated[str, Query(max_length=5000, description="The project's folder.")]
Session = Annotated[str, Query(max_length=600, description="A session's id.")]
Word = Annotated[str, Query(max_length=200)]
Words = Annotated[str, Query(max_length=2000)]
Moment = Annotated[str, Query(max_length=100, description="A time, or the number of an event.")]
Time = Annotated[int, Query(ge=0, le=LARGEST, description="Milliseconds since 1970.")]
Number = Annotated[int, Query(ge=0, le=LARGEST, description="The number of an event.")]
Id = Annotated[str, Path(max_length=600)]
Seq = Annotated[int, Path(ge=1, le=LARGEST)]


class Views:
    """Asks one view and returns its answer, with the page's cursor extracted."""

    def __init__(self, client: ViewClient) -> None:
        self._client = client

    async def __call__(self, name: str, args: Mapping[str, Any], project: str = "", session: str = "") -> Response:
        # Omitted, so that the view's own default applies.
        arguments = {key: value for key, value in args.items() if value not in ("", None, 0, False)}
        answer = await self._client.run(lambda: self._ask_view(name, arguments, project, session))
        return json_answer(answer, answer.get("next") if isinstance(answer, dict) else None)

    def _ask_view(self, name: str, args: Mapping[str, Any], project: str, session: str) -> Any:
        try:
            return self._client.view(name, args, project=project, session=session)
        # An unreadable argument is no fault of the server.
        except (ValueError, OverflowError) as error:
            raise CommandRefused(f"{name} cannot read that: {str(error)[:200]}") from None


def _views_of_request(request: Request) -> Views:
    value: Views = request.app.state.views
    return value


Asked = Annotated[Views, Depends(_views_of_request)]


def parse_pair_cursor(cursor: str) -> list[Any] | None:
    """For lists by time: [milliseconds, key]."""
    if not cursor:
        return None
    position = decode_cursor(cursor)
    if (
        isinstance(position, list)
        and len(position) == 2
        and isinstance(position[0], int)
        and isinstance(position[1], str)
    ):
        return position
    raise _not_ours()


def parse_number_cursor(cursor: str) -> int:
    position = decode_cursor(cursor) if cursor else 0
    if isinstance(position, int) and 0 <= position <= LARGEST:
        return position
    raise _not_ours()


def parse_page_cursor(cursor: str) -> dict[str, int]:
    """For the log: {"before": seq} or {"after": seq}."""
    position = decode_cursor(cursor)
    if isinstance(position, dict) and len(position) == 1 and {*position} <= {"before", "after"}:
        (value,) = position.values()
        if isinstance(value, int) and 0 <= value <= LARGEST:
            return position
    raise _not_ours()


def _not_ours() -> CommandRefused:
    return CommandRefused("this cursor is not valid", fix="Use `next` of the page before.")

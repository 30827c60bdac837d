"""A statement or summary on its way to becoming a memory."""

import msgspec

from holdfast.features.memory.requests import Request
from holdfast.features.memory.state.documents import USER, one_line
from holdfast.features.memory.state.words import files_in

IMPORTANCE = {"rule": 8, "preference": 8, "fact": 7}


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """`text` may be injected; `detail` quotes tools and is only shown on request."""

    type: str
    text: str
    origin: str
    importance: int
    evidence: tuple[int, ...]
    files: tuple[str, ...] = ()
    detail: str = ""
    uncertain: bool = False
    """A person decides first; until then it is injected nowhere."""


def said_by_user(request: Request, seq: int, *, detail: str = "") -> Candidate:
    """`detail`: why a person has to confirm it, if one has to."""
    return Candidate(
        type=request.type, text=one_line(request.text), origin=USER, importance=IMPORTANCE[request.type],
        evidence=(seq,), files=tuple(files_in(request.text)[:5]), detail=detail, uncertain=bool(detail),
    )  # fmt: skip

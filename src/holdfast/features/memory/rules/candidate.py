"""What a rule found, before it is known whether it is new."""

import msgspec


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is what may be told to an agent; `detail` quotes tools and is only ever shown to those who ask."""

    type: str
    text: str
    origin: str
    importance: int
    evidence: tuple[int, ...]
    files: tuple[str, ...] = ()
    detail: str = ""
    uncertain: bool = False
    """A person decides first; until then it is told to nobody."""

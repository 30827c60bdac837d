"""What a hook client hands in, before anybody has understood it."""

from collections.abc import Mapping

import msgspec


class Delivery(msgspec.Struct, kw_only=True, frozen=True):
    key: str
    agent: str
    event: str
    mode: str = "tell"
    at: int = 0
    pid: int = 0
    start: int = 0
    cwd: str = ""
    client: str = ""
    via: str = ""
    state: str = ""
    env: Mapping[str, str] = {}
    body: bytes = b""
    cleaned: bool = False
    """Whether the body is cut and redacted already. Then `whole` is the length it had, and `digest` its hash if cut."""
    ancestors: tuple[int, ...] = ()
    """The processes above the client, nearest first, as the kernel told when it was connected; empty: not known."""
    whole: int = 0
    digest: str = ""
    confirms: bool = False
    """Whether the client says so when it has written an answer out."""
    told: str = ""
    """What the client told the agent without us: `none`, or `deny` (a requirement with `when_unsure: deny`)."""
    missed: bool = False
    """An answer was wanted and could not be given: it came by the spool, or the store took nothing."""

    def unanswered(self) -> "Delivery":
        """The same, now that whoever asked has gone without an answer."""
        return msgspec.structs.replace(self, mode="tell", missed=self.missed or self.mode == "ask")

    def unawaited(self) -> "Delivery":
        """The same, now that nobody waits for an answer any more."""
        return msgspec.structs.replace(self, mode="tell")

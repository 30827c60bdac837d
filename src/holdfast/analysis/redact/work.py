"""Bounds how much of a payload is judged while an agent waits, in machine-independent units."""

from holdfast.analysis.redact import decoded_forms
from holdfast.analysis.redact.anchors import Hits
from holdfast.analysis.redact.document import Document
from holdfast.analysis.redact.spans import UNJUDGED, Span

# A unit is a short check of a token: about 2.5 µs on the test machine.
WORK_LEAST, WORK_OF_LOOK = 1030, 280
"""For any text, and the part of it for a first look at a long one."""
WORK_FREE, WORK_PER = 1 << 20, 256
"""In bytes: beyond this size there is more, one per so many bytes."""
_PER_FOUND, _PER_UNPACKED, _PER_LOOKED = 80, 800, 500
"""How many bytes of a secret, bytes of another spelling, and native comparisons cost one unit."""
_OF_FOUND, _OF_VIEW, _OF_UNPACKED = 5, 10, 24


def work_of_found(spans: list[Span]) -> int:
    """A secret costs more than a non-secret: its end and other positions are searched, and a rule may find hundreds."""
    return sum(_OF_FOUND + (end - start) // _PER_FOUND for start, end, kind in spans if kind != UNJUDGED)


def work_of_view(content: bytes) -> int:
    return _OF_VIEW + len(content) // _PER_UNPACKED


def work_of_unpacked(content: bytes) -> int:
    """A few bytes may unpack to very many."""
    return _OF_UNPACKED + len(content) // _PER_UNPACKED


def work_of_search(got: Hits) -> int:
    """A text full of names that the native search rejects costs as much as one whose names are judged."""
    return got.looked // _PER_LOOKED


class Work:
    """How much of one text may still be judged. Beyond that, text is removed unread: it must neither delay the agent
    nor be stored unread."""

    __slots__ = ("document", "for_search", "is_look", "known", "left", "searched", "spellings", "spent")

    def __init__(self, size: int, least: int = WORK_LEAST, is_look: bool = False, look: "Work | None" = None) -> None:
        """`is_look`: the first secret ends the search. `look`: the first look at this text, whose results are reused."""
        self.is_look = is_look
        self.left = least + max(0, size - WORK_FREE) // WORK_PER
        self.for_search = WORK_LEAST - WORK_OF_LOOK
        """The share for searches: a little is judged in any case, because a costly text may be ordinary."""
        if look:
            self.left -= look.spent + self.for_search - look.for_search
            self.for_search = look.for_search
        self.spent: int = 0
        self.known: dict[tuple[int, int, int, bytes], list[Span]] = look.known if look else {}
        """Findings by surroundings: a text is read again after something was removed from it."""
        self.document: Document | None = look.document if look else None
        """The decoded document from the first look."""
        self.spellings: decoded_forms.Spellings = look.spellings if look else decoded_forms.Spellings()
        self.searched: dict[int, tuple[bytes, Hits]] = look.searched if look else {}
        """The candidates of each text that was looked at, by identity; the text is kept, so that no other has it."""

    def begin_round(self) -> bool:
        """A text is read again for what a removal joined, unless it had too many candidates."""
        has_next = self.left >= 0
        self.left = max(self.left, WORK_OF_LOOK)
        return has_next

    def spend(self, units: int = 1) -> bool:
        """Return whether enough is left."""
        self.left -= units
        self.spent += units if self.left >= 0 else 0
        return self.left >= 0

    def give_back(self, units: int) -> None:
        """Less was read than budgeted."""
        self.left += units
        self.spent -= units

    def count_search(self, got: Hits) -> None:
        """Charge a search. A look only remembers it for the reading."""
        units = min(work_of_search(got), self.for_search)
        self.for_search -= units
        if not self.is_look:
            self.left -= units
            self.spent += units

"""How much of one payload is judged while an agent waits. It is counted in units, so it is the same on every machine."""

from holdfast.analysis.redact import decoded_forms
from holdfast.analysis.redact.anchors import Hits
from holdfast.analysis.redact.document import Document
from holdfast.analysis.redact.spans import UNJUDGED, Span

# A unit is what a short look at a token costs: about 2.5 µs where it was measured.
WORK_LEAST, WORK_OF_LOOK = 1030, 280
"""For any text, and how much of that a first look at a long one may take."""
WORK_FREE, WORK_PER = 1 << 20, 256
"""In bytes: from which size on there is more, and for how many bytes one more."""
_PER_FOUND, _PER_UNPACKED, _PER_LOOKED = 80, 800, 500
"""How many bytes of a secret, bytes of another spelling, and comparisons of the native search cost one more."""
_OF_FOUND, _OF_VIEW, _OF_UNPACKED = 5, 10, 24


def work_of_found(spans: list[Span]) -> int:
    """Each secret costs more than what is none: its end and its other places are looked for, and a rule may find hundreds."""
    return sum(_OF_FOUND + (end - start) // _PER_FOUND for start, end, kind in spans if kind != UNJUDGED)


def work_of_view(content: bytes) -> int:
    return _OF_VIEW + len(content) // _PER_UNPACKED


def work_of_unpacked(content: bytes) -> int:
    """A few bytes of a text may unpack to very many."""
    return _OF_UNPACKED + len(content) // _PER_UNPACKED


def work_of_search(got: Hits) -> int:
    """A text full of names that the native search refuses costs as much as one whose names are judged."""
    return got.looked // _PER_LOOKED


class Work:
    """How much of one text is still judged. Beyond that a text is not read but removed: what costs more
    than an agent waits for must neither hold it up nor be stored unread."""

    __slots__ = ("document", "for_search", "is_look", "known", "left", "searched", "spellings", "spent")

    def __init__(self, size: int, least: int = WORK_LEAST, is_look: bool = False, look: "Work | None" = None) -> None:
        """`is_look`: only whether there is a secret is asked, so the first one ends it. `look`: the first look at this
        text, whose results are used again."""
        self.is_look = is_look
        self.left = least + max(0, size - WORK_FREE) // WORK_PER
        self.for_search = WORK_LEAST - WORK_OF_LOOK
        """How much of it searches may take: a little is judged in any case, because a text may be costly to search and
        ordinary."""
        if look:
            self.left -= look.spent + self.for_search - look.for_search
            self.for_search = look.for_search
        self.spent: int = 0
        self.known: dict[tuple[int, int, int, bytes], list[Span]] = look.known if look else {}
        """What was found in which surroundings: a text is read again after something was removed from it."""
        self.document: Document | None = look.document if look else None
        """The document that was looked at, decoded."""
        self.spellings: decoded_forms.Spellings = look.spellings if look else decoded_forms.Spellings()
        self.searched: dict[int, tuple[bytes, Hits]] = look.searched if look else {}
        """The candidates of each text that was looked at, by its identity; the text is kept, so that no other has it."""

    def begin_round(self) -> bool:
        """A text that was read once is read again for what the removal of something brought together; one that had too
        many candidates is not."""
        has_next = self.left >= 0
        self.left = max(self.left, WORK_OF_LOOK)
        return has_next

    def spend(self, units: int = 1) -> bool:
        """Whether there is enough left."""
        self.left -= units
        self.spent += units if self.left >= 0 else 0
        return self.left >= 0

    def give_back(self, units: int) -> None:
        """Less was read than might have been."""
        self.left += units
        self.spent -= units

    def count_search(self, got: Hits) -> None:
        """What a search took. A look only remembers it for the reading."""
        units = min(work_of_search(got), self.for_search)
        self.for_search -= units
        if not self.is_look:
            self.left -= units
            self.spent += units

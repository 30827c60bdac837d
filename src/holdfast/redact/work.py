"""How much of one payload is judged while an agent waits. It is counted in candidates, so it is the same on every machine."""

from holdfast.redact import views
from holdfast.redact.anchors import Hits
from holdfast.redact.document import Document
from holdfast.redact.judge import Span

WORK_LEAST, WORK_OF_LOOK = 144, 48
"""For any text, and how much of that a first look at a long one may take."""
WORK_FREE, WORK_PER = 1 << 20, 2000
"""In bytes: from which size on there is more, and for how many bytes one more."""
WORK_OF_NAME, WORK_OF_VIEW, WORK_OF_TABLE, WORK_OF_DOCUMENT = 2, 4, 4, 16
"""A name costs more than a form, because what follows it is read in many notations."""
_PER_FOUND, _PER_UNPACKED = 512, 2048
"""In bytes: how much of a secret, and of what was unpacked, costs one more."""


def work_of_found(spans: list[Span]) -> int:
    """Each secret costs more than what is none: its end and its other places are looked for, and a rule may find hundreds."""
    return sum(1 + (end - start) // _PER_FOUND for start, end, _ in spans)


def work_of_view(content: bytes) -> int:
    """A few bytes of a text may unpack to very many."""
    return WORK_OF_VIEW + len(content) // _PER_UNPACKED


class Work:
    """How many candidates of one text are still judged. Beyond that a text is not read but removed: what costs more
    than an agent waits for must neither hold it up nor be stored unread."""

    __slots__ = ("document", "is_look", "known", "left", "searched", "spellings", "spent")

    def __init__(self, size: int, least: int = WORK_LEAST, is_look: bool = False, look: "Work | None" = None) -> None:
        """`is_look`: only whether there is a secret is asked, so the first one ends it. `look`: the first look at this
        text, whose results are used again."""
        self.is_look = is_look
        self.left = least + max(0, size - WORK_FREE) // WORK_PER - (look.spent if look else 0)
        self.spent: int = 0
        self.known: dict[tuple[int, int, int, bytes], list[Span]] = look.known if look else {}
        """What was found in which surroundings: a text is read again after something was removed from it."""
        self.document: Document | None = look.document if look else None
        """The document that was looked at, decoded."""
        self.spellings: views.Spellings = look.spellings if look else views.Spellings()
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

"""The job that keeps the index's file near the end of the log, so that the first search after a start is quick."""

import time
from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.feature import File, JobCall
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.index import file

KEEP, EVERY_S = "memory.index", 600.0
WORTH = 10_000
"""So many events behind: a search reads that much of the log in a blink."""
LONGEST_S, PAUSE_S = 30.0, 0.01


def keep(call: JobCall) -> Iterable[Event]:
    place = file.place(call.state_dir)
    reached = file.reached(place)
    if call.reader.head() - reached < WORTH or not _any_text(call.reader, reached):
        return ()
    from holdfast.features.memory.index.catalogue import Catalogue

    found = Catalogue(place)  # Not the one that answers: where nobody searches, none stays in memory.
    until = time.monotonic() + LONGEST_S

    def others_first() -> bool:
        """A hook that comes meanwhile is answered by another thread of this very process."""
        time.sleep(PAUSE_S)
        return time.monotonic() < until and not call.cancelled()

    found.catch_up(call.reader, others_first)
    seq, whole = found.dump()
    call.put(File(place, whole))
    call.put(File(file.mark(place), file.marked(seq)))
    # What was forgotten while this was written must not lie in it: one more look at the log finds out.
    found.catch_up(call.reader, lambda: False)
    return ()


def _any_text(reader: Reader, after: int) -> bool:
    """Before numpy is loaded for nothing."""
    return bool(reader.events(EventQuery(after=after, kinds=file.TEXTS, limit=1)))

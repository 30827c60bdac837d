"""Background work of memory: finding named files, keeping the index file."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.core.event import Event, own_event
from holdfast.core.feature import File, JobCall
from holdfast.core.kinds.memory_events import MemoryFilesFound
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.index.index_file import TEXTS, index_path, indexed_until, mark_content, mark_path
from holdfast.features.memory.state.documents import OBSERVATION, Observation

WORTH = 10_000
"""A search reads this many events instantly."""
# Seconds of one indexing job, and the pause after each page of the log.
LONGEST_S, PAUSE_S = 30.0, 0.01
LIST_SECONDS = 10


# ── files that a memory names ────────────────────────────────────────────────────────────────────────────────────────


def find_files(call: JobCall) -> Iterable[Event]:
    """Find which named files exist; once all are gone, the memory concerns something that no longer exists."""
    doc = OBSERVATION.load(call.reader, str(call.job.payload["id"]))
    if doc is None or not doc.files or not doc.project:
        return ()
    existing = list(_existing_paths(call, doc))
    if not existing or existing == doc.paths:
        return ()
    payload = MemoryFilesFound(id=doc.id, repo=doc.repo, paths=existing)
    return [own_event(payload, call.now, session=doc.session, project=doc.project)]


def _existing_paths(call: JobCall, doc: Observation) -> Iterator[str]:
    root = Path(doc.project)
    unknown = []
    for name in doc.files:
        if (root / name).exists():
            yield str(root / name)
        else:
            # Named without its folder, or relative to another one: git's list decides.
            unknown.append(name.lstrip("./"))
    if unknown and doc.repo:
        listed = _tracked_files(call, doc.project)
        for name in unknown:
            yield from (str(root / path) for path in listed if path == name or path.endswith(f"/{name}"))


def _tracked_files(call: JobCall, project: str) -> list[str]:
    ran = call.run(["git", "ls-files", "-z"], cwd=project, timeout=LIST_SECONDS)
    # File names are bytes; invalid UTF-8 must survive.
    return ran.out.decode("utf-8", "surrogateescape").split("\0") if ran.code == 0 else []


# ── the index's file, so that the first search after a start is quick ────────────────────────────────────────────────


def keep_index(call: JobCall) -> Iterable[Event]:
    path = index_path(call.state_dir)
    reached = indexed_until(path)
    # The mark file is read first: both checks are cheap, loading numpy is not.
    if call.reader.head() - reached < WORTH or not _any_text(call.reader, reached):
        return ()
    from holdfast.features.memory.index.catalogue import Catalogue

    catalogue = Catalogue(path)  # Not the one that answers: where nobody searches, none stays in memory.
    until = time.monotonic() + LONGEST_S

    def others_first() -> bool:
        """Yield to hooks, which another thread of this process answers."""
        time.sleep(PAUSE_S)
        return time.monotonic() < until and not call.cancelled()

    catalogue.catch_up(call.reader, others_first)
    seq, whole = catalogue.dump()
    call.put(File(path, whole))
    # The mark after the file: `indexed_until` must not name a missing file.
    call.put(File(mark_path(path), mark_content(seq)))
    # Text forgotten meanwhile must not be in the file; another look at the log finds out.
    catalogue.catch_up(call.reader, lambda: False)
    return ()


def _any_text(reader: Reader, after: int) -> bool:
    """Avoids loading numpy for nothing."""
    return bool(reader.events(EventQuery(after=after, kinds=TEXTS, limit=1)))

"""Counts uncommitted lines that a change took away for good: they are neither in the file now nor in HEAD."""

from collections import Counter
from collections.abc import Sequence

from holdfast.core.kinds.workspace_events import FileChange
from holdfast.features.workspace.content_store import UNKEPT, ContentStore, path_of
from holdfast.features.workspace.git_files import Place, Tracked, head_objects, object_id, read_blob
from holdfast.features.workspace.watched_root import GIT

MOST_FILES = 100
LARGEST = 1 << 20


def describe_losses(lines: int, files: int) -> str:
    return f"{lines:,} uncommitted line{'' if lines == 1 else 's'} in {files} file{'' if files == 1 else 's'}"


def note_losses(store: ContentStore, place: Place, files: Sequence[FileChange], session: str) -> None:
    """Fill in `lost` where a file with uncommitted content vanished or became as in HEAD."""
    moved = {one.after for one in files}
    discarded = [one for one in files if _had_own_content(one) and one.before not in moved][:MOST_FILES]
    if not discarded:
        return
    head = head_objects(place, [path_of(one.path) for one in discarded])
    for one in discarded:
        in_head = head.get(path_of(one.path))
        # What a session wrote itself and removes again, such as a scratch file, is no loss.
        if in_head is None and one.owner == session and session:
            continue
        one.lost = _lost_lines(store, place, one, in_head)


def _had_own_content(change: FileChange) -> bool:
    return bool(change.before) and change.before != UNKEPT and not change.before.startswith(GIT)


def _lost_lines(store: ContentStore, place: Place, change: FileChange, in_head: Tracked | None) -> int:
    before, after = store.get(change.before), b""
    if before is None or len(before) > LARGEST:
        return 0
    if change.after.startswith(GIT):
        after = read_blob(place.shared, change.after[len(GIT) :]) or b""
    elif change.after and change.after != UNKEPT:
        after = store.get(change.after) or b""
    if change.after and (in_head is None or object_id(after, in_head.oid) != in_head.oid):
        return 0  # An edit: what it replaced is not lost by accident.
    if not change.after and in_head is not None:
        after = read_blob(place.shared, in_head.oid) or b""
    return sum((Counter(before.splitlines()) - Counter(after.splitlines())).values())

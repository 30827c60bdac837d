"""Brings files back to earlier versions, all of them or none, and finishes after a crash what it began."""

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.ids import delivery_key
from holdfast.core.times import now_ms
from holdfast.features.workspace.content_store import FOLDER, ContentStore, Seen, path_of, text_of
from holdfast.features.workspace.git_files import many_blobs
from holdfast.features.workspace.recorder import CallInfo, Recorder
from holdfast.features.workspace.timeline import Target
from holdfast.features.workspace.watched_root import GIT, STAGING, WatchedRoot, content_of
from holdfast.paths import write_atomically

INTENT_SUFFIX = ".undo"


class Intent(msgspec.Struct, frozen=True):
    """What is being restored; on disk until it is done."""

    id: str
    root: str
    repo: str
    targets: tuple[Target, ...]


def restore(
    recorder: Recorder,
    root: WatchedRoot,
    targets: Sequence[Target],
    expected: Sequence[Seen],
    state_dir: Path,
    session: str,
) -> str:
    """Return the id of the undo. `expected`: how the files look now, as it was shown to whoever asked for it."""
    intent = Intent(delivery_key()[:16], text_of(root.root), text_of(root.place.shared), tuple(targets))
    path = state_dir / FOLDER / f"{intent.id}{INTENT_SUFFIX}"
    info = CallInfo(intent.id, (root.place.shared,), now_ms(), session=session, call=intent.id, by="undo", known=True)
    with recorder.acting(root, info):
        staged = _stage(recorder.store, intent)
        try:
            # Everything that was written meanwhile is kept by now; it must also be what was shown.
            recorder.drain(root)
            if [_essence(root.state_of(path_of(one.path))) for one in targets] != [_essence(one) for one in expected]:
                raise CommandRefused("files changed meanwhile", fix="Look again, and repeat it.")
            _check_way(intent)
            write_atomically(path, msgspec.json.encode(intent))
            _put_in_place(intent, staged)
            # Named, in case that nothing watches a worktree that was gone.
            root.pending.update(dict.fromkeys(path_of(one.path) for one in targets))
            path.unlink()
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return intent.id


def _essence(seen: Seen) -> tuple[str, int]:
    return seen.id, seen.mode


def finish_open(store: ContentStore, state_dir: Path) -> int:
    """Finish what a daemon that died had begun: every step can be repeated."""
    done = 0
    for path in sorted((state_dir / FOLDER).glob(f"*{INTENT_SUFFIX}")):
        with contextlib.suppress(OSError, msgspec.MsgspecError, CommandRefused):
            intent = msgspec.json.decode(path.read_bytes(), type=Intent)
            shutil.rmtree(_staging_of(intent), ignore_errors=True)
            staged = _stage(store, intent)
            try:
                _put_in_place(intent, staged)
            finally:
                shutil.rmtree(staged, ignore_errors=True)
            done += 1
        path.unlink(missing_ok=True)
    return done


def _staging_of(intent: Intent) -> str:
    return os.path.join(path_of(intent.root), STAGING + intent.id)


def _stage(store: ContentStore, intent: Intent) -> str:
    """Write every file next to its place: a full disk or a missing version is noticed before anything is touched."""
    staging = _staging_of(intent)
    os.makedirs(staging, mode=0o700)
    try:
        with many_blobs(path_of(intent.repo)):
            for number, target in enumerate(intent.targets):
                if target.id:
                    content = content_of(store, path_of(intent.repo), target.id)
                    if content is None:
                        raise CommandRefused(f"the earlier version of {target.path} is not kept any more")
                    _write(os.path.join(staging, str(number)), content, target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return staging


def _write(path: str, content: bytes, target: Target) -> None:
    if stat.S_ISLNK(target.mode):
        os.symlink(os.fsdecode(content), path)
        return
    # Git knows only whether a file is executable; the rest is as git would make it.
    wanted = 0o777 if target.mode & 0o100 else 0o666
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, wanted)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        if not target.id.startswith(GIT):
            os.fchmod(fd, stat.S_IMODE(target.mode))
        file.flush()
        os.fsync(fd)


def _put_in_place(intent: Intent, staging: str) -> None:
    root = path_of(intent.root)
    # Deepest first, so that a folder is empty when a file takes its place.
    for target in sorted(intent.targets, key=lambda one: one.path.count("/"), reverse=True):
        if not target.id:
            _remove(root, path_of(target.path))
    for number, target in enumerate(intent.targets):
        if target.id:
            whole = os.path.join(root, path_of(target.path))
            _make_folders(root, os.path.dirname(path_of(target.path)))
            if os.path.isdir(whole) and not os.path.islink(whole):
                os.rmdir(whole)
            os.replace(os.path.join(staging, str(number)), whole)


def _remove(root: str, path: str) -> None:
    whole = os.path.join(root, path)
    if os.path.realpath(os.path.dirname(whole)) != os.path.dirname(whole):
        return
    with contextlib.suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
        os.unlink(whole)
    folder = os.path.dirname(path)
    # As git does: a folder that its last file leaves goes too.
    while folder:
        try:
            os.rmdir(os.path.join(root, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)


def _check_way(intent: Intent) -> None:
    """Nothing but folders may be on the way to a file, or what is removed anyway."""
    root, removed = path_of(intent.root), {one.path for one in intent.targets if not one.id}
    for target in intent.targets:
        parts = target.path.split("/") if target.id else []
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            whole = os.path.join(root, path_of(folder))
            if os.path.lexists(whole) and folder not in removed and (os.path.islink(whole) or not os.path.isdir(whole)):
                raise CommandRefused(f"{folder} is not a folder now", fix="Move it away and repeat it.")


def _make_folders(root: str, folder: str) -> None:
    os.makedirs(os.path.join(root, folder), exist_ok=True)

"""Keeps every worktree with a live session current in the content store, and knows which call changed what."""

import os
import select
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.core.git_context import CachedGitContext
from holdfast.core.kinds.agent_events import OwnedLines
from holdfast.core.machine import wake_pipe
from holdfast.core.ports import Cipher
from holdfast.core.times import now_ms
from holdfast.features.workspace import git_files
from holdfast.features.workspace.content_store import UNKEPT, ChangeRow, ContentStore, text_of
from holdfast.features.workspace.folder_watches import FolderWatches
from holdfast.features.workspace.git_files import Place
from holdfast.features.workspace.line_edits import foreign_lines
from holdfast.features.workspace.policy import EVERYTHING, NOT_KEPT, is_among
from holdfast.features.workspace.settings import WorkspaceSettings
from holdfast.features.workspace.watched_root import MANY, WatchedRoot, content_of, folders_of, identity_of

WAIT_S, END_S = 0.8, 0.2
"""The longest that the beginning and the end of a call wait for pending files. What is not captured by then is captured
beside the call."""
GATHER_S, SLICE, SLICE_S = 0.02, 32, 0.02
"""The background gathers events this long, and holds the lock for so many files or seconds."""
IDLE_S, LIVE_S = 1.0, 3_600.0
MOST_ROOTS, MOST_CALLS, MOST_WORKTREES = 30, 500, 10
MAINTAIN_S = 600.0
LOOKS = 4
MOST_USED, MOST_NEWS, MOST_LOSSES = 5_000, 50, 5
MOST_EXACT = 12
"""Files whose lines are attributed before one call."""
READ_MS = 2_000
"""How long the event of an answered call may take until it is read."""


class CallInfo(msgspec.Struct):
    """A call that may write, from before its answer until its end."""

    token: str
    repos: tuple[str, ...]
    """The git folders of the worktrees that it was started in or names."""
    at: int
    native: str = ""
    """The agent's own id of the call, where the hook has one."""
    session: str = ""
    call: str = ""
    agent: str = ""
    tool: str = ""
    lane: str = ""
    paths: list[str] = []
    by: str = "call"
    open: bool = True
    known: bool = False
    """Whether its event was read: until then only its token is known."""


class Recorder:
    """One per daemon. The lock is held while files are captured, never while git is asked in the background."""

    def __init__(self, state_dir: Path, cipher: Cipher | None = None) -> None:
        self.store = ContentStore(state_dir, cipher)
        self.lock = threading.RLock()
        self._told = threading.Condition()
        self._running = False
        self.roots: dict[str, WatchedRoot] = {}
        self.calls: OrderedDict[str, CallInfo] = OrderedDict()
        self._users: dict[str, dict[str, None]] = {}
        self._news: dict[str, dict[str, str]] = {}
        self._losses: dict[str, dict[str, None]] = {}
        self._warned: dict[tuple[str, str, str], None] = {}
        self._closing: list[str] = []
        self._used: dict[str, float] = {}
        self._watches = FolderWatches(lambda: self.roots.values(), self._doubt)
        self._context = CachedGitContext()
        self._folder, self._plain = os.path.realpath(self.store.path.parent), dict[str, Place]()
        self._wanted: list[WatchedRoot] = []
        self._wake_read, self._wake_write = wake_pipe()

    @property
    def trouble(self) -> str:
        """Why there is no watcher at all."""
        return self._watches.trouble

    # ── before and after calls ─────────────────────────────────────────────────────────────────────────────────────

    def root_for(self, folder: str, settings: WorkspaceSettings) -> WatchedRoot | None:
        """The worktree or chosen folder that a folder is in; it is watched from now on."""
        place = self._place_of(folder, settings)
        if place is None:
            return None
        root = place.root
        with self.lock:
            watched = self.roots.get(root)
            if watched is not None and watched.place != place:
                # It became a repository, or is none any more.
                self._drop(self.roots.pop(root))
                watched = None
            if watched is None:
                watched = self._add_root(place)
            elif watched.identity != (now := identity_of(root)) and now != (0, 0):
                # Removed and made again: what was known of its files still says what was there before.
                watched.identity = now
                self._watches.unwatch_below(watched, "")
                self._doubt(watched)
                self.wake()
            watched.settings = settings
            self._used[root] = time.monotonic()
        return watched

    def _place_of(self, folder: str, settings: WorkspaceSettings) -> Place | None:
        where = self._context.of(folder)
        if where:
            return Place(os.path.realpath(where["root"]), os.path.realpath(where["repo"]))
        real = os.path.realpath(folder) if settings.folders else ""
        for chosen in settings.folders:
            root = os.path.realpath(os.path.expanduser(chosen))
            # Versions of the versions themselves would have no end.
            if f"{real}/".startswith(f"{root}/") and not self._folder.startswith(f"{root}/"):
                return self._plain.get(root) or self._plain.setdefault(root, git_files.plain_place(root, self._folder))
        return None

    def _add_root(self, place: Place) -> WatchedRoot:
        if len(self.roots) >= MOST_ROOTS:
            oldest = min(self.roots, key=lambda root: self._used.get(root, 0.0))
            self._drop(self.roots.pop(oldest))
        watched = self.roots[place.root] = WatchedRoot(place, self.store, self._writer_of)
        # Without waking the background: a call that waits for git is not to share the disk with it.
        self._wanted.append(watched)
        return watched

    def lost_root(self, folder: str, settings: WorkspaceSettings) -> WatchedRoot | None:
        """A worktree that was watched and has gone: it or a folder above this one."""
        known = self.store.known_roots()
        root = max((one for one in known if f"{folder}/".startswith(f"{one}/")), key=len, default="")
        if not root:
            return None
        with self.lock:
            watched = self.roots.get(root) or self._add_root(Place(root, known[root]))
            watched.settings = settings
            self._used[root] = time.monotonic()
        return watched

    def before_call(self, roots: Sequence[WatchedRoot], token: str, native: str = "") -> None:
        """Make sure that everything that is there now is kept, and that what follows belongs to the call."""
        with self.lock:
            self._drain_all(roots)
            for root in roots:
                self._notice_head(root)
            self.store.begin(token)
            self._open(CallInfo(token, tuple({one.place.shared for one in roots}), now_ms(), native))
        if self._wanted:
            self.wake()

    def begin(self, token: str, **facts: object) -> None:
        """The call's event has been read."""
        with self.lock:
            if info := self.calls.get(token):
                self.calls[token] = msgspec.structs.replace(info, known=True, **facts)

    def end(self, *, session: str = "", call: str = "", native: str = "") -> None:
        """By the id that the agent gave the call, or once its event was read."""
        with self.lock:
            for info in reversed(self.calls.values()):
                if info.open and (info.native == native if native else (info.session, info.call) == (session, call)):
                    roots = [one for one in self.roots.values() if one.place.shared in info.repos]
                    if not self._drain_all(roots, END_S):
                        # What is left is the call's all the same.
                        self._closing.append(info.token)
                        break
                    for root in roots:
                        self._notice_head(root)
                    info.open = False
                    break
        self.wake()

    def end_turn(self, session: str) -> None:
        """Calls that were refused have no end of their own."""
        with self.lock:
            self._news.pop(session, None)
            left = [info for info in self.calls.values() if info.open and info.session == session]
            if left:
                self._drain_all(self.roots.values())
            for info in left:
                info.open = False

    @contextmanager
    def acting(self, root: WatchedRoot, info: CallInfo) -> Iterator[None]:
        """Changes of Holdfast's own, such as an undo; no call starts meanwhile."""
        with self.lock:
            self.drain(root)
            others = [one for one in self.calls.values() if one.open]
            for one in others:
                one.open = False
            self._open(info)
            try:
                yield
            finally:
                self.drain(root)
                info.open = False
                for one in others:
                    one.open = True

    def _close_ended(self) -> None:
        while self._closing:
            if info := self.calls.get(self._closing.pop()):
                info.open = False

    def _open(self, info: CallInfo) -> None:
        self._close_ended()
        self.calls[info.token] = info
        while len(self.calls) > MOST_CALLS:
            self.calls.popitem(last=False)

    def _writer_of(self, root: WatchedRoot, path: str) -> tuple[str, str]:
        """Who writes this file now: the session and the call's token, both empty for a person."""
        running = [one for one in self.calls.values() if one.open and root.place.shared in one.repos]
        whole = os.path.join(root.root, path)
        # A call that names its files writes nothing else.
        named = [one for one in running if whole in one.paths]
        writer = next(reversed(named or [one for one in running if not one.paths]), None)
        self._spread_news(root, path, (writer.session if writer.known else "?") if writer else "")
        return ((writer.session if writer.known else "?"), writer.token) if writer else ("", "")

    def erase(self, quotes: Callable[[bytes], bool], projects: Sequence[str]) -> int:
        with self.lock:
            erased = self.store.erase(quotes, projects)
            # What is in files is captured again when they change, or at the next look.
            for root in list(self.roots):
                self._drop(self.roots.pop(root))
        return erased

    # ── news ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def use(self, session: str, paths: Iterable[str]) -> None:
        """The session read or wrote these files: it is notified when somebody else changes them."""
        with self.lock:
            for path in paths:
                users = self._users.setdefault(os.path.realpath(path), {})
                users[session] = None
                while len(self._users) > MOST_USED:
                    del self._users[next(iter(self._users))]

    def has_news(self, body: bytes) -> bool:
        return any(session.encode() in body for session in (*self._news, *self._losses))

    def take_news(self, session: str) -> dict[str, str]:
        with self.lock:
            return self._news.pop(session, {})

    def _spread_news(self, root: WatchedRoot, path: str, writer: str) -> None:
        for session in self._users.get(os.path.join(root.root, path), ()):
            if session != writer and writer != "?":
                news = self._news.setdefault(session, {})
                if len(news) < MOST_NEWS:
                    news[path] = writer

    def may_overwrite(self, roots: Iterable[WatchedRoot], files: Sequence[str], body: bytes) -> bool:
        """Whether somebody whom the call does not name has uncommitted lines in a file that it names."""
        return any(
            not by or by.encode() not in body
            for root in roots
            for path in root.inside(files)
            for by in self._known_writers(root, path)
        )

    def _known_writers(self, root: WatchedRoot, path: str) -> list[str]:
        if path not in root.files:
            return []
        return [by for _, by in self.store.writers(root.root, path)[1:] if by != "?"]

    def overwritten(self, root: WatchedRoot, session: str, files: Sequence[str]) -> list[OwnedLines]:
        """Uncommitted lines of others in files that an edit is about; reported once for each file and writer."""
        shared = [path for path in root.inside(files) if set(self._known_writers(root, path)) - {session}]
        found = [one for one in self.endangered(root, session, shared) if one.by != "?"] if shared else []
        news = [one for one in found if (session, one.path, one.by) not in self._warned]
        self._warned.update(dict.fromkeys((session, one.path, one.by) for one in news))
        while len(self._warned) > MOST_USED:
            del self._warned[next(iter(self._warned))]
        return news

    def endangered(
        self,
        root: WatchedRoot,
        session: str,
        only: Sequence[str] = (),
        named: Sequence[str] = EVERYTHING,
        new_only: bool = False,
    ) -> list[OwnedLines]:
        """Uncommitted lines that somebody else wrote, in `named` files and folders; or those in `only`."""
        look = root.last_look if only else git_files.look(root.place)
        with self.lock:
            changed = {
                path: seen for path, seen in root.files.items()
                if seen.id and path in (only or look.changed) and is_among(os.path.join(root.root, path), named)
            }  # fmt: skip
            for path in look.commit.some(list(changed)) if new_only else ():
                del changed[path]
            writers = {path: self.store.writers(root.root, path) for path in changed}
        shared = {path for path, versions in writers.items() if any(by != session for _, by in versions[1:])}
        committed = look.commit.some([path for path in shared if len({by for _, by in writers[path]}) > 1])
        found: list[OwnedLines] = []
        for path, seen in changed.items():
            exact = None
            if path in shared and len(found) < MOST_EXACT:
                exact = self._foreign_lines(root, committed.get(path), writers[path], session)
            if exact is None and seen.by != session:
                exact = {seen.by: NOT_KEPT if seen.id == UNKEPT else ""}
            found += [OwnedLines(text_of(path), by, lines) for by, lines in (exact or {}).items()]
        return [*self._not_kept_yet(root, named), *found]

    def _not_kept_yet(self, root: WatchedRoot, named: Sequence[str]) -> list[OwnedLines]:
        """More files than the call waits for: it goes on, and is not promised that they can be restored."""
        left = list(root.pending) if root.backlog else []
        count = sum(is_among(os.path.join(root.root, path), named) for path in left)
        return [OwnedLines(f"{count:,} file{'' if count == 1 else 's'}", "?", NOT_KEPT)] if count else []

    def _foreign_lines(
        self, root: WatchedRoot, committed: git_files.Tracked | None, writers: list[tuple[str, str]], session: str
    ) -> dict[str, str] | None:
        contents = [(content_of(self.store, root.place.shared, name), by) for name, by in writers]
        old = git_files.read_blob(root.place.shared, committed.oid) if committed else b""
        versions = [(content, by) for content, by in contents if content is not None]
        if old is None or not versions or contents[-1][0] is None:
            return None
        # Where lines were only removed, nothing is left to be numbered.
        return foreign_lines(old, versions, session) or None

    # ── HEAD and losses ────────────────────────────────────────────────────────────────────────────────────────────

    def _notice_head(self, root: WatchedRoot) -> None:
        """A session learns before its next call that another one, or a person, moved HEAD."""
        before, now = root.head, git_files.read_head(root.place)
        root.head = now
        if not before or not now or before == now:
            return
        running = [one for one in self.calls.values() if one.open and root.place.shared in one.repos]
        by = running[-1].session if running else ""
        for session in root.sessions:
            if session != by:
                self._news.setdefault(session, {})[f"//{before} → {now}"] = by

    def note_loss(self, session: str, text: str) -> None:
        if session:
            with self.lock:
                told = self._losses.setdefault(session, {})
                if len(told) < MOST_LOSSES:
                    told[text] = None

    def has_loss(self, body: bytes) -> bool:
        return any(session.encode() in body for session in self._losses)

    def take_loss(self, session: str) -> str:
        with self.lock:
            return "\n".join(self._losses.pop(session, ()))

    # ── draining ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _drain_all(self, named: Iterable[WatchedRoot], patience: float = WAIT_S) -> bool:
        """A shell command may go anywhere: what is watched is captured everywhere; only named roots are looked at."""
        self._watches.read()
        done = True
        for root in {one.root: one for one in (*named, *self.roots.values())}.values():
            if root in named or (root.current and root.pending):
                done &= self.drain(root, patience)
        return done

    def drain(self, root: WatchedRoot, patience: float = WAIT_S) -> bool:
        """Capture everything that changed until now; False if that took too long."""
        self._watches.read()
        if not os.path.isdir(root.root):
            root.current = False
            root.expect_all()
        elif not root.current or len(root.pending) - root.backlog > MANY:
            root.take(git_files.look(root.place, root.settings.include))
        done = root.capture(time.monotonic() + patience, waiting=True)
        if not done and patience == WAIT_S:
            root.late += 1
        return done

    def _doubt(self, root: WatchedRoot) -> None:
        root.current = False
        if root not in self._wanted:
            self._wanted.append(root)

    def _drop(self, root: WatchedRoot) -> None:
        self._watches.unwatch_below(root, "")
        root.ignore.forget()

    # ── in the background ──────────────────────────────────────────────────────────────────────────────────────────

    def wake(self) -> None:
        try:
            os.write(self._wake_write, b".")
        except BlockingIOError:
            pass

    def run(
        self, stopping: threading.Event, emit: Callable[[list[ChangeRow]], None], report: Callable[[Exception], None]
    ) -> None:
        """Watch until the daemon stops. `emit` writes changes into the log."""
        self._running = True
        next_care = time.monotonic() + 30.0
        while not stopping.is_set():
            try:
                self._wait_for_news()
                stopping.wait(GATHER_S)
                self._scan_wanted()
                self._capture_in_slices(stopping)
                self.tell(emit)
                if time.monotonic() > next_care:
                    next_care = time.monotonic() + MAINTAIN_S
                    self._care()
            except Exception as error:
                report(error)
                stopping.wait(IDLE_S)

    def close(self) -> None:
        with self.lock:
            for root in self.roots.values():
                root.ignore.forget()
            self.roots.clear()
            self._watches.close()

    def _wait_for_news(self) -> None:
        waited = [self._wake_read, *self._watches.descriptors]
        ready, _, _ = select.select(waited, [], [], IDLE_S) if max(waited) < 1024 else ([], [], [])
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)

    def _scan_wanted(self) -> None:
        while self._wanted:
            with self.lock:
                root = self._wanted.pop(0)
            if self.roots.get(root.root) is root:
                self._scan(root)

    def _scan(self, root: WatchedRoot) -> None:
        """Watches first, then the look: what changes in between is reported by the watches."""
        listing = git_files.look(root.place, root.settings.include)
        paths = [*listing.changed, *listing.commit.files()]
        with self.lock:
            root.unwatched = ""
            # From the beginning: after an overflow a folder may have another name.
            self._watches.unwatch_below(root, "")
            for folder in folders_of(paths):
                if folder not in root.folders and not self._watches.watch(root, folder):
                    break
        self._watches.watch_others(root, self.lock)
        converted, missing = git_files.find_converted(root.place, listing.commit)
        for attempt in range(LOOKS):
            seen = root.captures
            look = git_files.look(root.place, root.settings.include)
            with self.lock:
                # What was captured meanwhile is newer than what git saw.
                if root.captures != seen and attempt < LOOKS - 1:
                    continue
                if attempt == LOOKS - 1:
                    look = git_files.look(root.place, root.settings.include)
                root.take(look)
                root.take_converted(converted, missing)
                root.current = not root.problem and not self.trouble
                break
        for other in git_files.linked_worktrees(root.place.shared)[:MOST_WORKTREES]:
            self.root_for(other, root.settings)

    def _capture_in_slices(self, stopping: threading.Event) -> None:
        with self.lock:
            self._watches.read()
            roots = list(self.roots.values())
        for root in roots:
            left = len(root.pending) + 1
            # Ends when nothing was done: what is left is growing, or waits for a call.
            while 0 < len(root.pending) < left and not stopping.is_set():
                left = len(root.pending)
                with self.lock:
                    root.capture(time.monotonic() + SLICE_S, waiting=False, most=SLICE)
        with self.lock:
            if not any(root.pending for root in roots):
                self._close_ended()

    def tell(self, emit: Callable[[list[ChangeRow]], None]) -> None:
        """Bring what was captured into the log; kept until it is there."""
        while rows := self._ready_to_tell():
            emit(rows)
            self.store.told(row.seq for row in rows)
        with self._told:
            self._told.notify_all()

    def _ready_to_tell(self) -> list[ChangeRow]:
        """Without those of a call whose event was not read yet."""
        rows, now = self.store.changes(), now_ms()
        with self.lock:
            for number, row in enumerate(rows):
                info = self.calls.get(row.call)
                if info and not info.known and now - info.at < READ_MS:
                    return rows[:number]
        return rows

    def settle(self, patience: float) -> bool:
        """Wait until everything captured is in the log. Without a daemon nobody writes it."""
        if not self._running:
            return True
        until = time.monotonic() + patience
        with self._told:
            while self.store.changes(1):
                self.wake()
                if not self._told.wait(min(0.1, max(0.0, until - time.monotonic()))) and time.monotonic() > until:
                    return False
        return True

    def _care(self) -> None:
        now = time.monotonic()
        with self.lock:
            for root in [one for one in self.roots if now - self._used.get(one, 0.0) > LIVE_S]:
                self._drop(self.roots.pop(root))
            limits = [root.settings for root in self.roots.values()]
        days = max((one.days for one in limits), default=7)
        space = max((one.megabytes for one in limits), default=1_000)
        self.store.keep_bounds(now_ms(), days, space << 20)
        self.store.encrypt_older()

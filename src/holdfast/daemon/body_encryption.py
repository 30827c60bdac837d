"""Encrypts or decrypts stored bodies when the setting changes, a little at a time."""

import contextlib
import time
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.daemon.quoting_files import copies_of_database
from holdfast.stores.erase import EraseSql, rewrite_copy
from holdfast.stores.key_name import KEY_NAME, prepare_key

if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

# Bodies per transaction: a hook waits for no more than these.
AT_ONCE = 50
ASK_AGAIN_S = 30.0


class BodyEncryption:
    """Resumable: each row shows its own form."""

    def __init__(self, daemon: "Daemon") -> None:
        self._daemon = daemon
        self._form: bool | None = None
        """The form of all bodies when this daemon last scanned them; None if it hasn't."""
        self._counted_for: bool | None = None
        """The form for which `left` was counted."""
        self._next_key = 0.0
        self.left: int | None = None
        """Bodies not yet in the wanted form; None before they are counted."""
        self.unreadable = 0

    def round(self) -> None:
        """Called repeatedly by housekeeping, in its thread."""
        cipher = self._daemon.app.cipher
        wanted = cipher.wanted
        if wanted and not cipher.ready and not self._prepared():
            return
        if self._form is None and not wanted and not self._was_ever_on():
            self._form = self._counted_for = False
            self.left = 0
        if self._form == wanted:
            return
        self._count(wanted)
        self._change_stored(wanted)
        self._clean_up()
        self._count(wanted)
        self._form = wanted
        self._daemon.log(
            "bodies.encrypted" if wanted else "bodies.decrypted", left=self.left, unreadable=self.unreadable
        )

    def _prepared(self) -> bool:
        if time.monotonic() < self._next_key:
            return False
        app, before = self._daemon.app, self._daemon.app.cipher.problem
        prepare_key(app.cipher, app.store, self._daemon.call)
        self._next_key = time.monotonic() + ASK_AGAIN_S
        if app.cipher.problem and app.cipher.problem != before:
            self._daemon.log("bodies.no-key", problem=app.cipher.problem)
        return app.cipher.ready

    def _was_ever_on(self) -> bool:
        reader = self._daemon.app.store.reader()
        try:
            return bool(reader.meta(KEY_NAME))
        finally:
            reader.close()

    def _count(self, wanted: bool) -> None:
        reader = self._daemon.app.store.reader()
        try:
            by_key = reader.body_keys()
        finally:
            reader.close()
        plain = by_key.pop(b"", 0)
        cipher = self._daemon.app.cipher
        self.unreadable = sum(count for name, count in by_key.items() if not cipher.can_open(name))
        self.left, self._counted_for = plain if wanted else sum(by_key.values()), wanted

    def _change_stored(self, wanted: bool) -> None:
        store = self._daemon.app.store
        after = 0
        while True:
            # Read in this thread: scanning all bodies must not delay a hook.
            reader = store.reader()
            try:
                seqs = reader.bodies_in_form(not wanted, after, AT_ONCE)
            finally:
                reader.close()
            if not seqs:
                return
            self.left = max(0, (self.left or 0) - self._daemon.call(lambda seqs=seqs: self._change_some(seqs)))
            after = seqs[-1]
            if self._daemon.app.cipher.wanted != wanted:
                raise StoreUnavailable("the setting changed meanwhile; the next round continues")

    def _change_some(self, seqs: list[int]) -> int:
        store = self._daemon.app.store
        with store.transaction():
            return store.change_bodies(seqs)

    def _clean_up(self) -> None:
        """Clean the places where old text may remain: the journal, SQLite's log, copies of the database."""
        daemon = self._daemon
        daemon.call(self._wipe_journal)
        daemon.call(daemon.app.store.truncate_log)
        with daemon.copying:
            for path in copies_of_database(daemon.paths, daemon.app.store.path):
                # A damaged copy is kept; `doctor` and the next repair report it.
                with contextlib.suppress(HoldfastError, apsw.Error):
                    self._change_copy(path)

    def _change_copy(self, path: Any) -> None:
        cipher = self._daemon.app.cipher
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            done = not EraseSql(db, cipher).has_bodies_to_change()
        finally:
            db.close()
        if not done:
            rewrite_copy(path, lambda copy: EraseSql(copy, cipher).change_all_bodies())

    def _wipe_journal(self) -> None:
        daemon = self._daemon
        daemon.pipeline.retry_held()
        if daemon.pipeline.has_unstored:
            raise StoreUnavailable("the store takes nothing now")
        with daemon.app.store.transaction():  # Lasting: what the journal kept must be on disk before it goes.
            daemon.app.store.set_meta("bodies_in_form", "encrypted" if daemon.app.cipher.wanted else "plain")
        if not daemon.journal.wipe():
            raise StoreUnavailable("the journal cannot be written")

    def status(self) -> dict[str, Any]:
        cipher = self._daemon.app.cipher
        return {
            "wanted": cipher.wanted,
            "problem": cipher.problem if cipher.wanted else "",
            "left": self.left if self._counted_for == cipher.wanted else None,
            "done": self._form == cipher.wanted,
            "unreadable": self.unreadable,
            "journal_waits": self._daemon.pipeline.journal_waits_for_key,
        }

"""Writes the seeds' files as views after the commit, if their text changed."""

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.engine import Committed
from holdfast.core.event import Event
from holdfast.core.feature import Feature, File
from holdfast.core.ports import Doc, Ref
from holdfast.daemon.ingest.log import Log
from holdfast.paths import write_atomically
from holdfast.stores.footprint import Footprint

# Seconds to wait for more, so that several commits become one write per file.
QUIET_S = 0.02


class FileWriter:
    """`ingest` appends events from files that somebody edited; `import_file` reads files of other systems."""

    def __init__(
        self,
        settings: Callable[[str], Mapping[str, Any]],
        log: Log,
        state: Path,
        ingest: Callable[[list[Event]], object],
        import_file: Callable[[Path], Iterable[Event]] = lambda _path: (),
    ) -> None:
        self._settings, self._log, self._ingest, self._import = settings, log, ingest, import_file
        self._footprint = Footprint(state)
        self._waiting: dict[Ref, tuple[Feature, Doc]] = {}
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def watch(self, committed: Committed) -> None:
        """Subscriber of commits; keeps only the newest version of each document."""
        documents = {ref: (feature, doc) for feature, ref, doc in committed.documents if feature.files}
        if documents:
            with self._lock:
                self._waiting.update(documents)
                self._idle.clear()
            self._changed.set()

    def flush(self, timeout: float = 5.0) -> bool:
        return self._idle.wait(timeout)

    def stop(self) -> None:
        self.flush()
        self._stopping = True
        self._changed.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.wait()
            self._changed.clear()
            threading.Event().wait(QUIET_S)
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for ref, (feature, doc) in waiting.items():
                self._write(feature, ref, doc)
            with self._lock:
                # `watch` may have added documents meanwhile.
                if not self._waiting:
                    self._idle.set()

    def _write(self, feature: Feature, ref: Ref, doc: Doc) -> None:
        try:
            project = feature.facets(ref, doc)[0]
            for file in feature.files(ref, doc, self._settings(project).get(feature.name)) if feature.files else ():
                self.put(file)
        except Exception as error:
            self._log.error("file.failed", error, feature=feature.name, document=f"{ref.kind} {ref.key}")

    def put(self, file: File) -> None:
        if file.content is None:
            file.path.unlink(missing_ok=True)
            return
        if self._footprint.refuses(file.path):
            return
        if file.hidden:
            self._footprint.hide_from_git(file.hidden)
        there = file.path.read_bytes() if file.path.is_file() else None
        # A symlink is replaced by a file even if its target has the same bytes.
        if there == file.content and not file.path.is_symlink():
            return
        if there is not None and self._is_others(file, there):
            self._adopt(file, there)
        self._footprint.write(file.path, file.content, file.mode)

    def _is_others(self, file: File, content: bytes) -> bool:
        if file.ours:
            return not file.ours(content)
        return self._footprint.was_edited(file.path, content)

    def _adopt(self, file: File, content: bytes) -> None:
        """Read a file that somebody edited, or that belongs to another program, before it is set aside."""
        events = list(file.adopt(file.path, content) if file.adopt else self._import(file.path))
        try:
            self._ingest(events)
        except Exception as error:  # The writer is busy: the file is kept, and can be read with `holdfast data import`.
            self._log.error("file.not-adopted", error, path=str(file.path))
        kept_path = self._footprint.set_aside(file.path)
        self._log(
            "file.set-aside",
            why="it was written or changed by someone else",
            path=str(file.path),
            kept=str(kept_path),
            events=len(events),
        )


def put_file(file: File, footprint: Footprint | None = None) -> None:
    """Write a file for a job; it is the job's result and survives an uninstall."""
    if file.content is None:
        file.path.unlink(missing_ok=True)
        return
    if file.hidden and footprint:
        footprint.hide_from_git(file.hidden)
    if file.path.is_file() and not file.path.is_symlink() and file.path.read_bytes() == file.content:
        return
    file.path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file.path, file.content, file.mode)

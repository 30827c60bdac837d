"""The seeds' files, written as views after the commit, beside the hooks, and only when their text changed."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.engine import Committed
from holdfast.core.feature import Feature, File
from holdfast.core.ports import Doc, Ref
from holdfast.ingest.log import Log
from holdfast.paths import write_atomically

QUIET_S = 0.02


class FileWriter:
    def __init__(self, settings: Callable[[str], Mapping[str, Any]], log: Log) -> None:
        self._settings, self._log = settings, log
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
        """Called by the engine after each commit; keeps only the newest of each document."""
        wanted = {ref: (feature, doc) for feature, ref, doc in committed.documents if feature.files}
        if wanted:
            with self._lock:
                self._waiting.update(wanted)
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
                if not self._waiting:
                    self._idle.set()

    def _write(self, feature: Feature, ref: Ref, doc: Doc) -> None:
        try:
            project = feature.facets(ref, doc)[0]
            for file in feature.files(ref, doc, self._settings(project).get(feature.name)) if feature.files else ():
                put(file)
        except Exception as error:
            self._log.error("file.failed", error, feature=feature.name, document=f"{ref.kind} {ref.key}")


def put(file: File) -> None:
    if file.content is None:
        file.path.unlink(missing_ok=True)
        return
    if file.path.is_file() and not file.path.is_symlink() and file.path.read_bytes() == file.content:
        return
    file.path.parent.mkdir(parents=True, exist_ok=True)
    if file.ours and file.path.exists() and not file.ours(file.path.read_bytes()):
        _set_aside(file.path)
    write_atomically(file.path, file.content, file.mode)


def _set_aside(path: Path) -> None:
    """Somebody edited it by hand, or it is another program's: it stays to be read."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path.rename(path.with_name(f"{path.name}.kept-{stamp}"))

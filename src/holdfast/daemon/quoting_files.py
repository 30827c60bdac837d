"""Finds and cleans files of the state folder that may quote erased text."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.core.erase import Quotation, build_eraser
from holdfast.paths import (
    Paths,
    is_plain_file,
    plain_files,
    write_atomically,
)

# Bytes read at once, and the overlap of windows: a text may lie across both.
WINDOW, OVERLAP = 4 << 20, 64 << 10
# The live database, and copies in the middle of a repair or restore.
DATABASE_SUFFIXES = (".db", ".mending", ".mended", ".restoring")
SIDE_SUFFIXES = ("-wal", "-shm", "-journal")
# Larger files are removed instead of rewritten, because rewriting reads them as a whole.
LARGEST_PLAIN = 256 << 20


def quotes_text(path: Path, quotations: Sequence[Quotation]) -> bool:
    """Return whether the raw bytes of a file contain one of the texts, read window by window."""
    probes = [probe for quotation in quotations for probe in quotation.probes]
    with open(path, "rb", opener=_no_symlink) as file:
        before = b""
        while piece := file.read(WINDOW):
            window = before + piece
            small = window.lower()
            # Probes are lowercase parts of the texts: a cheap search that avoids decoding most windows.
            if any(probe in small for probe in probes) and _window_quotes(window, quotations):
                return True
            before = window[-OVERLAP:]
    return False


def _window_quotes(window: bytes, quotations: Sequence[Quotation]) -> bool:
    text = window.decode("utf-8", "replace")
    return any(quotation.spans(text) for quotation in quotations)


def _no_symlink(path: str, flags: int) -> int:
    # A symlink in the state folder may lead to a file that is not ours.
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)


def is_database(path: Path) -> bool:
    return path.suffix in DATABASE_SUFFIXES


def is_beside_database(path: Path) -> bool:
    return path.name.endswith(SIDE_SUFFIXES)


def copies_of_database(paths: Paths, live: Path) -> list[Path]:
    """Backups, damaged databases that were set aside, and a database that is not in use."""
    copies = [p for folder in (paths.backups, paths.quarantine) for p in plain_files(folder) if is_database(p)]
    copies += [p for p in paths.state.glob("*") if is_plain_file(p) and is_database(p) and p != live]
    return sorted(copies)


def erase_in_file(path: Path, quotations: Sequence[Quotation]) -> bool:
    """Rewrite a text file without it, line by line so that JSON stays JSON; return whether it changed."""
    if not quotes_text(path, quotations):
        return False
    if path.stat().st_size > LARGEST_PLAIN:
        path.unlink()
        return True
    change = build_eraser(quotations)
    content = path.read_bytes()
    changed = b"\n".join(change(line) for line in content.split(b"\n"))
    if quotes_bytes(changed, quotations):  # It spans lines.
        changed = change(changed)
    write_atomically(path, changed)
    return True


def quotes_bytes(content: bytes, quotations: Sequence[Quotation]) -> bool:
    return _window_quotes(content, quotations)


def remove_indexes(state: Path, projects: Sequence[str], quotations: Sequence[Quotation]) -> int:
    """Indexes of code can be rebuilt from the code: one that quotes the text is removed."""
    from holdfast.analysis.search.index.places import IndexDir, folder_of

    removed = 0
    folder = folder_of(state)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        about = IndexDir(path).about()
        root = about.root if about else ""
        mine = any(root == p or root.startswith(f"{p.rstrip('/')}/") for p in projects)
        if mine or any(quotes_text(file, quotations) for file in plain_files(path)):
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
    return removed


def remove_all(folder: Path, keep: Callable[[Path], bool] = lambda _path: False) -> int:
    removed = 0
    for path in list(plain_files(folder)):
        if not keep(path):
            path.unlink(missing_ok=True)
            removed += 1
    return removed

"""Records what Holdfast writes outside its state folder, so that `holdfast uninstall` can remove it and restore what
was there."""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from holdfast.core.git_context import locate
from holdfast.paths import locked_file, private_folder, write_atomically

BEGIN = b"# >>> holdfast: what it writes here; taken out by `holdfast uninstall`\n"
END = b"# <<< holdfast\n"
# A larger file, or one with more lines of ours, is left as it is.
MAX_EXCLUDE_BYTES, MAX_LINES = 1 << 20, 200


class WrittenFile(msgspec.Struct, kw_only=True):
    """`digest` is of our last version: a file that differs was edited and stays."""

    path: str
    digest: str = ""
    made_folders: int = 0
    original: str = ""
    """Where the file that was there before us is kept."""
    exclude: bool = False
    """It is git's exclude file, in which we have a block."""
    created: bool = False
    added_newline: bool = False
    is_out: bool = False
    """It was removed again: nothing of ours is there."""


class TakenOut(msgspec.Struct, kw_only=True):
    removed: list[str] = []
    restored: list[str] = []
    left_behind: list[str] = []
    """Files changed by somebody since we wrote them."""


class Footprint:
    def __init__(self, state: Path) -> None:
        self._state, self._folder = state, state / "footprint"
        self._records = WrittenFiles(self._folder)
        self._excluded: dict[Path, tuple[int, int]] = {}

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def refuses(self, path: Path) -> bool:
        """Whether writing outside is refused: after an uninstall, until the next install."""
        return self._is_outside(path) and (self._folder / "withdrawn").exists()

    def _is_outside(self, path: Path) -> bool:
        return not path.is_relative_to(self._state)

    def allow(self) -> None:
        (self._folder / "withdrawn").unlink(missing_ok=True)

    def write(self, path: Path, content: bytes, mode: int) -> None:
        """Record first: a kill in between leaves a file that is known to be ours."""
        if self._is_outside(path):
            record = self._records.find(path) or WrittenFile(path=str(path), made_folders=_missing_folders(path))
            record.digest = _content_digest(content)
            self._records.put(record)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content, mode)

    def was_edited(self, path: Path, content: bytes) -> bool:
        """Return whether we wrote this file and it was changed."""
        record = self._records.find(path)
        return record is not None and bool(record.digest) and record.digest != _content_digest(content)

    def wrote(self, path: Path) -> bool:
        """Return whether this file is exactly what we wrote."""
        record = self._records.find(path)
        try:
            return record is not None and record.digest == _content_digest(path.read_bytes())
        except OSError:
            return False

    def set_aside(self, path: Path) -> Path:
        """Move a foreign file into the state folder; an uninstall restores the first one."""
        folder = private_folder(private_folder(self._state / "kept") / _name_of(path))
        kept_path = _free_name(folder, f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{path.name}")
        record = self._records.find(path) or WrittenFile(path=str(path))
        write_atomically(kept_path, path.read_bytes())
        # Only what was there before our first write is restored.
        record.original = record.original or ("" if record.digest else str(kept_path))
        self._records.put(record)
        return kept_path

    # ── git's exclude file ───────────────────────────────────────────────────────────────────────────────────────────

    def hide_from_git(self, path: Path) -> None:
        """Hide this file or folder of a worktree from git's untracked files."""
        where = locate(str(path.parent))
        exclude = _exclude_file(where.get("repo", ""))
        # Checked each time, because another clone may now be at this path.
        if exclude is None or not path.is_relative_to(where["root"]) or self._excluded.get(path) == _stamp(exclude):
            return
        name = "/" + str(path.relative_to(where["root"])).replace("\\", "/") + ("/" if path.is_dir() else "")
        self._add_line(exclude, _escape_ignore_pattern(name))
        self._excluded[path] = _stamp(exclude)

    def _add_line(self, exclude: Path, line: bytes) -> None:
        before = exclude.read_bytes() if exclude.exists() else b""
        head, ours, tail = _split_at_block(before)
        record = self._records.find(exclude) or WrittenFile(
            path=str(exclude), exclude=True, created=not exclude.exists()
        )
        if line in ours:
            # Also removes the block of a repository that was moved or copied here.
            self._records.put(record)
        if line in ours or len(ours) >= MAX_LINES or len(before) > MAX_EXCLUDE_BYTES:
            return
        if not ours:
            # Remembered, so that an uninstall restores the file byte for byte.
            record.added_newline = bool(head) and not head.endswith(b"\n")
            head += b"\n" if record.added_newline else b""
        self._records.put(record)
        exclude.parent.mkdir(exist_ok=True)
        write_atomically(exclude, head + _ignore_block([*ours, line]) + tail, 0o644)

    # ── out again ────────────────────────────────────────────────────────────────────────────────────────────────────

    def take_out(self) -> TakenOut:
        """Remove everything; what somebody changed since stays and is named."""
        private_folder(self._state)
        # First: from now on the daemon writes nothing outside that would be missed below.
        write_atomically(private_folder(self._folder) / "withdrawn", b"")
        done = TakenOut(removed=[], restored=[], left_behind=[])
        records = self._records.in_force()
        for record in records:
            path = Path(record.path)
            try:
                (_take_out_block if record.exclude else _take_out_file)(path, record, done)
            except OSError:
                done.left_behind.append(record.path)
                continue
            self._records.put(msgspec.structs.replace(record, is_out=True))
        self._records.compact()
        _remove_empty_folders(records)
        return done

    def in_force(self) -> list[WrittenFile]:
        return self._records.in_force()

    def rewrite(self, change: Callable[[Path], bool]) -> bool:
        """Rewrite the file of the records for an erasure, while nobody writes to it."""
        return self._records.rewrite(change)


# A file with this many lines per active path, and some, is compacted.
LINES_PER_RECORD, LEAST_LINES = 2, 100


class WrittenFiles:
    """The records in one file: a line per change; the last one of a path counts. A line is one write, so a kill leaves
    at most a torn line, which is ignored. All processes and threads share one lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file = folder / "records.jsonl"
        self._records: dict[str, WrittenFile] = {}
        self._lines, self._is_torn, self._is_migrated = 0, False, False
        self._seen: tuple[int, ...] = ()
        """The file's stamp when it was last read."""

    def find(self, path: Path) -> WrittenFile | None:
        with self._held() as there:
            record = self._records.get(str(path)) if there else None
            # A copy: changes are saved with `put`.
            return None if record is None or record.is_out else msgspec.structs.replace(record)

    def in_force(self) -> list[WrittenFile]:
        with self._held() as there:
            return self._in_force() if there else []

    def put(self, record: WrittenFile) -> None:
        private_folder(self._folder)
        with self._held():
            if self._records.get(record.path) != record:
                self._append([record])
                if self._lines > LINES_PER_RECORD * len(self._records) + LEAST_LINES:
                    self._write_anew()

    def compact(self) -> None:
        with self._held() as there:
            if there:
                self._write_anew()

    def rewrite(self, change: Callable[[Path], bool]) -> bool:
        with self._held() as there:
            return there and self.file.is_file() and change(self.file)

    @contextlib.contextmanager
    def _held(self) -> Iterator[bool]:
        """False if nothing was ever recorded, or if the folder was replaced by a link."""
        if self._folder.is_symlink() or not self._folder.is_dir():
            yield False
            return
        with locked_file(self._folder / "lock"):
            self._read_changes()
            self._take_over_older()
            yield True

    def _read_changes(self) -> None:
        now = _stat_of(self.file)
        if now == self._seen:
            return
        content = self.file.read_bytes() if now else b""
        lines = content.splitlines()
        decoded = (record for line in lines if (record := _decode_record(line)))
        self._records = {record.path: record for record in decoded}
        self._lines, self._is_torn = len(lines), bool(content) and not content.endswith(b"\n")
        self._seen = now

    def _take_over_older(self) -> None:
        """Earlier versions kept one file per record."""
        if self._is_migrated:
            return
        older = [file for file in sorted(self._folder.glob("*.json")) if _stat_of(file)]
        found = [record for file in older if (record := _decode_record(file.read_bytes()))]
        if new := [record for record in found if record.path not in self._records]:
            self._append(new)
        for file in (*older, *self._folder.glob("*.new")):
            file.unlink(missing_ok=True)
        self._is_migrated = True

    def _append(self, records: list[WrittenFile]) -> None:
        lines = _encode_lines(records)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self.file, flags, 0o600), "ab", buffering=0) as out:
            out.write(b"\n" + lines if self._is_torn else lines)
        self._records.update({record.path: record for record in records})
        self._lines, self._is_torn, self._seen = self._lines + len(records), False, _stat_of(self.file)

    def _in_force(self) -> list[WrittenFile]:
        return [record for record in self._records.values() if not record.is_out]

    def _write_anew(self) -> None:
        write_atomically(self.file, _encode_lines(self._in_force()))
        self._seen = ()
        self._read_changes()


def _encode_lines(records: list[WrittenFile]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def _decode_record(line: bytes) -> WrittenFile | None:
    """None for a torn line and for an erased path."""
    try:
        record = msgspec.json.decode(line, type=WrittenFile)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
        return None
    return record if record.path.startswith("/") else None


def _stat_of(path: Path) -> tuple[int, ...]:
    """Empty if there is no regular file."""
    try:
        now = path.lstat()
    except OSError:
        return ()
    return (now.st_ino, now.st_size, now.st_mtime_ns) if stat.S_ISREG(now.st_mode) else ()


def _take_out_file(path: Path, record: WrittenFile, done: TakenOut) -> None:
    there = path.is_file() and not path.is_symlink()
    if there and _content_digest(path.read_bytes()) != record.digest:
        done.left_behind.append(record.path)
        return
    original = Path(record.original) if record.original else None
    if original and original.is_file():
        if path.parent.is_dir():
            write_atomically(path, original.read_bytes())
            done.restored.append(record.path)
        return
    if there:
        path.unlink()
        done.removed.append(record.path)


def _remove_empty_folders(records: list[WrittenFile]) -> None:
    """Remove folders that we created, once all files are gone: the first file in a folder created it for the others."""
    made = {folder for record in records for folder in list(Path(record.path).parents)[: record.made_folders]}
    for folder in sorted(made, key=lambda one: len(one.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _take_out_block(path: Path, record: WrittenFile, done: TakenOut) -> None:
    if path.is_symlink() or not path.is_file():
        return
    head, ours, tail = _split_at_block(path.read_bytes())
    if not ours:
        return
    # The line break was ours too, unless lines were added after our block.
    if record.added_newline and not tail:
        head = head.removesuffix(b"\n")
    if record.created and not head + tail:
        path.unlink()
    else:
        write_atomically(path, head + tail, stat.S_IMODE(path.stat().st_mode))
    done.removed.append(f"{record.path} (our lines)")


def _split_at_block(content: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Return (before our block, our lines, after it); without a block everything is before it."""
    head, begin, rest = content.partition(BEGIN)
    ours, end, tail = rest.partition(END)
    if not (begin and end):
        return content, [], b""
    return head, ours.splitlines(), tail


def _ignore_block(lines: list[bytes]) -> bytes:
    return BEGIN + b"".join(line + b"\n" for line in lines) + END


def _escape_ignore_pattern(name: str) -> bytes:
    """A pattern that matches exactly this name. One with a line break cannot be written."""
    text = "".join(f"\\{char}" if char in "\\*?[]" else char for char in name.replace("\n", "?"))
    return os.fsencode(text.removesuffix(" ") + "\\ " if text.endswith(" ") else text)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


def _exclude_file(repo: str) -> Path | None:
    """None without a git directory, or if it leads elsewhere."""
    folder = Path(repo) if repo else None
    if folder is None or folder.is_symlink() or not (folder / "objects").is_dir() or not (folder / "HEAD").is_file():
        return None
    info, exclude = folder / "info", folder / "info" / "exclude"
    if info.is_symlink() or exclude.is_symlink() or (exclude.exists() and not exclude.is_file()):
        return None
    return exclude


def _missing_folders(path: Path) -> int:
    return sum(1 for folder in path.parents if not folder.exists())


def _free_name(folder: Path, name: str) -> Path:
    names = (folder / (name if n == 0 else f"{name}.{n}") for n in range(1000))
    return next(path for path in names if not path.exists())


def _name_of(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def _content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""Records which project files the user trusts, by absolute path and exact content, so that a `git pull` asks again."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.paths import default_config_dir, private_folder, write_atomically

FILE = "trust.json"


def is_file_trusted(path: Path, content: bytes, config_dir: Path | None = None) -> bool:
    return is_trusted(path, content, read_trusted(config_dir))


def is_trusted(path: Path, content: bytes, known: Mapping[str, str]) -> bool:
    return known.get(_path_key(path)) == _content_digest(content)


def trust_file(path: Path, content: bytes | None = None, config_dir: Path | None = None) -> str:
    """Trust a file; pass the `content` that the person saw. Returns its digest."""
    digest = _content_digest(path.read_bytes() if content is None else content)
    _edit_trusted(lambda known: {**known, _path_key(path): digest}, config_dir)
    return digest


def untrust_file(path: Path, config_dir: Path | None = None) -> bool:
    """Return whether it was trusted."""
    was = _path_key(path) in read_trusted(config_dir)
    if was:
        _edit_trusted(
            lambda known: {key: digest for key, digest in known.items() if key != _path_key(path)}, config_dir
        )
    return was


def read_trusted(config_dir: Path | None = None) -> dict[str, str]:
    """Nothing is trusted if the file is missing, damaged, not ours or writable by others."""
    try:
        with open(_trust_store_path(config_dir), "rb") as file:
            file_stat = os.fstat(file.fileno())
            if file_stat.st_uid != os.geteuid() or file_stat.st_mode & 0o022:
                return {}
            known = json.loads(file.read())
        return {key: digest for key, digest in known.items() if isinstance(digest, str)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _trust_store_path(config_dir: Path | None) -> Path:
    return (config_dir or default_config_dir()) / FILE


def _path_key(path: Path) -> str:
    # A link and its target are one file: trust belongs to the target.
    return os.path.realpath(path)


def _content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _edit_trusted(edit: Callable[[dict[str, str]], dict[str, str]], config_dir: Path | None) -> None:
    file = _trust_store_path(config_dir)
    with _locked_file(file):
        text = json.dumps(edit(read_trusted(config_dir)), indent=2, sort_keys=True) + "\n"
        write_atomically(file, text.encode())


@contextmanager
def _locked_file(file: Path) -> Iterator[None]:
    """Two commands at once must not lose each other's line."""
    private_folder(file.parent.resolve())
    # A separate lock file, because the file itself is replaced at every write.
    fd = os.open(file.with_name(f".{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)

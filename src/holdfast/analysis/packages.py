"""The folders of a project that are its own, and which of them a package manager calls by a name."""

import os
import posixpath
import re
from collections.abc import Iterator

from holdfast.paths import open_regular

DEEPEST, MOST_FOLDERS = 5, 2_000
LARGEST_MANIFEST = 1 << 20
_NOT_OURS = frozenset(
    "node_modules vendor third_party target dist build out venv env site-packages testdata fixtures __pycache__".split()
)
_NAMES = {
    **dict.fromkeys(("package.json", "project.json", "composer.json"), re.compile(r'"name"\s*:\s*"([^"]+)"')),
    **dict.fromkeys(("Cargo.toml", "pyproject.toml"), re.compile(r'^name\s*=\s*"([^"]+)"', re.MULTILINE)),
}


def walk_folders(project: str) -> Iterator[str]:
    """Relative to the project, which is the empty name and comes first."""
    waiting, seen = [""], 0
    while waiting and seen < MOST_FOLDERS:
        folder = waiting.pop(0)
        seen += 1
        yield folder
        if folder.count("/") + bool(folder) < DEEPEST:
            waiting += [posixpath.join(folder, name) for name in own_folders(posixpath.join(project, folder))]


def own_folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(name for name in names if not name.startswith(".") and name not in _NOT_OURS)


def read_manifest(path: str) -> str:
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(LARGEST_MANIFEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def find_named(project: str, name: str) -> str | None:
    """The folder of a package by its name, with or without its scope, or by the folder's own name."""
    found: dict[int, str] = {}
    for folder in walk_folders(project):
        named = _names_in(posixpath.join(project, folder))
        if name in named:
            return folder
        if any(one.rpartition("/")[2] == name for one in named):
            found.setdefault(0, folder)
        if named and posixpath.basename(folder) == name:
            found.setdefault(1, folder)
    return found[min(found)] if found else None


def _names_in(path: str) -> list[str]:
    matches = (pattern.search(read_manifest(posixpath.join(path, file))) for file, pattern in _NAMES.items())
    return [match[1] for match in matches if match]

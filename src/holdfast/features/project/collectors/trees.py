"""Named trees of the settings: size, newest change, and whether the content is that of their source."""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.features.project.collectors.git_facts import tilde
from holdfast.features.project.collectors.refresh import observed
from holdfast.features.project.model import empty, project_ref
from holdfast.features.project.settings import DEFAULTS, Tree

MOST_FILES = 50_000
NAMED_DIFFERENCES = 20
_ATTRIBUTES = re.compile(
    r"^(?:(?:encrypted|private|readonly|empty|executable|exact|literal|symlink|create|modify|remove)_)+"
)
_NOT_PLAIN = re.compile(r"^(?:run_|encrypted_|symlink_|create_|modify_|remove_)|\.tmpl$")


def look(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    settings = call.settings(root) or DEFAULTS
    doc = call.reader.state(project_ref(root)) or empty(root)
    found = {name: tree_facts(name, settings.trees, root) for name in settings.trees}
    return observed(doc, {"trees": found}, call.now, int(call.job.payload.get("pid") or 0))


def tree_facts(name: str, trees: Mapping[str, Tree], root: str) -> dict[str, Any]:
    tree = trees[name]
    place = _place(tree.path, root)
    facts: dict[str, Any] = {"path": tilde(str(place))}
    try:
        files = dict(_walk(place, tree.ignore))
    except OSError as error:
        return {**facts, "problem": f"cannot be read: {error.strerror}"}
    facts |= {
        "modified": max((seen.st_mtime_ns // 1_000_000 for seen in files.values()), default=0),
        "size_mb": round(sum(seen.st_size for seen in files.values()) / 1_000_000, 1),
    }
    return {**facts, **_compared(tree, trees, root, place)} if tree.source else facts


def _place(path: str, root: str) -> Path:
    return Path(root) / Path(path).expanduser()


def _walk(place: Path, ignore: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """(path below the tree, what it is) of every plain file. No link is followed; a closed folder is an error."""
    place.stat()
    seen = 0
    for folder, folders, names in os.walk(place, onerror=_refuse):
        below = os.path.relpath(folder, place)
        folders[:] = [f for f in folders if not _ignored(_join(below, f) + "/", ignore)]
        for name in names:
            path = _join(below, name)
            full = os.path.join(folder, name)  # noqa: PTH118 - tens of thousands
            if not _ignored(path, ignore) and not os.path.islink(full):  # noqa: PTH114
                yield path, os.stat(full)  # noqa: PTH116
                seen += 1
                if seen >= MOST_FILES:
                    return


def _refuse(error: OSError) -> None:
    """A folder nobody can look into must not count as being in sync."""
    raise error


def _join(below: str, name: str) -> str:
    return name if below == "." else f"{below}/{name}"


def _ignored(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, g) or fnmatch.fnmatchcase(path, g.removeprefix("**/")) for g in globs)


def _compared(tree: Tree, trees: Mapping[str, Tree], root: str, place: Path) -> dict[str, Any]:
    named = trees.get(tree.source)
    source = _place(named.path if named else tree.source, root)
    ignore = (*tree.ignore, *(named.ignore if named else ()))
    try:
        differing = list(_differing(source, place, ignore, tree.naming))
    except OSError as error:
        return {"source": tree.source, "in_sync": False, "problem": f"{source}: {error.strerror}"}
    return {"source": tree.source, "in_sync": not differing, "differing": differing[:NAMED_DIFFERENCES]}


def _differing(source: Path, place: Path, ignore: Iterable[str], naming: str) -> Iterator[str]:
    """Files of the source that are missing or different. What the other tree has besides is its own affair."""
    for path, seen in _walk(source, ignore):
        target = deployed_name(path) if naming == "chezmoi" else path
        if target is None:
            continue
        there = place / target
        if not there.is_file() or there.stat().st_size != seen.st_size or not _same(source / path, there):
            yield target


_EQUAL: set[tuple[int, ...]] = set()
"""Pairs of files found equal, by what the kernel says of them: while neither changes, neither is read again."""
MOST_REMEMBERED = 200_000
CHUNK = 1 << 20


def _same(one: Path, other: Path) -> bool:
    pair = (*_stamp(one), *_stamp(other))
    if pair in _EQUAL:
        return True
    if not _same_content(one, other):
        return False
    if len(_EQUAL) > MOST_REMEMBERED:
        _EQUAL.clear()
    _EQUAL.add(pair)
    return True


def _stamp(file: Path) -> tuple[int, ...]:
    """The time of the inode's own change is the kernel's: nobody can set it back."""
    seen = file.stat()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _same_content(one: Path, other: Path) -> bool:
    with open(one, "rb") as left, open(other, "rb") as right:
        while True:
            ours, theirs = left.read(CHUNK), right.read(CHUNK)
            if ours != theirs:
                return False
            if not ours:
                return True


def deployed_name(path: str) -> str | None:
    """chezmoi's naming: `dot_config/private_x` is `.config/x`; what it runs, encrypts or fills in is not compared."""
    parts = path.split("/")
    if any(part.startswith(".") for part in parts) or any(_NOT_PLAIN.search(part) for part in parts):
        return None
    return "/".join(re.sub(r"^dot_", ".", _ATTRIBUTES.sub("", part)) for part in parts)

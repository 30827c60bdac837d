"""Named trees of the settings: size, newest change, and whether the content is that of their source."""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.project_events import ProjectFacts, TreeFacts
from holdfast.features.project.jobs.git_status import tilde_path
from holdfast.features.project.jobs.refresh import load_project, report_changes
from holdfast.features.project.settings import DEFAULTS, Tree

MAX_FILES = 50_000
NAMED_DIFFERENCES = 20
# chezmoi's attributes in a file name: `private_dot_x` and the like.
_ATTRIBUTES = re.compile(
    r"^(?:(?:encrypted|private|readonly|empty|executable|exact|literal|symlink|create|modify|remove)_)+"
)
# What chezmoi runs, encrypts, links or fills in has other content at its target.
_NOT_PLAIN = re.compile(r"^(?:run_|encrypted_|symlink_|create_|modify_|remove_)|\.tmpl$")


def look_at_trees(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    settings = call.settings(root) or DEFAULTS
    trees = {name: tree_facts(name, settings.trees, root) for name in settings.trees}
    pid = int(call.job.payload.get("pid") or 0)
    return report_changes(load_project(call.reader, root), ProjectFacts(trees=trees), call.now, pid)


def tree_facts(name: str, trees: Mapping[str, Tree], root: str) -> TreeFacts:
    tree = trees[name]
    folder = _tree_folder(tree.path, root)
    facts = TreeFacts(path=tilde_path(str(folder)))
    try:
        files = dict(_walk_files(folder, tree.ignore))
    except OSError as error:
        facts.problem = f"cannot be read: {error.strerror}"
        return facts
    facts.modified = max((seen.st_mtime_ns // 1_000_000 for seen in files.values()), default=0)
    facts.size_mb = round(sum(seen.st_size for seen in files.values()) / 1_000_000, 1)
    if tree.source:
        _compare_tree(facts, tree, trees, root, folder)
    return facts


def _tree_folder(path: str, root: str) -> Path:
    return Path(root) / Path(path).expanduser()


def _walk_files(top: Path, ignore: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """(path below the tree, what it is) of every plain file. No link is followed; a closed folder is an error."""
    # A tree that is not there is an error; os.walk would give nothing.
    top.stat()
    seen = 0
    for folder, folders, names in os.walk(top, onerror=_raise_error):
        below = os.path.relpath(folder, top)
        # Changed in place: os.walk does not descend into what is removed.
        folders[:] = [f for f in folders if not _is_ignored(_join_path(below, f) + "/", ignore)]
        for name in names:
            path = _join_path(below, name)
            full = os.path.join(folder, name)  # noqa: PTH118 - tens of thousands
            if not _is_ignored(path, ignore) and not os.path.islink(full):  # noqa: PTH114
                yield path, os.stat(full)  # noqa: PTH116
                seen += 1
                if seen >= MAX_FILES:
                    return


def _raise_error(error: OSError) -> None:
    """An unreadable folder must not count as being in sync."""
    raise error


def _join_path(below: str, name: str) -> str:
    return name if below == "." else f"{below}/{name}"


def _is_ignored(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, g) or fnmatch.fnmatchcase(path, g.removeprefix("**/")) for g in globs)


def _compare_tree(facts: TreeFacts, tree: Tree, trees: Mapping[str, Tree], root: str, folder: Path) -> None:
    named = trees.get(tree.source)
    source = _tree_folder(named.path if named else tree.source, root)
    ignore = (*tree.ignore, *(named.ignore if named else ()))
    facts.source = tree.source
    try:
        differing = list(_differing_files(source, folder, ignore, tree.naming))
    except OSError as error:
        facts.in_sync, facts.problem = False, f"{source}: {error.strerror}"
        return
    facts.in_sync, facts.differing = not differing, differing[:NAMED_DIFFERENCES]


def _differing_files(source: Path, folder: Path, ignore: Iterable[str], naming: str) -> Iterator[str]:
    """Files of the source that are missing or different. What the other tree has besides is its own affair."""
    for path, seen in _walk_files(source, ignore):
        target = deployed_name(path) if naming == "chezmoi" else path
        if target is None:
            continue
        there = folder / target
        # Existence and size first: most differences need no reading.
        if not there.is_file() or there.stat().st_size != seen.st_size or not _is_same_file(source / path, there):
            yield target


_EQUAL: set[tuple[int, ...]] = set()
"""Pairs of files found equal, by what the kernel says of them: while neither changes, neither is read again."""
MAX_REMEMBERED = 200_000
CHUNK = 1 << 20


def _is_same_file(one: Path, other: Path) -> bool:
    pair = (*_file_stamp(one), *_file_stamp(other))
    if pair in _EQUAL:
        return True
    if not _same_content(one, other):
        return False
    # The next comparisons fill it again.
    if len(_EQUAL) > MAX_REMEMBERED:
        _EQUAL.clear()
    _EQUAL.add(pair)
    return True


def _file_stamp(file: Path) -> tuple[int, ...]:
    """The kernel sets the inode's change time, so it cannot be set back."""
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

"""What a run of checks says something of: folders of the worktree, by where it was started and what it was limited to."""

import posixpath
import re
from collections.abc import Iterable, Sequence

WHOLE = "."
"""The folder that is the worktree itself."""
# `tests`, `__tests__`, `integration-tests`, `e2e`, `App.Tests`, `AppTests`: what lies there tests what lies around it.
_TEST_FOLDER = re.compile(
    r"(?:^|[-_.])(?i:tests?|specs?|testing|e2e|integration|acceptance|functional|unit)(?:[-_.]|$)|[a-z]Tests?$"
)
# Where compiled tests are started, beside the sources they were built from.
_BUILD_FOLDER = re.compile(r"^(?:\.?_?build|builddir|cmake-build|out|target)(?:[-_.].*|dir)?$", re.I)
_WILDCARD = re.compile(r"[*?\[{]")


def encloses_folder(folder: str, inner: str) -> bool:
    return folder in (WHOLE, "") or inner == folder or inner.startswith(f"{folder.rstrip('/')}/")


def tested_folder(path: str) -> str:
    """What the tests in that folder are about: `api/tests/unit` and `api/build` are about `api`."""
    parts = posixpath.normpath(path).split("/")
    for at, part in enumerate(parts):
        if _TEST_FOLDER.search(part) or _BUILD_FOLDER.match(part):
            return "/".join(parts[:at]) or ("/" if path.startswith("/") else WHOLE)
    return "/".join(parts)


def named_folder(folder: str, name: str) -> str:
    """The folder of a file or folder that was named from `folder`, as far as it holds no wildcard."""
    literal: list[str] = []
    for part in name.partition("::")[0].rstrip("/").split("/"):
        if _WILDCARD.search(part) or part == "...":
            break
        literal.append(part)
    path = "/".join(literal)
    # A name with an ending is a file.
    if "." in posixpath.basename(path).lstrip("."):
        path = posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(folder, path))


def glob_folder(glob: str) -> str:
    """The folder that everything a glob matches lies in: `src` for `src/**`, all for `*.py`."""
    if "/" not in glob:
        return WHOLE
    folder = posixpath.dirname(_WILDCARD.split(f"{glob.rstrip('/')}/", maxsplit=1)[0])
    return folder or ("/" if glob.startswith("/") else WHOLE)


def touches_globs(reach: Sequence[str], globs: Iterable[str]) -> bool:
    """Whether what a run reached and what the globs are about have anything in common."""
    return any(folders_meet(folder, glob_folder(glob)) for glob in globs for folder in reach)


def folders_meet(one: str, other: str) -> bool:
    # A glob with an absolute path may be about any folder, and what lies outside of the worktree about none of it.
    if one.startswith("/") != other.startswith("/"):
        return other.startswith("/")
    return encloses_folder(one, other) or encloses_folder(other, one)


def reaches_globs(reach: Sequence[str], globs: Iterable[str]) -> bool:
    """Whether everything that the globs can match lies in what a run reached."""
    return all(any(encloses_folder(folder, glob_folder(glob)) for folder in reach) for glob in globs)


def reaches_path(reach: Sequence[str], path: str) -> bool:
    return any(encloses_folder(folder, path) for folder in reach)


# ── which tests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def chosen_targets(operands: list[str]) -> list[str]:
    """The paths and names a run was limited to; none where a filter (`-k`) chose, whose value is not known."""
    return [] if any(word.startswith("-") for word in operands) else operands


def all_within(targets: Sequence[str], chosen: Sequence[str]) -> bool:
    """Whether what was chosen includes every one of the targets."""
    return bool(targets) and all(any(_is_within_target(target, one) for one in chosen) for target in targets)


def _is_within_target(target: str, chosen: str) -> bool:
    name, folder = target.removeprefix("./"), chosen.removesuffix("/...").removeprefix("./").rstrip("/")
    # Paths go on with `::`, `/` or `[`; dotted names of tests with a dot.
    marks = ("::", "/", "[") if "/" in name or "/" in folder else ("::", "[", ".")
    return name == folder or name.startswith(tuple(f"{folder}{mark}" for mark in marks))

"""Path globs (`src/**`, `*.py`, `**/test_*.py`) that no pattern makes slow."""

import fnmatch
import re
from functools import lru_cache

Segments = tuple[re.Pattern[str] | None, ...]
"""None is `**`."""


@lru_cache(20_000)
def glob_matches(glob: str, path: str, base: str = "") -> bool:
    """Match an absolute path; a glob without a leading `/` or `~` is relative to `base`. `./*.py` are only those in `base` itself."""
    if glob[0] in "/~":
        return _segments_match(_glob_segments(glob), tuple(path.split("/")))
    inside = _path_below(path, base)
    if inside is None:
        return glob.startswith("**/") and _segments_match(_glob_segments(glob), tuple(path.split("/")))
    if "/" not in glob and glob != "**":  # as in .gitignore: a bare name is that name in any folder
        return _glob_segments(glob)[0].match(inside.rpartition("/")[2]) is not None  # type: ignore[union-attr]
    return _segments_match(_glob_segments(glob.removeprefix("./")), tuple(inside.split("/")))


def any_matches(globs: tuple[str, ...], path: str, base: str) -> bool:
    return any(glob_matches(glob, path, base) for glob in globs)


def _path_below(path: str, base: str) -> str | None:
    if not path.startswith("/"):
        return path
    return path[len(base) + 1 :] if base and path.startswith(f"{base}/") else None


@lru_cache(2_000)
def _glob_segments(glob: str) -> Segments:
    return tuple(None if part == "**" else re.compile(fnmatch.translate(part)) for part in glob.rstrip("/").split("/"))


def _segments_match(segments: Segments, parts: tuple[str, ...]) -> bool:
    """Track which prefixes of the path the pattern can have consumed: linear in each."""
    reached = {0}
    for segment in segments:
        if segment is None:
            # `**` consumes any number of parts.
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {n + 1 for n in reached if n < len(parts) and segment.match(parts[n])}
    return len(parts) in reached

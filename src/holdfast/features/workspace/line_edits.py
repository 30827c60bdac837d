"""Compares and merges texts line by line."""

from collections.abc import Sequence
from itertools import takewhile

MOST_LINES = 10_000
Edit = tuple[int, int, list[bytes]]
"""Lines of the old text from the first number up to the second, and what is there in the new one."""


def split(content: bytes) -> list[bytes] | None:
    """None if it is no text, or too long to be compared."""
    lines = content.splitlines(keepends=True)
    return None if b"\0" in content[:8000] or len(lines) > MOST_LINES else lines


def find_edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[Edit]:
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    rest = min(len(old), len(new)) - start
    backwards = zip(reversed(old), reversed(new), strict=False)
    end = min(rest, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], backwards)))
    # Imported here, so that the daemon starts without it.
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False)
    return [
        (start + i1, start + i2, list(new[start + j1 : start + j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both changes of a text, as `git merge-file` makes them; None if they concern the same or touching lines."""
    texts = [split(one) for one in (base, ours, theirs)]
    if texts[0] is None or texts[1] is None or texts[2] is None:
        return None
    merged = list(texts[0])
    first, second = find_edits(texts[0], texts[1]), find_edits(texts[0], texts[2])
    if any(_touch(one, other) for one in first for other in second if one != other):
        return None
    for begin, end, lines in sorted([*first, *(one for one in second if one not in first)], reverse=True):
        merged[begin:end] = lines
    return b"".join(merged)


def _touch(one: Edit, other: Edit) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def owners_of(versions: Sequence[tuple[bytes, str]]) -> list[str] | None:
    """Who wrote each line of the last version; the versions of a text with their writers, oldest first."""
    lines: list[bytes] = []
    owners: list[str] = []
    for content, by in versions:
        new = split(content)
        if new is None:
            return None
        for begin, end, added in reversed(find_edits(lines, new)):
            owners[begin:end] = [by] * len(added)
        lines = new
    return owners


def foreign_lines(committed: bytes, versions: Sequence[tuple[bytes, str]], reader: str) -> dict[str, str] | None:
    """The numbers of uncommitted lines that others than the reader wrote, by writer; None if that cannot be said."""
    owners, old, new = owners_of(versions), split(committed), split(versions[-1][0])
    if owners is None or old is None or new is None:
        return None
    foreign: dict[str, list[int]] = {}
    moved = 0
    for begin, end, added in find_edits(old, new):
        for number in range(begin + moved, begin + moved + len(added)):
            if owners[number] != reader:
                foreign.setdefault(owners[number], []).append(number + 1)
        moved += len(added) - (end - begin)
    return {by: _as_ranges(numbers) for by, numbers in foreign.items()}


def _as_ranges(numbers: Sequence[int]) -> str:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ", ".join(f"{one}-{last}" if last > one else str(one) for one, last in ranges)

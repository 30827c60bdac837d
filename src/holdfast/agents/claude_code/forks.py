"""Claude Code's forks: a forked session's transcript begins with a copy of the one it came from, under its own session id."""

# The records keep their ids, so files that begin with the same message are a family. Which of them is the original
# shows in what is not copied: a live session has records without an id between its messages, a copy has none.

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from holdfast.agents.source import numbered_lines
from holdfast.analysis.usage.reader import PARSE_ERRORS

# Lines within which the first message of a transcript is looked for.
HEAD_LINES = 200


class _Line(msgspec.Struct):
    type: str = ""
    uuid: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def copied_ids(path: Path) -> frozenset[str]:
    """Ids of records that this transcript has from those it was forked from."""
    family = _families(path.parent, path.parent.stat().st_mtime_ns).get(_first_message(path), ())
    if len(family) < 2 or path not in family:
        return frozenset()
    in_order = sorted(family, key=lambda one: (_records_before_gap(one), one.stat().st_mtime_ns, one.name))
    earlier = in_order[: in_order.index(path)]
    return frozenset(line.uuid for one in earlier for line in _lines(one) if line.uuid)


@lru_cache(64)
def _families(folder: Path, _changed: int) -> dict[str, tuple[Path, ...]]:
    """By the id of the first message. `_changed` makes a folder that changed another one."""
    families: dict[str, tuple[Path, ...]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if first := _first_message(path):
            families[first] = (*families.get(first, ()), path)
    return families


def _first_message(path: Path) -> str:
    head = islice(_lines(path), HEAD_LINES)
    return next((line.uuid for line in head if line.uuid and line.type in ("user", "assistant")), "")


def _records_before_gap(path: Path) -> int:
    """How many records with an id come first without a gap: in a copy all that was copied."""
    count = 0
    for line in _lines(path):
        if line.uuid:
            count += 1
        elif count:
            break
    return count


def _lines(path: Path) -> Iterator[_Line]:
    try:
        for _, line in numbered_lines(path):
            try:
                yield _decode(line)
            except PARSE_ERRORS:
                continue
    except OSError:
        return

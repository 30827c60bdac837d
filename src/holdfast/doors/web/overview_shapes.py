"""A session at a glance, as SVG shapes."""

import bisect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.doors.web.session_rows import lane_class

WIDTH = 1000.0
GAP = 4.0
SHORTEST = 3.0
LANE_ROWS = 5


def overview_shapes(overview: Mapping[str, Any], checks: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    # A running turn ends now; none has zero length.
    turns = [{**turn, "end": max(turn["end"] or overview["to"], turn["at"] + 1)} for turn in overview["turns"]]
    if not turns:
        return {"turns": [], "lanes": [], "ticks": [], "checks": [], "rows": 0}
    axis = _Axis(turns)
    lanes = [_lane_shape(axis, lane, overview["to"], row) for row, lane in enumerate(overview["lanes"][-LANE_ROWS:])]
    return {
        "turns": [
            {**turn, "x": round(axis.left[n], 2), "width": round(axis.width[n], 2)} for n, turn in enumerate(turns)
        ],
        "lanes": lanes,
        "ticks": [{**one, "x": round(axis.x(one["at"]), 1)} for one in overview["decisions"]],
        "checks": [{**one, "x": round(axis.x(one["at"]), 1)} for one in checks],
        "rows": len(lanes),
    }


def _lane_shape(axis: "_Axis", lane: Mapping[str, Any], to: int, row: int) -> dict[str, Any]:
    start, end = axis.x(lane["at"]), axis.x(lane["end"] or to)
    width = round(max(SHORTEST, end - start), 1)
    return {**lane, "x": round(start, 1), "width": width, "row": row, "class": lane_class(lane["id"])}


class _Axis:
    """Maps time to position. Only turns take up width."""

    def __init__(self, turns: Sequence[Mapping[str, Any]]) -> None:
        # With many turns the gaps shrink, so that they take at most a quarter.
        gap = min(GAP, WIDTH / (4 * len(turns)))
        width = WIDTH - gap * (len(turns) - 1)
        lasted = [turn["end"] - turn["at"] for turn in turns]
        least = min(SHORTEST, width / len(turns) / 2)
        spare, whole = width - least * len(turns), sum(lasted)
        self.width = [least + spare * ms / whole for ms in lasted]
        before = itertools.accumulate(self.width, initial=0.0)
        self.left = [x + gap * n for n, x in zip(range(len(turns)), before, strict=False)]
        self._starts = [turn["at"] for turn in turns]
        self._lasted = lasted

    def x(self, at: int) -> float:
        n = max(0, bisect.bisect_right(self._starts, at) - 1)
        share = min(1.0, max(0.0, (at - self._starts[n]) / self._lasted[n]))
        value: float = self.left[n] + share * self.width[n]
        return value

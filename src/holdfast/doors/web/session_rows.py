"""Builds a session's rows as a tree: labels, styles, nesting and bars."""

import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

LANE_GOES_ON = "lane.continued"
"""Not an event: the head of a subagent's rows if it began in an earlier block."""
LABELS = {
    "session.started": "Start", "session.ended": "End", "prompt.submitted": "Prompt", "turn.ended": "Answer",
    "turn.failed": "Failed", "turn.interrupted": "Interrupted", "turn.recovered": "Closed", "turn.escaped": "Escaped",
    "subagent.started": "Subagent", "subagent.ended": "Ended", "compact.ended": "Compacted",
    "notification": "Notice", "permission.requested": "Asks", "permission.denied": "Refused", "model.switched": "Model",
    "task.created": "Task", "task.completed": "Task done", "elicitation.requested": "Asks", "note.added": "Note",
    "session.lost": "Gone", "session.stale": "Stale", "session.left": "Left", "session.closed": "Closed",
    "session.reopened": "Reopened", "session.linked": "Continues", "session.branched": "Branched",
    "answer.undelivered": "Not delivered", "check.finished": "Check", "git.acted": "Git",
    "gates.triggered": "Gate opened", "gates.satisfied": "Gate satisfied", "gates.approved": "Gate approved",
    "gates.cleared": "Gate reopened", "gates.bypassed": "Gate bypassed", "gates.attempted": "Gate attempt",
    "gates.paused": "Gates paused", "gates.resumed": "Gates resumed", "workspace.changed": "Files", LANE_GOES_ON: "Subagent, continued",
}  # fmt: skip
LOOKS = {
    "answer.undelivered": "failed",
    "prompt.submitted": "prompt", "turn.ended": "answer", "turn.failed": "failed", "tool.failed": "failed",
    "permission.denied": "failed", "session.lost": "failed", "permission.requested": "asks", "notification": "asks",
    "subagent.started": "sub", "subagent.ended": "sub", "tool.finished": "tool", LANE_GOES_ON: "sub",
    "gates.triggered": "gate", "gates.satisfied": "check passed", "gates.approved": "check passed",
    "gates.cleared": "gate", "gates.bypassed": "failed", "gates.attempted": "failed", "gates.paused": "gate",
    "gates.resumed": "gate", "git.acted": "gate", "workspace.changed": "gate",
}  # fmt: skip
# Colours in the style sheet.
LANES = 5


def row_label(row: Mapping[str, Any]) -> str:
    if row["kind"] == "decision.made":
        if row["verdict"] == "deny":
            return "Denied"
        return "Injected context" if row["injected"] else "Notice" if row["verdict"] in ("", "none") else "Decided"
    if row["kind"].startswith("tool."):
        return str(row["tool"] or "Tool").rpartition("__")[2].removeprefix("browser_")  # mcp__SERVER__TOOL
    if row["kind"] == "turn.ended" and not row["text"]:
        return "Turn end"  # What was answered is not known.
    value: str = LABELS.get(row["kind"], row["kind"])
    return value


def row_style(row: Mapping[str, Any]) -> str:
    if row["kind"] == "decision.made":
        return "denied" if row["verdict"] == "deny" else "told"
    if row.get("ok") is False:
        return "failed"
    if row["kind"] == "check.finished":
        return {"passed": "check passed", "failed": "failed"}.get(str(row["text"]).partition(":")[0], "check")
    return LOOKS.get(row["kind"], "quiet")


def row_text(row: Mapping[str, Any]) -> str:
    """The rest of the line, without what the label says."""
    text = str(row["text"])
    if row["kind"] == "decision.made" and (row["injected"] or row["verdict"] not in ("", "none")):
        verdict, _, text = text.partition(": ")
        return f"{row['injected']} tokens: {text}" if row["injected"] else text or verdict
    if row["kind"].startswith("subagent."):
        return f"{row['lane_type']} {text}".strip() or row["lane"]
    if row["kind"].startswith("tool.") and not text:
        return str(row["tool"] or "").removeprefix("mcp__").rpartition("__")[0]
    return text


def lane_class(lane: str) -> str:
    """The same lane has the same colour everywhere."""
    return f"lane-{zlib.crc32(lane.encode('utf-8', 'replace')) % LANES + 1}" if lane else ""


# ── the tree ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def build_tree(rows: Sequence[Mapping[str, Any]], *, fold_idle: bool = True) -> list[dict[str, Any]]:
    """The rows with a subagent's rows below their call, each with `bar`, `depth` and `under`; a turn's prompt is
    omitted, because it is the turn's head."""
    # By when things began: a call comes before what its subagent did.
    listed = sorted((dict(row) for row in rows if not is_turn_head(row)), key=lambda row: row["began"] or row["at"])
    place_bars(listed, fold_idle=fold_idle)
    return _nest_lanes(listed)


def list_flat(rows: Sequence[Mapping[str, Any]], *, fold_idle: bool = True) -> list[dict[str, Any]]:
    """The same without a tree, for some of the rows only."""
    listed = [{**row, "depth": 0, "under": "", "children": 0} for row in rows]
    place_bars(listed, fold_idle=fold_idle)
    return listed


def is_turn_head(row: Mapping[str, Any]) -> bool:
    return bool(row["kind"] == "prompt.submitted" and row["seq"] == row["turn_first"])


def _nest_lanes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    heads: list[dict[str, Any]] = []
    lanes: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        lane = row["lane"]
        if not lane:
            heads.append({**row, "depth": 0, "under": ""})
        elif lane in lanes:
            lanes[lane].append({**row, "depth": 1, "under": lane})
        elif row["kind"] != "subagent.started":
            heads.append({**_continued_row(row), "depth": 0, "under": ""})
            lanes[lane] = [{**row, "depth": 1, "under": lane}]
        else:
            lanes[lane] = []
            if not _lane_joins_its_call(row, heads):
                heads.append({**row, "depth": 0, "under": ""})
    flat = []
    for head in heads:
        below = lanes.get(head["lane"], []) if head["lane"] else []
        flat += [{**head, "children": len(below)}, *({**row, "children": 0} for row in below)]
    return flat


def _lane_joins_its_call(started: Mapping[str, Any], heads: Sequence[dict[str, Any]]) -> bool:
    """The call that started a subagent becomes the head of its rows, so that the subagent is shown once. Of several it
    is the first that still runs; an agent whose calls return at once started it with the latest."""
    begins = f"{started['lane_type']}:"
    calls = [
        head for head in heads
        if head.get("action") == "agent" and not head["lane"] and str(head["text"]).startswith(begins)
    ]  # fmt: skip
    call = next((one for one in calls if one["began"] + one["ms"] >= started["at"]), calls[-1] if calls else None)
    if call:
        call.update(lane=started["lane"], lane_type=started["lane_type"])
    return call is not None


def _continued_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "kind": LANE_GOES_ON, "text": "", "tool": "", "ms": 0, "bar": None, "ok": None, "outcome": ""}


class Bar(NamedTuple):
    """In thousandths of the width. `idle` is where the wait before it begins, negative without one; `waited` is its
    length."""

    x: float
    width: float
    idle: float = -1.0
    waited: int = 0
    cut: bool = False
    """The wait before it is drawn shorter than it was."""


LEAST_WIDTH = 28.0
"""At least 6 pixels where the bars are 220 pixels wide."""
LONGEST_WAIT_SHARE = 0.4
"""The most width that waits between calls take, however long they were."""


def place_bars(rows: Sequence[dict[str, Any]], *, fold_idle: bool) -> None:
    """Give each row its `bar` on one time axis. Idle time is drawn shorter than it was."""
    spans = sorted((row["began"] or row["at"], (row["began"] or row["at"]) + row["ms"]) for row in rows)
    if not spans:
        return
    axis = TimeAxis(spans, fold_idle=fold_idle)
    for row in rows:
        row["bar"] = axis.bar(row["began"] or row["at"], row["ms"])


class TimeAxis:
    """Maps time to position, with shortened gaps."""

    def __init__(self, spans: Sequence[tuple[int, int]], *, fold_idle: bool) -> None:
        busy = _join_spans(spans)
        # Idle time between two busy stretches.
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(busy)]
        longest = _longest_gap(gaps, sum(end - start for start, end in busy)) if fold_idle else max(gaps, default=0)
        self._starts = [start for start, _ in busy]
        self._ends = [end for _, end in busy]
        self._gaps, self._longest = [0, *gaps], longest
        drawn = accumulate(
            (min(gap, longest) + end - start for gap, (start, end) in zip(self._gaps, busy, strict=True)), initial=0.0
        )
        self._left = [x + min(gap, longest) for x, gap in zip(drawn, self._gaps, strict=False)]
        self._whole = max(1.0, self._left[-1] + busy[-1][1] - busy[-1][0])

    def bar(self, began: int, ms: int) -> Bar:
        n = max(0, bisect_right(self._starts, began) - 1)
        # Room is left for the last bar, which has a minimum width too.
        scale = (1000.0 - LEAST_WIDTH) / self._whole
        x = round((self._left[n] + began - self._starts[n]) * scale, 1)
        width = round(max(LEAST_WIDTH, min(ms * scale, 1000.0 - x)), 1)
        gap = self._gaps[n]
        if began != self._starts[n] or not gap:
            return Bar(x, width)
        return Bar(x, width, round(x - min(gap, self._longest) * scale, 1), gap, gap > self._longest)


def _join_spans(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping spans."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _longest_gap(gaps: Sequence[int], busy: int) -> float:
    """How long a gap may be drawn, so that all gaps together take LONGEST_WAIT_SHARE of the width."""
    if not gaps or not busy:
        return max(gaps, default=0)
    # If waits may take 40 % of the width, busy time takes the other 60 %.
    allowed = busy * LONGEST_WAIT_SHARE / (1 - LONGEST_WAIT_SHARE)
    shorter = 0.0
    for n, gap in enumerate(sorted(gaps)):
        left = len(gaps) - n
        # All longer gaps share what the shorter ones leave.
        if shorter + gap * left > allowed:
            return max(0.0, (allowed - shorter) / left)
        shorter += gap
    return max(gaps)

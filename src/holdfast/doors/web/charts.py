"""Bars over time as SVG shapes, with a labelled axis: stacked by series, every value on hover."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

HEIGHT = 100.0
BAR = 20.0
MOST_SERIES = 5
"""Colours in the style sheet; the rest is one more series."""
REST = "others"
STEPS = (1, 2, 2.5, 5, 10)
MOST_LABELS, ALL_LABELS = 5, 6
"""Up to six are all shown."""


def stacked_bars(
    labels: Sequence[str], values: Mapping[str, Mapping[str, float]], shown: Callable[[float], str], limit: float = 0
) -> dict[str, Any]:
    """`values`: of each label (a day or a month), the value of each series. Heights are in hundredths of the axis;
    `limit` is drawn as a line."""
    series = _largest_series(values)
    columns = [_grouped(values.get(label, {}), series) for label in labels]
    top = axis_top(max([limit, *(sum(column.values()) for column in columns)]))
    return {
        "series": [{"name": name, "n": n} for n, name in enumerate(series)],
        "bars": [
            _bar(label, column, series, top, n, shown)
            for n, (label, column) in enumerate(zip(labels, columns, strict=True))
        ],
        "width": BAR * max(1, len(labels)),
        "ticks": [shown(top), shown(top / 2), shown(0)],
        "labels": _labels_of_axis(labels),
        "limit": {"y": round(HEIGHT - limit / top * HEIGHT, 2), "text": shown(limit)} if limit else None,
    }


def _labels_of_axis(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Evenly spread, with the first and the last; `x` is the middle of the bar in percent."""
    count = len(labels) if len(labels) <= ALL_LABELS else MOST_LABELS
    chosen = sorted({round(n * (len(labels) - 1) / max(1, count - 1)) for n in range(count)})
    return [{"x": round((n + 0.5) / len(labels) * 100, 2), "text": short_day(labels[n])} for n in chosen]


def short_day(label: str) -> str:
    """`2026-11-03` as `3 Nov`, `2026-11` as `Nov`, the first month of a year with the year."""
    if len(label) > len("2026-11"):
        return f"{date.fromisoformat(label):%-d %b}"
    month = date.fromisoformat(f"{label}-01")
    return f"{month:%b %Y}" if month.month == 1 else f"{month:%b}"


def axis_top(most: float) -> float:
    """The next round number."""
    if most <= 0:
        return 1
    size = 10.0 ** (len(str(int(most))) - 1) if most >= 1 else 0.1
    return next(step * size for step in STEPS if step * size >= most)


def _largest_series(values: Mapping[str, Mapping[str, float]]) -> list[str]:
    totals: dict[str, float] = {}
    for column in values.values():
        for name, value in column.items():
            totals[name] = totals.get(name, 0) + value
    order = sorted((name for name in totals if totals[name] > 0), key=lambda name: (-totals[name], name))
    return order if len(order) <= MOST_SERIES else [*order[: MOST_SERIES - 1], REST]


def _grouped(column: Mapping[str, float], series: Sequence[str]) -> dict[str, float]:
    grouped: dict[str, float] = {}
    for name, value in column.items():
        kept = name if name in series else REST
        grouped[kept] = grouped.get(kept, 0) + value
    return grouped


def _bar(
    label: str, column: Mapping[str, float], series: Sequence[str], top: float, n: int, shown: Callable[[float], str]
) -> dict[str, Any]:
    parts, below = [], 0.0
    for number, name in enumerate(series):
        height = column.get(name, 0) / top * HEIGHT
        if height:
            parts.append({"n": number, "y": round(HEIGHT - below - height, 2), "height": round(height, 2)})
            below += height
    named = "; ".join(f"{name} {shown(column[name])}" for name in series if column.get(name))
    text = f"{label}: {shown(sum(column.values()))}" + (f" ({named})" if named else "")
    return {"x": n * BAR, "label": label, "parts": parts, "text": text}

"""Figures as ratios inside one run: machines are noisy, so a number alone says nothing."""

from collections.abc import Sequence
from statistics import median


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def p50(values: Sequence[float]) -> float:
    return median(values)


def p99(values: Sequence[float]) -> float:
    return percentile(values, 0.99)


def ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.2f} ms"


def heading(text: str) -> None:
    print(f"\n{text}\n{'─' * len(text)}", flush=True)


def figure(
    name: str, value: float, target: float, *, unit: str = "×", more_is_better: bool = False, note: str = ""
) -> bool:
    """One line: the figure, its target, whether it is reached."""
    good = value >= target if more_is_better else value <= target
    sign = "≥" if more_is_better else "≤"
    mark = "✓" if good else "✗"
    print(f"  {mark} {name:<58} {value:>8.2f} {unit:<3} target {sign} {target:g} {unit}  {note}", flush=True)
    return good


def fact(name: str, value: str) -> None:
    print(f"    {name:<58} {value:>12}", flush=True)

"""What `holdfast up` shows in the end: your last days, from the log."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.analysis.usage.report import format_money
from holdfast.core.errors import HoldfastError
from holdfast.doors.cli import render
from holdfast.doors.cli.sessions import NEEDS

MOST_NAMED = 3
NEXT = (
    ("holdfast dashboard", "every session, with its calls, checks and cost"),
    ("holdfast session list --all", "the same in the terminal"),
    ('holdfast history "WORDS"', "find what was said, run or changed"),
)


def recent_days() -> dict[str, Any]:
    """Empty if nothing is on record, or the daemon is of an older version."""
    try:
        figures: dict[str, Any] = client.ask_view("log.figures")
        if not figures["prompts"]:
            return {}
        period = {"since": figures["since"], "until": figures["until"]}
        figures["cost"] = client.ask_view("cost.report", by="model", **period)["total"]
        figures["waiting"] = [row for row in client.ask_view("sessions.who")["sessions"] if row["needs"]]
    except HoldfastError:
        return {}
    return figures


def show_recent_days(figures: dict[str, Any]) -> None:
    render.say(_title(figures), "bold")
    for name, value in _rows(figures):
        render.out.print(Text(f"  {name:<10}", style="dim") + Text(render.clean_line(value, 300)))
    render.out.print("Go on:")
    for command, why in NEXT:
        line = Text(f"  {command}", style="cyan")
        wide = not render.out.is_terminal or render.out.width >= 80
        render.out.print(line + Text(f"{' ' * (32 - len(line)) if wide else f'{chr(10)}      '}{why}", style="dim"))


def _title(figures: dict[str, Any]) -> str:
    if figures["until"] == figures["now"]:
        return "Your last 30 days"
    first, last = (time.strftime("%d %b %Y", time.localtime(figures[name] / 1000)) for name in ("since", "until"))
    return f"Your last 30 days on record ({first} to {last})"


def _rows(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    by_name: dict[str, int] = {}
    for path, sessions in figures["projects"].items():
        name = _project_name(path)
        by_name[name] = by_name.get(name, 0) + sessions
    yield "sessions", f"{figures['sessions']:,}, with {render.counted(figures['prompts'], 'prompt')}"
    yield (
        "agents",
        _most_of({AGENTS[name].title if name in AGENTS else name: n for name, n in figures["agents"].items()}),
    )
    yield "projects", _most_of(by_name)
    cost = figures["cost"]
    tokens = cost["tokens"]["total"]
    yield (
        "cost",
        f"{format_money(cost)}, {_count_in_words(tokens)} tokens" if tokens else "no token use is on record",
    )
    yield from _check_rows(figures["checks"])
    yield from _error_rows(figures)
    yield "waiting", _waiting_text(figures["waiting"])


def _count_in_words(count: int) -> str:
    for size, word in ((1_000_000_000, "billion"), (1_000_000, "million")):
        if count >= size:
            return f"{count / size:.1f} {word}"
    return f"{count:,}"


def _project_name(path: str) -> str:
    """Worktrees in a folder of the project are counted as the project."""
    return Path(path.partition("/.worktrees/")[0].partition("/.claude/")[0]).name or path


def _most_of(counts: dict[str, int]) -> str:
    # By name where the counts are the same: the same list each time.
    order = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    named = ", ".join(f"{name} ({n})" for name, n in order[:MOST_NAMED])
    more = len(counts) - MOST_NAMED
    return f"{named}, and {more} more" if more > 0 else named


def _check_rows(checks: dict[str, dict[str, int]]) -> Iterator[tuple[str, str]]:
    """What proved something: runs that could not be judged, or did not run, are left out."""
    name = "checks"
    for kind, found in checks.items():
        passed, failed = found.get("passed", 0), found.get("failed", 0)
        if passed or failed:
            yield name, f"{kind}: {passed} passed, {failed} failed"
            name = ""
    if name:
        yield name, "none ran"


def _error_rows(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "errors", render.counted(figures["failed_calls"], "call") + " failed"
    for error in figures["errors"][:MOST_NAMED]:
        yield "", f"{render.counted(error['sessions'], 'session')}: {render.clean_line(error['text'], 60)}"


def _waiting_text(waiting: list[dict[str, Any]]) -> str:
    if not waiting:
        return "nothing waits for you"
    parts = [f"{row['alias']} {NEEDS.get(row['needs']['what'], row['needs']['what'])}" for row in waiting]
    return "; ".join(parts[:MOST_NAMED])

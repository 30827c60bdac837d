"""Transcripts of Claude Code that are easy to count wrongly: ours and ccusage's figures, equal or different for a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.usage.prices import load_table
from holdfast.analysis.usage.report import sum_all_records
from tests.analysis.usage.kit import scan_usage, total_of

from .test_usage import ccusage

pytestmark = pytest.mark.real
SONNET, HAIKU, OPUS = "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001", "claude-opus-4-1-20250805"
Lines = list[dict[str, Any]]


def line(n: int, model: str = SONNET, *, at: int = 0, output: int = 50, request: str | None = "", **more: Any) -> Any:
    """One line of a message; `at` makes it another line of the same one."""
    tiers = {f"ephemeral_{name}_input_tokens": more.pop(name, 0) for name in ("5m", "1h")}
    usage = {
        "input_tokens": more.pop("input", 100), "output_tokens": output, "cache_read_input_tokens": more.pop("cached", 0),
        "cache_creation_input_tokens": sum(tiers.values()), "cache_creation": tiers,
    }  # fmt: skip
    message = {"id": f"msg_{n}", "role": "assistant", "model": model, "content": [], "usage": usage}
    made = {
        "type": "assistant",
        "uuid": f"u{n}.{at}",
        "sessionId": "s",
        "timestamp": f"2026-11-16T10:{at:02}:{n:02}.000Z",
    }
    asked = {} if request is None else {"requestId": request or f"req_{n}"}
    return {**made, **asked, "version": "2.1.325", "message": message, **more}


def with_usage(made: Any, **usage: Any) -> Any:
    return {**made, "message": {**made["message"], "usage": {**made["message"]["usage"], **usage}}}


RESUMED = [line(1), line(2)]
EQUAL: dict[str, dict[str, Lines]] = {
    "plain": {"s": [line(n, input=100 + n) for n in range(9)]},
    "cache tiers": {
        "s": [line(1, cached=20_000, **{"5m": 300, "1h": 40}), line(2, **{"5m": 900}), line(3, **{"1h": 70})]
    },
    "several models": {"s": [line(1), line(2, HAIKU), line(3, OPUS, cached=7000)]},
    "subagents": {"s": [line(1)], "s/subagents/agent-a": [line(2, HAIKU, agentId="a", isSidechain=True)]},
    "side chain in the same file": {"s": [line(1), line(2, isSidechain=True)]},
    "resumed": {"s": RESUMED, "t": [*({**old, "sessionId": "t"} for old in RESUMED), line(3, sessionId="t")]},
    "streamed": {"s": [line(1, output=1), line(1, at=1, output=77), line(2, output=80), line(2, at=1, output=3)]},
    "one message, two requests": {"s": [line(1, request="a"), line(1, at=1, request="b")]},
    "forked twice": {
        "s": RESUMED,
        "t": [*({**old, "sessionId": "t"} for old in RESUMED), line(3, sessionId="t")],
        "u": [*({**old, "sessionId": "u"} for old in [*RESUMED, line(3)]), line(4, sessionId="u")],
    },
    "a message in the session's file and its subagent's": {
        "s": [line(1), line(2, HAIKU, agentId="a", isSidechain=True)],
        "s/subagents/agent-a": [line(2, HAIKU, agentId="a", isSidechain=True)],
    },
    "fast mode": {
        "s": [
            with_usage(line(n, model, cached=9000, **{"5m": 300, "1h": 40}), speed="fast")
            for n, model in enumerate(("claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5"))
        ],
    },
    "ordinary speed": {"s": [with_usage(line(1, "claude-opus-4-6"), speed="standard")]},
    "searches on the web and another tier of service": {
        "s": [with_usage(line(1), server_tool_use={"web_search_requests": 3}, service_tier="priority")]
    },
    "cache writes without tiers": {
        "s": [with_usage(line(1), cache_creation=None, cache_creation_input_tokens=5000)],
    },
    "cache writes in tiers only": {"s": [with_usage(line(1, **{"5m": 300, "1h": 40}), cache_creation_input_tokens=0)]},
    "thinking": {"s": [with_usage(line(1, output=900), output_tokens_details={"thinking_tokens": 700})]},
    "names of other clouds": {
        "s": [line(1, "claude-sonnet-4-5@20250929"), line(2, f"{SONNET}[1m]"), line(3, "anthropic/claude-sonnet-4-5")]
    },
    "exactly 200,000 tokens": {"s": [line(1, input=100_000, cached=100_000)]},
    "a model nobody has a price for": {"s": [line(1), line(2, "claude-nobody-9")]},
}
DIFFERENT: dict[str, tuple[Lines, int, int]] = {
    # (lines, our total, theirs)
    "no request id: lines of one message are one call": (
        [line(1, request=None), line(1, at=1, request=None)],
        150,
        300,
    ),
    "an error that no model said": ([line(1), line(2, "<synthetic>", isApiErrorMessage=True)], 150, 300),
    "a number with a point": ([line(1), line(2, input=12.0)], 212, 150),
    "a number that cannot be one: only that kind is unknown": ([line(1), line(2, input=-5)], 200, 150),
    "a number beyond belief": ([line(1), line(2, input=10**15)], 200, 10**15 + 200),
    "no time": ([line(1), {**line(2), "timestamp": None}], 300, 150),
}


def write(home: Path, files: dict[str, Lines]) -> None:
    for name, lines in files.items():
        file = home / ".claude" / "projects" / "-p" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        # Without spaces, as Claude Code writes: ccusage does not see others.
        file.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))


def ours(home: Path) -> dict[str, int]:
    records = list(scan_usage(home, ["claude-code"]))
    found, cost = total_of([record.spent for record in records]), sum_all_records(records, load_table()).cost
    counted = (found.input, found.output, found.cache_read, found.total, cost)
    return dict(zip(("input", "output", "cache_read", "total", "cost"), (n or 0 for n in counted), strict=True))


@pytest.mark.parametrize("case", EQUAL)
def test_figures_are_the_same(case: str, tmp_path: Path) -> None:
    write(tmp_path, EQUAL[case])
    mine, theirs = ours(tmp_path), ccusage(tmp_path)
    assert abs(mine.pop("cost") - theirs.pop("cost")) <= 9, "each call is rounded"
    assert mine == theirs


@pytest.mark.parametrize("case", DIFFERENT)
def test_figures_differ_for_this_reason(case: str, tmp_path: Path) -> None:
    lines, mine, theirs = DIFFERENT[case]
    write(tmp_path, {"s": lines})
    assert (ours(tmp_path)["total"], ccusage(tmp_path)["total"]) == (mine, theirs)

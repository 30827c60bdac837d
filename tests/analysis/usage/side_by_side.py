"""The cost of the same generated transcripts by three programs: `python -m tests.analysis.usage.side_by_side CCUSAGE AGENTSVIEW`.

The two are programs of others, installed by hand (npm: ccusage, pip: agentsview); each is run offline with its own prices. The
table in docs/cost.md is what this prints.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.analysis.usage.generate import Generator
from tests.kit import World

SESSIONS, MESSAGES = 60, 40
KINDS = ("input", "output", "cache_read", "cache_write", "total")
Figures = dict[str, float]


def main(ccusage: str, agentsview: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        generator = Generator(world.home)
        generator.write(SESSIONS, MESSAGES)
        env = {"HOME": str(world.home), "PATH": os.environ["PATH"], "TZ": "UTC"}
        try:
            rows = {
                "what the model said": said_by(generator),
                "Holdfast": asked_of_holdfast(world),
                "ccusage": asked_of_ccusage(ccusage, env),
                "agentsview": asked_of_agentsview(agentsview, env),
            }
        finally:
            world.close()
    for name, figures in rows.items():
        cells = [f"{figures[kind]:,}" for kind in KINDS] + [f"${figures['cost']:.6f}" if "cost" in figures else ""]
        print(f"| {name} | {' | '.join(cells)} |")


def said_by(generator: Generator) -> Figures:
    usages = generator.said.values()
    found = {
        "input": sum(u.input or 0 for u in usages), "output": sum(u.output or 0 for u in usages),
        "cache_read": sum(u.cache_read or 0 for u in usages),
        "cache_write": sum((u.cache_write_5m or 0) + (u.cache_write_1h or 0) for u in usages),
    }  # fmt: skip
    return {**found, "total": sum(found.values())}


def asked_of_holdfast(world: World) -> Figures:
    """As a person does: `holdfast data import`, then `holdfast cost`."""
    world.json("import", "claude-code")
    total = world.json("cost", "model", "--since", "2020-01-01")["total"]
    tokens = total["tokens"]
    found = {
        "input": tokens["input"], "output": tokens["output"], "cache_read": tokens["cache_read"],
        "cache_write": tokens.get("cache_write_5m", 0) + tokens.get("cache_write_1h", 0),
    }  # fmt: skip
    return {**found, "total": sum(found.values()), "cost": total["cost_micro_dollars"] / 1e6}


def asked_of_ccusage(program: str, env: dict[str, str]) -> Figures:
    totals = ask([program, "claude", "daily", "--json", "--offline"], env)["totals"]
    return {
        "input": totals["inputTokens"], "output": totals["outputTokens"], "cache_read": totals["cacheReadTokens"],
        "cache_write": totals["cacheCreationTokens"], "total": totals["totalTokens"], "cost": totals["totalCost"],
    }  # fmt: skip


def asked_of_agentsview(program: str, env: dict[str, str]) -> Figures:
    try:
        subprocess.run([program, "sync"], env=env, check=True, capture_output=True, timeout=300)
        totals = ask([program, "usage", "daily", "--json", "--offline", "--all"], env)["totals"]
    finally:  # `sync` leaves a server running.
        subprocess.run([program, "daemon", "stop"], env=env, check=False, capture_output=True, timeout=60)
    found = {
        "input": totals["inputTokens"], "output": totals["outputTokens"], "cache_read": totals["cacheReadTokens"],
        "cache_write": totals["cacheCreationTokens"],
    }  # fmt: skip
    return {**found, "total": sum(found.values()), "cost": totals["totalCost"]["microdollars"] / 1e6}


def ask(words: list[str], env: dict[str, str]) -> Any:
    done = subprocess.run(words, env=env, check=True, capture_output=True, timeout=300)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:3])

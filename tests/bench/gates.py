"""Gates: what deciding costs with 30 requirements, and how fast a rule set is tried on the past."""

import itertools
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ids import delivery_key
from holdfast.features.gates.policy import decide, derive
from holdfast.features.gates.settings import GateSettings, presets
from holdfast.features.gates.views import Simulation, simulate_rules
from holdfast.stores.sqlite import SqliteStore
from tests.bench import floors
from tests.bench.figures import fact, figure, heading, ms, p50
from tests.factories import NOON
from tests.kit import NATIVE_HOOK, World, git

PROJECT, REPO = "/home/ada/engine", "/home/ada/engine/.git"
AS_STORED = {
    "call": "toolu_01A09q90qw90lq917835lq9", "cwd": PROJECT, "mode": "default", "native": "PostToolUse", "pid": 4242,
    "pid_start": 777, "transcript": "/home/ada/.claude/projects/-home-ada-engine/77b52fba-4606-4543-b51e.jsonl",
    "turn": "47c99274-cc58-4fb2-9168-db71f5bca4b1", "input": {"text": "x = 1\n" * 40, "description": "what it is for"},
}  # fmt: skip
OUTPUT = "tests/test_engine.py ....... [ 12%]\n" * 25
EVENTS = int(os.environ.get("HOLDFAST_BENCH_GATE_EVENTS", "200000"))
BATCH = 2_000


def thirty() -> GateSettings:
    """A third on edits, a third on paths, a third on commands; of every type."""
    found: dict[str, dict[str, Any]] = {}
    for n in range(6):
        found[f"plan_{n}"] = {"auto_resolve_skill": "plan"}
        found[f"area_{n}"] = {"paths": [f"area{n}/**", "**/*.sql"], "auto_resolve_skill": "plan"}
        found[f"command_{n}"] = {"command_pattern": rf"git\s+(push|tag)\s.*v{n}", "scope": "single_use"}
        found[f"proof_{n}"] = {"type": "evidence", "evidence": {"command": f"make check{n}*", "after_edit": "src/**"}}
        found[f"size_{n}"] = {"type": "dynamic", "thresholds": {"warn": 10_000, "block": 20_000}}
    return GateSettings.of({"requirements": found})


def event(seq: int, kind: str, **data: Any) -> Event:
    tool = {"edit": "Edit", "shell": "Bash", "skill": "Skill", "read": "Read"}.get(data.get("action", ""), "")
    if tool:
        data |= AS_STORED | ({"output": OUTPUT} if kind == "tool.finished" and tool != "Edit" else {})
    return Event(key=delivery_key(), seq=seq, kind=kind, at=NOON + seq * 50, session=f"session-{seq // 500}", tool=tool,
                 project=PROJECT, agent="claude-code", data={"branch": "feature/x", "repo": REPO, **data})  # fmt: skip


def session_like(seq: int) -> Event:
    """The mix a coding session has: a prompt, nineteen calls (ten reads, four edits, five commands), an answer."""
    step = seq % 20
    if seq % 40 == 0:
        return event(seq, "prompt.submitted", prompt="go on")
    if seq % 40 == 39:
        return event(seq, "turn.ended", message="done")
    kind = "tool.started" if seq % 2 else "tool.finished"
    if step in (3, 4, 11, 12):
        return event(seq, kind, action="edit", paths=[f"{PROJECT}/src/module{seq % 40}.py"], ok=True)
    if step in (5, 6, 7, 8):
        return event(seq, kind, action="shell", command=f"make check{seq % 9} && ls", exit_code=0, ok=True)
    return event(seq, kind, action="read", paths=[f"{PROJECT}/src/module{seq % 400}.py"], ok=True)


def main() -> None:
    heading("Gates: deciding and rehearsing")
    _deciding()
    _without_gates()
    _rehearsing()
    _asked_hook()


ASKED = {
    "an edit": {
        "tool_name": "Edit",
        "tool_input": {"file_path": "src/a.py", "old_string": "a", "new_string": "b" * 400},
    },
    "a command": {
        "tool_name": "Bash",
        "tool_input": {"command": "cd src && pytest -q tests/test_a.py 2>&1 | tail -20"},
    },
}


PACES = {"without a pause": 0, "one every 5 ms": 5_000}
"""Microseconds before each question: right after one another the work behind the last answer may still be going on."""


def _asked_hook() -> None:
    """A PreToolUse that every rule of the strict preset looks at, from the client's start to its end."""
    rounds = int(os.environ.get("HOLDFAST_BENCH_GATE_ROUNDS", "300"))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        world = World(root / "w")
        git(world.project, "init", "-q", "-b", "feature/x")
        git(world.project, "commit", "-q", "--allow-empty", "-m", "first")
        (world.root / "config").mkdir()
        rules = "".join(f"  {name}: {{enabled: true}}\n" for name in presets().presets["strict"])
        (world.root / "config" / "settings.yaml").write_text(f"requirements:\n{rules}")
        world.start()
        try:
            world.session("s-1").start()
            with floors.server(root / "c.sock"), floors.server(root / "d.sock", root / "d.log"):
                for what, asked in ASKED.items():
                    _against_floors(world, root, what, asked, rounds)
        finally:
            world.close()


def _against_floors(world: World, root: Path, what: str, asked: dict[str, Any], rounds: int) -> None:
    payload = root / "asked.json"
    # As Claude Code sends it, but for the call's id: with the same one again it would be told twice, and not judged.
    common = {
        "session_id": "s-1", "transcript_path": str(world.root / "s-1.jsonl"), "cwd": str(world.project),
        "permission_mode": "default", "effort": {"level": "medium"}, "hook_event_name": "PreToolUse",
    }  # fmt: skip
    payload.write_text(json.dumps({**common, **asked}))
    client = floors.clients()["glibc" if "glibc" in floors.clients() else "musl"]
    hook = [NATIVE_HOOK, "ask", "claude-code", "PreToolUse"]
    floors.measure([hook], payload, 30, env=world.env)
    commands: list[list[str | Path]] = [[client, root / "c.sock"], [client, root / "d.sock"], hook]
    for how, pause_us in PACES.items():
        c, durable, ours = floors.measure(commands, payload, rounds, env=world.env, pause_us=pause_us)
        asked_for = f"{what} asked for under the strict preset, {how}"
        figure(f"{asked_for}, p50 to C client", floors.ratio(ours, c), 1.8, note=ms(p50(ours)))
        figure(f"{asked_for}, p50 to C durable", floors.ratio(ours, durable), 1.3)


def _deciding() -> None:
    settings = thirty()
    stage = Simulation(settings)
    counter = itertools.count(1)
    for _ in range(2_000):
        stage.apply_event(session_like(next(counter)))
    stage.apply_event(event(next(counter), "gates.measured", lines=100, base="main", covers={}, as_of=0))
    asked = {
        "an edit": {"action": "edit", "paths": [f"{PROJECT}/area1/x/y.py"]},
        "a command": {"action": "shell", "command": "cd /tmp && git push origin v3 --tags && echo done"},
    }
    for what, data in asked.items():
        one = event(next(counter), "tool.started", **data)
        figure(f"deciding {what}, 30 rules, p50", p50([_once(stage, one) for _ in range(3_000)]) * 1e6, 300, unit="µs")
    stop = event(next(counter), "turn.ended", message="done")
    stage.apply_event(event(stop.seq, "gates.triggered", requirements=[rule.name for rule in settings.rules]))
    figure("deciding a stop, 30 rules, p50", p50([_once(stage, stop) for _ in range(3_000)]) * 1e6, 300, unit="µs")


def _without_gates() -> None:
    """What everybody pays who never wrote a requirement."""
    stage, took = Simulation(GateSettings()), []
    for one in map(session_like, range(1, 6_001)):
        began = time.perf_counter()
        stage.apply_event(one)
        took.append(time.perf_counter() - began)
    figure("an event in a project without gates, p50", p50(took) * 1e6, 30, unit="µs")


def _once(stage: Simulation, one: Event) -> float:
    began = time.perf_counter()
    list(derive(stage, one, stage.settings))
    decide(stage, one, stage.settings)
    return time.perf_counter() - began


def _rehearsing() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        store = SqliteStore(Path(folder) / "log.db")
        for start in range(0, EVENTS, BATCH):
            with store.transaction():
                store.append([session_like(n) for n in range(start + 1, start + BATCH + 1)])
        reader = store.reader()
        settings = GateSettings.of({"requirements": {"commit_plan": {}, "tests_green": {}}})
        began, worked = time.perf_counter(), time.process_time()
        told = simulate_rules(reader, settings, project=PROJECT)
        clock, cpu = time.perf_counter() - began, time.process_time() - worked
        note = f"{EVENTS / clock / 1000:.0f} by the clock on this machine now"
        figure("rehearsal, per second of CPU", EVENTS / cpu / 1000, 50, unit="k events", more_is_better=True, note=note)
        fact(
            "it would have refused", f"{told['refused_calls']} of {told['calls']} calls, {told['refused_stops']} stops"
        )
        reader.close()
        store.close()


if __name__ == "__main__":
    main()

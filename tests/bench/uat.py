"""UAT: the 5,000th call of a run costs what the first did; a report of 500 calls and 50 pictures is quick."""

import json
import os
import random
import socket
import tempfile
import time
import zlib
from pathlib import Path

from holdfast.core.ids import delivery_key
from holdfast.daemon.ingest.frames import as_frame
from tests.bench.figures import fact, figure, heading, ms, p50
from tests.features.uat.pictures import MAGIC, chunk
from tests.kit import World, wait_until

CALLS = int(os.environ.get("HOLDFAST_BENCH_CALLS", "5000"))
WINDOW = 250
SESSION = "bench"
SCENARIO = (
    "name: long flow\nsteps: [{action: navigate}, {action: fill}, {action: screenshot, calls: 100}, {action: drag}]\n"
)
SAID = "### Page\n- Page URL: http://x/\n- Page Title: X\n### Snapshot\n" + '- button "x"\n' * 40
FILL, SHOT = "mcp__playwright__browser_fill_form", "mcp__playwright__browser_take_screenshot"
NAVIGATE = "mcp__playwright__browser_navigate"


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        world = World(Path(folder))
        try:
            _begin(world)
            heading(f"UAT: {CALLS:,} tool calls in one run")
            _recording(world)
            heading("UAT: a report of 500 calls and 50 pictures")
            _report(world)
        finally:
            world.close()


def _begin(world: World) -> None:
    scenarios = world.project / "uat" / "scenarios"
    scenarios.mkdir(parents=True)
    (scenarios / "long.yaml").write_text(SCENARIO)
    world.session(SESSION).start()
    wait_until(lambda: world.events(kinds=("uat.scenarios",)), "the scenario is known")


def _fire(world: World, event: str, session: str = SESSION, **fields: object) -> int:
    """One hook call without the process around it; nanoseconds until the durable answer."""
    common = {"hook_event_name": event, "session_id": session, "transcript_path": "/t", "cwd": str(world.project)}
    header = {"key": delivery_key(), "mode": "ask", "agent": "claude-code", "event": event, "cwd": str(world.project)}
    header |= {"at": str(time.time_ns() // 1_000_000), "env.CLAUDE_PROJECT_DIR": str(world.project)}
    frame = as_frame(header, json.dumps({**common, **fields}).encode())
    began = time.perf_counter_ns()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(world.paths.hook_socket))
        sock.sendall(frame)
        sock.settimeout(30)
        sock.recv(65536)
    return time.perf_counter_ns() - began


def _call(world: World, tool: str, number: int, said: str, session: str = SESSION) -> int:
    """Before and after, as an agent makes them."""
    given = {
        "tool_name": tool,
        "tool_use_id": f"c{number}",
        "tool_input": {"target": f"#field-{number}", "value": "x" * 40},
    }
    before = _fire(world, "PreToolUse", session, **given)
    answer = [{"type": "text", "text": said}]
    return before + _fire(world, "PostToolUse", session, **given, tool_response=answer, duration_ms=12)


def _recording(world: World) -> None:
    """The last calls of a long run and the first of a young one take turns, so that both meet the same machine."""
    _fire(world, "UserPromptSubmit", prompt="run the long flow scenario")
    _call(world, NAVIGATE, 0, SAID)
    for n in range(1, CALLS - WINDOW):
        _call(world, FILL, n, SAID)
    world.session("young").start()
    _fire(world, "UserPromptSubmit", "young", prompt="run the long flow scenario")
    _call(world, NAVIGATE, 0, SAID, "young")
    old, young = [], []
    for n in range(WINDOW):
        old.append(_call(world, FILL, CALLS + n, SAID))
        young.append(_call(world, FILL, n + 1, SAID, "young"))
    runs = {run["session"]: run for run in world.view("uat.list")["runs"]}
    assert (runs[SESSION]["calls"], runs["young"]["calls"]) == (CALLS, WINDOW + 1), runs
    note = f"{ms(p50(old))} before + after"
    figure(f"call {CALLS:,} of a run to its first, p50 of {WINDOW}", p50(old) / p50(young), 1.2, note=note)
    began = time.perf_counter()
    path = Path(world.json("uat", "recover", runs[SESSION]["id"])["path"])
    fact(
        "the file with all of them, written anew",
        f"{path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - began:.1f} s",
    )


def _picture(seed: int) -> bytes:
    """As large as a screenshot of a real page: 1280×720, a quarter of a megabyte."""
    dice = random.Random(seed)
    line = lambda: b"\0" + bytes(dice.choices(range(256), k=340)) + bytes(3 * 1280 - 340)  # noqa: E731
    body = zlib.compress(b"".join(line() for _ in range(720)), 6)
    head = (1280).to_bytes(4, "big") + (720).to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    return MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _report(world: World) -> None:
    session = "report"
    world.session(session).start()
    _fire(world, "UserPromptSubmit", session, prompt="run the long flow scenario")
    _call(world, NAVIGATE, 0, "ok", session)
    for n in range(1, 500):
        shot = n % 10 == 0
        (world.project / f"{n}.png").write_bytes(_picture(n)) if shot else None
        _call(world, SHOT if shot else FILL, n, f"- [Screenshot of viewport]({n}.png)" if shot else "filled", session)
    run = world.json("uat", "list")["runs"][0]
    wait_until(lambda: world.json("uat", "show", run["id"])["screenshots"] == 49, "all pictures are kept", 120)
    took = []
    for _ in range(5):
        began = time.perf_counter_ns()
        (made,) = world.json("uat", "report", run["id"])
        took.append(time.perf_counter_ns() - began)
    size = Path(made["path"]).stat().st_size / 1e6
    figure(
        "`holdfast uat report`, whole command, p50 of 5", p50(took) / 1e9, 3.0, unit="s", note=f"{size:.1f} MB of HTML"
    )

"""From an agent that waits to the notification, and what noticing costs the hooks: against a daemon without the feature."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import event, floors
from tests.bench.figures import fact, figure, heading, ms, p50, percentile
from tests.bench.rest import at_rest
from tests.features.attention.servers import Got, http_receiver
from tests.kit import NATIVE_HOOK, World, wait_until

ASKED, ROUNDS, BLOCKS = 60, 100, 5
DAEMON = """
import sys
import holdfast.features as registered
registered.FEATURES = tuple(one for one in registered.FEATURES if one.name not in sys.argv[1:])
sys.argv[1:] = []
from holdfast.daemon import main
main()
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name, http_receiver() as got:
        world = World(Path(name, "w"))
        (world.root / "config").mkdir()
        rule = "rules: [{channels: [webhook]}]\n  typed_seconds: 0\n  batch_seconds: 0.5"
        (world.root / "config" / "settings.yaml").write_text(f"attention:\n  {rule}\n  webhook: {got.address()}\n")
        world.start()
        try:
            _waiting(world, got)
        finally:
            world.close()
    with tempfile.TemporaryDirectory() as name:
        _hooks(Path(name))


def _waiting(world: World, got: Got) -> None:
    heading(f"From the hook of a permission to the notification, {ASKED} sessions one after the other")
    took = [_ask(world, got, number) for number in range(ASKED)]
    fact("p50", f"{p50(took):.2f} s")
    figure("p95", percentile(took, 0.95), 2.0, unit="s", note="0.5 s of it for more that comes at once")


def _ask(world: World, got: Got, number: int) -> float:
    common = {"session_id": f"s-{number}", "cwd": str(world.project), "hook_event_name": "PermissionRequest"}
    payload = {**common, "tool_name": "Bash", "tool_input": {"command": f"make {number}"}}
    before, began = len(got.requests), time.monotonic()
    hook = subprocess.Popen(
        [NATIVE_HOOK, "wait", "claude-code", "PermissionRequest"],
        stdin=subprocess.PIPE,
        env=world.env,
        cwd=world.project,
    )
    assert hook.stdin
    hook.stdin.write(json.dumps(payload).encode())
    hook.stdin.close()
    wait_until(lambda: len(got.requests) > before, "it is notified")
    took = time.monotonic() - began
    hook.kill()
    hook.wait()
    return took


def _hooks(root: Path) -> None:
    with_it, without = World(root / "on"), World(root / "off")
    daemons = [_start(with_it), _start(without, "attention")]
    try:
        for one in (with_it, without):
            one.hook("UserPromptSubmit", {"session_id": "bench-session", "cwd": "/", "prompt": "tidy up"})
            at_rest(one)
        for name in ("PreToolUse", "PostToolUse"):
            _compare(name, root, [_command(one, name) for one in (with_it, without)])
    finally:
        with_it.close()
        without.close()
        for daemon in daemons:
            daemon.wait()


def _start(world: World, *left_out: str) -> subprocess.Popen[bytes]:
    """Both in the same way, without what the command line does for a daemon."""
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, *left_out], env=world.env, cwd=world.root)
    wait_until(lambda: world.pid == daemon.pid and world.paths.control_socket.exists(), "the daemon runs")
    return daemon


def _command(world: World, name: str) -> list[str | Path]:
    places = [f"{key}={world.env[key]}" for key in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR", "HOME")]
    return ["/usr/bin/env", *places, NATIVE_HOOK, "ask", "claude-code", name]


def _compare(name: str, root: Path, commands: list[list[str | Path]]) -> None:
    """In blocks, each shuffled in itself: the median of their ratios stays where a single busy moment does not."""
    heading(f"{name} with and without attention, {BLOCKS} × {ROUNDS} rounds")
    payload = event.write(root / "event.json")
    blocks = [floors.measure(commands, payload, ROUNDS) for _ in range(BLOCKS)]
    fact("with / without: p50", " / ".join(ms(p50([x for block in blocks for x in block[n]])) for n in (0, 1)))
    ratios = [a / b for block in blocks for a, b in zip(*block, strict=True)]
    low, high = floors.confidence(ratios)
    figure("with to without, p50 of the rounds' ratios", p50(ratios), 1.02, note=f"95 %: {low:.3f} to {high:.3f}")

"""What a hook costs: against the C floors, in one run, every round in shuffled order."""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.agents.build import shell_line
from holdfast.setup.install.hooks_text import python_command
from tests.bench import event, floors
from tests.bench.figures import fact, figure, heading, ms, p50, p99
from tests.bench.rest import at_rest
from tests.kit import NATIVE_HOOK, World, spooled, wait_until

ROUNDS = 300


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        world = World(root / "w")
        world.start()
        try:
            with floors.server(root / "c.sock"), floors.server(root / "d.sock", root / "d.log"):
                small = event.write(root / "small.json")
                floors.measure([HOOK], small, 50, env=world.env)
                at_rest(world)
                _warm(world, root, small)
                _at_once(world, root, small)
                _large(world, root)
                _python(world, small)
                _down(world, root, small)
        finally:
            world.close()


HOOK = [NATIVE_HOOK, "ask", "claude-code", "PostToolUse"]


def _floors(root: Path) -> list[list[str | Path]]:
    """For each C client: answered at once, and answered after the server's fdatasync."""
    return [[client, root / name] for client in floors.clients().values() for name in ("c.sock", "d.sock")]


def _against(names: Sequence[str], runs: Sequence[list[int]], ours: list[int], to_c: float, to_durable: float) -> None:
    for n, name in enumerate(names):
        c, durable = runs[2 * n], runs[2 * n + 1]
        fact(f"C client ({name}): p50 / p99", f"{ms(p50(c))} / {ms(p99(c))}")
        fact(f"C durable ({name}): p50 / p99", f"{ms(p50(durable))} / {ms(p99(durable))}")
        figure(f"p50 to C client ({name})", floors.ratio(ours, c), to_c)
        figure(f"p50 to C durable ({name})", floors.ratio(ours, durable), to_durable)
        figure(f"p99 to C durable's p99 ({name})", p99(ours) / p99(durable), 1.5)


def _warm(world: World, root: Path, payload: Path) -> None:
    heading(f"Native hook, daemon warm, durable answer, 2.8 KB, {ROUNDS} rounds")
    shell = ["/bin/sh", "-c", shell_line([str(NATIVE_HOOK), "ask", "claude-code", "PostToolUse"])]
    *floor, ours, through_sh, true = floors.measure(
        [*_floors(root), HOOK, shell, ["/bin/true"]], payload, ROUNDS, env=world.env
    )
    fact("/bin/true: p50 / p99", f"{ms(p50(true))} / {ms(p99(true))}")
    fact("native hook: p50 / p99", f"{ms(p50(ours))} / {ms(p99(ours))}")
    _against(list(floors.clients()), floor, ours, 1.3, 1.0)
    for name, c in zip(floors.clients(), floor[::2], strict=True):
        figure(f"through sh -c, p50 to C client ({name})", floors.ratio(through_sh, c), 2.5)


def _at_once(world: World, root: Path, payload: Path) -> None:
    heading("8 hooks at once")
    *floor, ours = floors.measure([*_floors(root), HOOK], payload, 100, at_once=8, env=world.env)
    for name, c in zip(floors.clients(), floor[::2], strict=True):
        figure(
            f"p50 to C client ({name}) at 8 at once", p50(ours) / p50(c), 1.0, note=f"{ms(p50(ours))} to {ms(p50(c))}"
        )


def _large(world: World, root: Path) -> None:
    heading("220 KB event")
    payload = event.write(root / "large.json", 220_000)
    *floor, ours = floors.measure([*_floors(root), HOOK], payload, 100, env=world.env)
    for name, c in zip(floors.clients(), floor[::2], strict=True):
        figure(
            f"p50 to C client ({name}) with that payload",
            floors.ratio(ours, c),
            2.0,
            note=f"{ms(p50(ours))} to {ms(p50(c))}",
        )


def _python(world: World, payload: Path) -> None:
    heading("Python fallback, as `install` writes it where there is no native client")
    python = [sys.executable, "-I", "-S"]
    ours, bare = floors.measure(
        [[*python_command(), "ask", "claude-code", "PostToolUse"], [*python, "-c", "pass"]], payload, 100, env=world.env
    )
    figure("p50 to `python -I -S -c pass`", floors.ratio(ours, bare), 1.15, note=f"{ms(p50(ours))} to {ms(p50(bare))}")


def _down(world: World, root: Path, payload: Path) -> None:
    heading("Daemon down")
    before = len(_recorded(world))
    world.kill()
    world.paths.failed.write_text("held down by the bench\n")  # Hooks do not start it while this is young.
    *floor, ours = floors.measure([*_floors(root), HOOK], payload, 200, env=world.env)
    for name, durable in zip(floors.clients(), floor[1::2], strict=True):
        figure(f"p50 to C durable ({name}), spooled", floors.ratio(ours, durable), 1.2, note=ms(p50(ours)))
    world.paths.failed.unlink()
    world.start()
    began = time.monotonic()
    wait_until(lambda: not spooled(world.paths.spool) and len(_recorded(world)) == before + 200, "all are in the log")
    figure("seconds until all 200 are in the log", time.monotonic() - began, 5.0, unit="s")


def _recorded(world: World) -> list:
    return world.events(kinds=("tool.finished",))

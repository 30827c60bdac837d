"""The C programs the benches compare with: compiled once into .cache, started for one bench."""

import contextlib
import hashlib
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent / "c"
CACHE = Path(__file__).parents[2] / ".cache" / "bench"


MUSL = [sys.executable, "-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-musl", "-static", "-Os", "-s"]
SYSTEM = ["cc", "-static", "-O2"]


def program(name: str, compiler: Sequence[str] = MUSL) -> Path:
    """Static, like the hook client it is compared with; musl starts in a third of the time of glibc."""
    source = HERE / f"{name}.c"
    digest = hashlib.sha256(source.read_bytes() + " ".join(compiler).encode()).hexdigest()[:12]
    out = CACHE / f"{name}-{digest}"
    if not out.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(CACHE / "zig"), "ZIG_LOCAL_CACHE_DIR": str(CACHE / "zig")}
        subprocess.run([*compiler, "-std=gnu11", str(source), "-o", str(out)], env=env, check=True)
    return out


def clients() -> dict[str, Path]:
    """The same trivial client twice: as small as can be, and as a C compiler makes it where there is one."""
    made = {"musl": program("client")}
    if shutil.which("cc"):
        made["glibc"] = program("client", SYSTEM)
    return made


@contextlib.contextmanager
def server(socket: Path, durable: Path | None = None) -> Iterator[None]:
    process = subprocess.Popen([program("server"), socket, *([durable] if durable else [])])
    try:
        while not socket.exists():
            time.sleep(0.01)
        yield
    finally:
        process.kill()
        process.wait()


def measure(
    commands: Sequence[Sequence[str | Path]],
    payload: Path,
    rounds: int,
    at_once: int = 1,
    env: dict[str, str] | None = None,
    pause_us: int = 0,
) -> list[list[int]]:
    """Nanoseconds of each run of each command; every round runs all of them in shuffled order, one right after the other
    or with a pause before each."""
    words: list[str] = [str(program("measure")), str(rounds), str(at_once), str(payload)]
    for command in commands:
        words += ["--", *map(str, command)]
    env = {**(os.environ if env is None else env), "PAUSE_US": str(pause_us)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    found: list[list[int]] = [[] for _ in commands]
    for line in done.stdout.splitlines():
        index, took, code = map(int, line.split())
        assert code == 0, f"{commands[index]} ended with {code}"
        found[index].append(took)
    return found


def confidence(ratios: Sequence[float], draws: int = 2_000) -> tuple[float, float]:
    """Between these the median lies with 95 %: drawn again and again from what was measured, always in the same way."""
    dice = random.Random(0)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(draws))
    return medians[draws // 40], medians[-draws // 40]


def ratio(of: Sequence[int], to: Sequence[int]) -> float:
    """The median of the per-round ratios: what disturbs a round disturbs both."""
    pairs = sorted(a / b for a, b in zip(of, to, strict=True))
    return pairs[len(pairs) // 2]

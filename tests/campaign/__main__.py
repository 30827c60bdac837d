"""`make campaign`: all of them, or those named, each ending with one figure: `1000 kills, 0 lost`."""

import importlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

HELPERS = {"__init__", "__main__", "tracing", "work", "acks"}


def names() -> list[str]:
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in HELPERS)


def one(name: str) -> bool:
    scenario = importlib.import_module(f"tests.campaign.{name}")
    folder = Path(tempfile.mkdtemp(prefix=f"holdfast-{name}-"))
    began = time.monotonic()
    try:
        figure, good = scenario.run(folder, scenario.FULL), True
    except AssertionError as failure:
        figure, good = f"FAILED, evidence in {folder}: {failure}", False
    except NotImplementedError as reason:
        figure, good = f"skipped: {reason}", True
    if good:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{name:12} {figure}  ({time.monotonic() - began:.0f} s)", flush=True)
    return good


if __name__ == "__main__":
    wanted = [name for word in sys.argv[1:] for name in word.split(",") if name]
    results = [one(name) for name in wanted or names()]
    sys.exit(0 if all(results) else 1)

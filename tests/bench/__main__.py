"""`make bench`: all of them, or those named."""

import importlib
import sys
from pathlib import Path

FIRST = ("hook", "throughput", "cold", "kills", "growth")
HELPERS = {"__init__", "__main__", "figures", "floors", "event", "rest", "viewers", "questions"}


def main() -> None:
    here = Path(__file__).parent
    others = sorted(p.stem for p in here.glob("*.py") if p.stem not in HELPERS and p.stem not in FIRST)
    for name in sys.argv[1:] or (*FIRST, *others):
        importlib.import_module(f"tests.bench.{name}").main()


main()

"""The real agent programs alone, with a hook that only records, and every browser driver there is.

`make test` has a sample of it; here all of them run, as often as asked.
"""

import re
import subprocess
import sys
from pathlib import Path

FULL = 1
TESTS = Path(__file__).parent.parent / "real"


def run(_folder: Path, size: int) -> str:
    for _ in range(size):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "long", "-n", "2", "--reruns", "1", str(TESTS)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()[-300:]
        assert done.returncode == 0, f"{last}\n{done.stdout[-3000:]}"
    passed = re.search(r"(\d+) passed", last)
    return f"{size} x {passed[1] if passed else 0} runs of real programs, as recorded"

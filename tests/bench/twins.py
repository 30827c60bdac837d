"""How much of what hooks recorded an import says as well, on the transcripts of a folder that HOLDFAST_TWINS names."""

import os
from pathlib import Path

from tools import twin

from tests.bench.figures import fact, figure, heading

TARGET = 99.0
MOST = int(os.environ.get("HOLDFAST_TWINS_MOST", "20"))


def main() -> None:
    folder = os.environ.get("HOLDFAST_TWINS")
    if not folder:
        return
    transcripts = sorted(map(str, Path(folder).rglob("*.jsonl")))[:MOST]
    heading(f"Twins of {len(transcripts)} transcripts")
    for (agent, view), (equal, total) in twin.main(transcripts).items():
        fact(f"{agent} {view}: equal of compared", f"{equal:,} of {total:,}")
        if total:
            figure(f"{agent} {view}", 100 * equal / total, TARGET, more_is_better=True, unit="%")

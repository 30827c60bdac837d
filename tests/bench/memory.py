"""Finding again: LoCoMo's questions over long conversations, and the time it takes at 100,000 texts.

The data is never in the repository: it lies in ../shared/data/locomo, or where HOLDFAST_LOCOMO says.
"""

import itertools
import json
import os
import random
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from holdfast.features.memory.find.likeness import alike
from holdfast.features.memory.find.ranking import Ranking
from tests.bench.figures import fact, figure, heading, p50, p99
from tests.features.memory.house import House

DEFAULT = Path(__file__).parents[2].parent / "shared" / "data" / "locomo"
DEPTHS = (5, 10, 20)


def main() -> None:
    heading("memory: evidence found again (LoCoMo, each turn an event, `memory search` asked each question)")
    folder = Path(os.environ.get("HOLDFAST_LOCOMO") or DEFAULT)
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if files:
        recall(files)
    else:
        fact("no LoCoMo data here", str(folder))
    speed()


def recall(files: list[Path]) -> None:
    sums: dict[int, float] = defaultdict(float)
    by_category: dict[Any, list[float]] = defaultdict(list)
    asked = 0
    for file in files:
        for category, found in _conversation(json.loads(file.read_text("utf-8"))):
            asked += 1
            by_category[category].append(found[10])
            for depth in DEPTHS:
                sums[depth] += found[depth]
    fact("words of like meaning (the search library's model)", "yes" if alike() else "no model here")
    fact("questions", str(asked))
    for depth in DEPTHS:
        target = 0.78 if depth == 10 else 0.0
        figure(f"recall at {depth}", sums[depth] / asked, target, unit="", more_is_better=True)
    for category, found in sorted(by_category.items()):
        fact(f"recall at 10, category {category} ({len(found)} questions)", f"{sum(found) / len(found):.3f}")


def _conversation(data: dict[str, Any]) -> list[tuple[Any, dict[int, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder))
        seqs: dict[int, str] = {}
        for turn in data["turns"]:
            house.hook("prompt.submitted", session=f"session-{turn['session']}", prompt=_said(turn))
            seqs[_last_prompt(house)] = turn["id"]
        known = set(seqs.values())
        found = [
            (question["category"], _found(house, question["question"], wanted, seqs))
            for question in data["questions"]
            if (wanted := [e for e in question["evidence"] if e in known])
        ]
        house.close()
        return found


def _said(turn: dict[str, Any]) -> str:
    return f"{turn['speaker']}: {turn['text']}{' ' + turn['image'] if turn.get('image') else ''}"


def _last_prompt(house: House) -> int:
    from holdfast.core.ports import EventQuery

    return house.reader.events(EventQuery(kinds=("prompt.submitted",), limit=1, newest=True))[0].seq


def _found(house: House, question: str, wanted: list[str], seqs: dict[int, str]) -> dict[int, float]:
    hits = house.view("search", query=question, limit=max(DEPTHS))["hits"]
    ids = [[seqs[seq] for seq in hit["evidence"] if seq in seqs] for hit in hits]
    shares = {}
    for depth in DEPTHS:
        top = {one for ids_of_hit in ids[:depth] for one in ids_of_hit}
        shares[depth] = sum(one in top for one in wanted) / len(wanted)
    return shares


def speed(texts: int = 100_000) -> None:
    heading(f"memory: time to find among {texts:,} texts")
    chance = random.Random(1)
    words = [f"{''.join(chance.choices('abcdefghijklmnoprstuvw', k=chance.randint(3, 9)))}" for _ in range(30_000)]
    weights = list(itertools.accumulate(1 / (n + 10) for n in range(len(words))))
    ranking = Ranking(alike())
    began = time.perf_counter()
    for number in range(texts):
        ranking.add(f"s-{number // 40}", " ".join(chance.choices(words, cum_weights=weights, k=18)))
    fact("building the index", f"{time.perf_counter() - began:.1f} s")
    ranking.scores("warm up")
    took = []
    for _ in range(200):
        question = " ".join(chance.choices(words, cum_weights=weights, k=7))
        began_ns = time.perf_counter_ns()
        (-ranking.scores(question)).argpartition(10)
        took.append(time.perf_counter_ns() - began_ns)
    figure("search p50", p50(took) / 1e6, 15, unit="ms")
    fact("search p99", f"{p99(took) / 1e6:.2f} ms")


if __name__ == "__main__":
    main()

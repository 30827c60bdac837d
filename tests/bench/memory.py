"""Finding again: LoCoMo's questions over long conversations, the time it takes at 100,000 observations, and at a start.

The data is never in the repository: it lies in ../shared/data/locomo, or where HOLDFAST_LOCOMO says.
"""

import itertools
import json
import math
import os
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.analysis.search import everyday, static_model
from holdfast.core.event import Event
from holdfast.core.replay import fold_events
from holdfast.core.state import state_row
from holdfast.features.memory import FEATURE
from holdfast.features.memory.index import ranking
from holdfast.features.memory.index.similar_words import similar_words
from holdfast.features.memory.state.documents import OBSERVATION
from holdfast.features.memory.state.words import plain_words, stem_word
from tests.bench.figures import fact, figure, heading, p50, p99
from tests.features.memory.harness import PROJECT, MemoryHarness
from tests.kit import World

DEFAULT = Path(__file__).parents[2].parent / "shared" / "data" / "locomo"
DEPTHS = (5, 10, 20)


def main() -> None:
    heading("memory: evidence found again (LoCoMo, each turn an event, `memory search` asked each question)")
    folder = Path(os.environ.get("HOLDFAST_LOCOMO") or DEFAULT)
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if files:
        recall(files)
        cross_validate(files)
    else:
        fact("no LoCoMo data here", str(folder))
    speed()
    starting()


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
    fact("questions", str(asked))
    for depth in DEPTHS:
        target = 0.78 if depth == 10 else 0.0
        figure(f"recall at {depth}", sums[depth] / asked, target, unit="", more_is_better=True)
    for category, found in sorted(by_category.items()):
        fact(f"recall at 10, category {category} ({len(found)} questions)", f"{sum(found) / len(found):.3f}")


def cross_validate(files: list[Path]) -> None:
    """The weights of the ranking chosen on all conversations but one, judged on that one; against plain BM25."""
    heading("memory: the same, weights chosen on the other conversations (recall at 10)")
    talks = [json.loads(file.read_text("utf-8")) for file in files]
    built = [_ranking_of(talk) for talk in talks]
    tried = {
        (like, of_session): _with_weights(like, of_session, talks, built)
        for like in (0.5, 0.7, 0.9)
        for of_session in (1.5, 2.0, 2.5)
    }
    total = 0.0
    asked = sum(len(_answerable(talk)) for talk in talks)
    for held in range(len(talks)):
        best = max(tried, key=lambda one: sum(tried[one]) - tried[one][held])
        total += tried[best][held]
        fact(f"{files[held].stem} held out", f"{tried[best][held] / len(_answerable(talks[held])):.3f}, weights {best}")
    plain = sum(_bm25_found(talk) for talk in talks) / asked
    figure("cross-validated", total / asked, 0.78, unit="", more_is_better=True)
    figure("ratio to BM25", total / asked / plain, 1.26, unit="", more_is_better=True)


def _with_weights(like: float, of_session: float, talks: list[Any], built: list[ranking.Ranking]) -> list[float]:
    before = ranking.LIKE, ranking.OF_SESSION
    ranking.LIKE, ranking.OF_SESSION = like, of_session
    try:
        return [sum(_share(talk, one.best(scores), scores, wanted) for question, wanted in _answerable(talk)
                    for scores in [one.scores(question)]) for talk, one in zip(talks, built, strict=True)]  # fmt: skip
    finally:
        ranking.LIKE, ranking.OF_SESSION = before


def _ranking_of(talk: dict[str, Any]) -> ranking.Ranking:
    made = ranking.Ranking(similar_words)
    for turn in talk["turns"]:
        made.add(f"session-{turn['session']}", _said(turn))
    return made


def _answerable(talk: dict[str, Any]) -> list[tuple[str, list[str]]]:
    known = {turn["id"] for turn in talk["turns"]}
    asked = ((q["question"], [one for one in q["evidence"] if one in known]) for q in talk["questions"])
    return [(question, wanted) for question, wanted in asked if wanted]


def _share(talk: dict[str, Any], best: Iterator[int], scores: Any, wanted: list[str]) -> float:
    top = {talk["turns"][n]["id"] for n in itertools.islice(best, 10) if scores[n] > 0}
    return sum(one in top for one in wanted) / len(wanted)


def _bm25_found(talk: dict[str, Any]) -> float:
    counts = [Counter(map(stem_word, plain_words(_said(turn)))) for turn in talk["turns"]]
    often = Counter(word for one in counts for word in one)
    mean = sum(sum(one.values()) for one in counts) / len(counts)
    found = 0.0
    for question, wanted in _answerable(talk):
        words = {stem_word(word) for word in plain_words(question)}
        scores = [
            sum(
                math.log(1 + (len(counts) - often[w] + 0.5) / (often[w] + 0.5))
                * one[w] * 2.2 / (one[w] + 1.2 * (0.25 + 0.75 * sum(one.values()) / mean))
                for w in words & one.keys()
            )
            for one in counts
        ]  # fmt: skip
        found += _share(talk, iter(sorted(range(len(scores)), key=lambda n: -scores[n])), scores, wanted)
    return found


def _conversation(data: dict[str, Any]) -> list[tuple[Any, dict[int, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        web_context = MemoryHarness(Path(folder))
        seqs: dict[int, str] = {}
        for turn in data["turns"]:
            web_context.hook("prompt.submitted", session=f"session-{turn['session']}", prompt=_said(turn))
            seqs[_last_prompt(web_context)] = turn["id"]
        known = set(seqs.values())
        found = [
            (question["category"], _found(web_context, question["question"], wanted, seqs))
            for question in data["questions"]
            if (wanted := [e for e in question["evidence"] if e in known])
        ]
        web_context.close()
        return found


def _said(turn: dict[str, Any]) -> str:
    return f"{turn['speaker']}: {turn['text']}{' ' + turn['image'] if turn.get('image') else ''}"


def _last_prompt(web_context: MemoryHarness) -> int:
    from holdfast.core.ports import EventQuery

    return web_context.reader.events(EventQuery(kinds=("prompt.submitted",), limit=1, newest=True))[0].seq


def _found(web_context: MemoryHarness, question: str, wanted: list[str], seqs: dict[int, str]) -> dict[int, float]:
    hits = web_context.view("search", query=question, limit=max(DEPTHS))["hits"]
    ids = [[seqs[seq] for seq in hit["evidence"] if seq in seqs] for hit in hits]
    shares = {}
    for depth in DEPTHS:
        top = {one for ids_of_hit in ids[:depth] for one in ids_of_hit}
        shares[depth] = sum(one in top for one in wanted) / len(wanted)
    return shares


def speed(texts: int = 100_000) -> None:
    heading(f"memory: time to find among {texts:,} observations")
    chance = random.Random(1)
    words = everyday.load_everyday_words().words + [_made_up(chance) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / (n + 10) for n in range(len(words))))

    def some(count: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=count))

    with tempfile.TemporaryDirectory() as folder:
        web_context = MemoryHarness(Path(folder))
        _fill(web_context, (some(18) for _ in range(texts)))
        fact("first search, the index made from the log", f"{_first_search(web_context):.1f} s")
        place = web_context.keep_index()
        fact("its file", f"{place.stat().st_size / 1e6:.1f} MB")
        figure(
            "first search after a start, the index read from its file",
            _first_search(web_context) * 1000,
            1000,
            unit="ms",
        )
        took = [_timed(web_context, some(7)) for _ in range(200)]
        figure("search p50, from question to rows", p50(took) / 1e6, 15, unit="ms")
        fact("search p99", f"{p99(took) / 1e6:.2f} ms")
        web_context.close()


def _made_up(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghijklmnoprstuvw", k=chance.randint(3, 9)))


def _fill(web_context: MemoryHarness, texts: Iterator[str]) -> None:
    """Straight into the store: how long it takes to learn all that is no matter here."""
    for number, text in enumerate(texts, 1):
        if number % 5_000 == 1:
            batch: list[Event] = []
        this = f"m{number:012x}"
        data = {"id": this, "type": "discovery", "text": text, "origin": "user", "importance": 5, "evidence": []}
        common = {
            "at": web_context.clock.tick(1000),
            "session": f"s-{number // 40}",
            "project": PROJECT,
            "agent": "claude-code",
        }
        batch.append(Event(key=this, kind="memory.observed", data=data, seq=number, **common))
        if number % 5_000 == 0:
            docs = fold_events(FEATURE, batch)
            with web_context.store.transaction():
                web_context.store.append(batch)
                web_context.store.save(
                    [state_row(FEATURE, ref, doc) for ref, doc in docs.items() if ref.kind == OBSERVATION.kind]
                )


def _first_search(web_context: MemoryHarness) -> float:
    web_context.restarted()
    for cache in (everyday.load_everyday_words, static_model.load_model, similar_words):
        cache.cache_clear()
    return _timed(web_context, "which parser did we choose for the importer") / 1e9


def _timed(web_context: MemoryHarness, question: str) -> int:
    began = time.perf_counter_ns()
    web_context.view("search", query=question, limit=10)
    return time.perf_counter_ns() - began


def starting(sessions: int = 40) -> None:
    heading("memory: a session starts and is told what is remembered (real hook, real daemon)")
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.start()
        agent = world.session("first")
        agent.start()
        for n in range(60):
            agent.prompt(f"We decided to use library{n} for the part component{n} of engine{n}.")
            agent.stop()
        took, told = [], 0
        for n in range(sessions):
            began = time.perf_counter_ns()
            reply = world.session(f"later-{n}").start()
            took.append(time.perf_counter_ns() - began)
            told += "library" in str(reply)
        figure("SessionStart p50, hook and all", p50(took) / 1e6, 40, unit="ms")
        fact("p99", f"{p99(took) / 1e6:.1f} ms")
        fact("of those told something", f"{told} of {sessions}")
        world.close()


if __name__ == "__main__":
    main()

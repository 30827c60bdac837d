"""Questions as people ask them, over checkouts of real repositories: a table by kind of question, by language and by repository.

The questions are those of tests/corpus/search_questions.jsonl (95, written by reading five repositories before anything
was asked), of search_questions_unseen.jsonl (219 over nine more) and, where it is there, of ../shared/corpus/questions.
The repositories are never part of this one: each has to lie at the commit its questions name in the folder that
HOLDFAST_CHECKOUTS names (else ../checkouts), under the last part of its name or the name of its file of questions. What is
not there is left out and said.
"""

import os
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from holdfast.analysis.search import languages
from holdfast.analysis.search.answer import Hit, Question
from holdfast.analysis.search.index import build
from holdfast.analysis.search.index.build import Task
from holdfast.analysis.search.index.places import index_dir_of
from holdfast.analysis.search.searcher import Searcher
from holdfast.analysis.search.settings import IndexSettings
from holdfast.analysis.search.tokens import is_compound
from tests.bench.figures import fact, heading

ROOT = Path(__file__).parents[2]
OWN = [ROOT / "tests" / "corpus" / f"{name}.jsonl" for name in ("search_questions", "search_questions_unseen")]
GIVEN = ROOT.parent / "shared" / "corpus" / "questions"
CHECKOUTS = Path(os.environ.get("HOLDFAST_CHECKOUTS") or ROOT.parent / "checkouts")
KINDS = {
    "a": "where, everyday words", "b": "concept", "c": "message text", "d": "exact identifier", "e": "task of an agent",
    "f": "misspelt, half known", "g": "document or config", "x": "compound name of a definition",
}  # fmt: skip
NAMES = 100
DEPTHS = (1, 3, 10)


class Span(msgspec.Struct):
    path: str
    start: int
    end: int


class Asked(msgspec.Struct):
    id: str
    kind: str
    question: str
    answers: list[Span]

    @property
    def checkout(self) -> str:
        return self.id.rpartition("-")[0]


class Scored(msgspec.Struct):
    kind: str
    language: str
    checkout: str
    rank: int
    """Of the first right hit; 0 where there is none in ten."""


def read_questions() -> dict[str, list[Asked]]:
    files = [*OWN, *(sorted(GIVEN.glob("*.jsonl")) if GIVEN.is_dir() else ())]
    found: dict[str, list[Asked]] = defaultdict(list)
    for file in files:
        for line in file.read_bytes().splitlines():
            one = msgspec.json.decode(line, type=Asked)
            found[one.checkout].append(one)
    return found


def is_right(hit: Hit, span: Span) -> bool:
    """Half of the smaller one is shared, and the hit is no dump of a file."""
    shared = min(hit.end, span.end) - max(hit.line, span.start) + 1
    long, wide = hit.end - hit.line + 1, span.end - span.start + 1
    return hit.path == span.path and shared * 2 >= min(long, wide) and not (long > 200 and long > 4 * wide)


def ask_all(name: str, asked: Sequence[Asked]) -> list[Scored]:
    root = CHECKOUTS / name
    with tempfile.TemporaryDirectory() as state:
        place = index_dir_of(Path(state), str(root))
        told = build.run_build(Task(root=str(root), folder=str(place.folder), run="bench", settings=IndexSettings()))
        assert told.status == "completed", told
        searcher = Searcher(place)
        language = main_language(searcher)
        rows = []
        for one in asked:
            hits = searcher.answer(Question(text=one.question), IndexSettings()).hits
            right = (n for n, hit in enumerate(hits, 1) if any(is_right(hit, span) for span in one.answers))
            rows.append(Scored(one.kind, language, name, next(right, 0)))
        rows += [Scored("x", language, name, rank) for rank in ranks_of_names(searcher)]
        searcher.close()
    return rows


def main_language(searcher: Searcher) -> str:
    """The one most of its code is in."""
    with searcher.read() as db:
        rows = db.execute(
            "select f.lang, count(*) n from chunks c join files f on f.id = c.file group by 1 order by n desc"
        )
        code = [
            lang
            for lang, _ in rows
            if lang not in languages.PROSE and lang not in ("json", "yaml", "html", "css", "xml")
        ]
    return code[0] if code else ""


def ranks_of_names(searcher: Searcher) -> list[int]:
    """Compound names of the repository, taken at random: the first hit in which the name stands as it is."""
    with searcher.read() as db:
        names = sorted({row[0] for row in db.execute("select distinct name from definitions") if is_compound(row[0])})
    ranks = []
    for name in random.Random(5).sample(names, min(NAMES, len(names))):
        hits = searcher.answer(Question(text=name), IndexSettings()).hits
        stands = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        ranks.append(next((n for n, hit in enumerate(hits, 1) if stands.search(f"{hit.symbol} {hit.excerpt}")), 0))
    return ranks


def show_table(title: str, groups: Mapping[str, Iterable[Scored]]) -> None:
    print(f"    {title:<34}{'n':>5}" + "".join(f"{f'hit@{depth}':>9}" for depth in DEPTHS))
    for name, scored in groups.items():
        ranks = [one.rank for one in scored]
        if ranks:
            shares = (sum(0 < rank <= depth for rank in ranks) / len(ranks) for depth in DEPTHS)
            print(f"    {name:<34}{len(ranks):>5}" + "".join(f"{share:>9.2f}" for share in shares), flush=True)


def group_by(rows: Sequence[Scored], field: str) -> dict[str, list[Scored]]:
    found: dict[str, list[Scored]] = defaultdict(list)
    for one in rows:
        found[getattr(one, field)].append(one)
    return dict(sorted(found.items()))


def main() -> None:
    heading("search: questions as people ask them")
    rows: list[Scored] = []
    for name, asked in read_questions().items():
        if (CHECKOUTS / name).is_dir():
            rows += ask_all(name, asked)
        else:
            fact(name, f"left out: no {CHECKOUTS.name}/{name}")
    questions = [one for one in rows if one.kind != "x"]
    if questions:
        show_table("kind", {KINDS[kind]: group for kind, group in group_by(rows, "kind").items()})
        show_table("language", group_by(questions, "language"))
        show_table("repository", group_by(questions, "checkout"))


if __name__ == "__main__":
    main()

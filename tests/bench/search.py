"""How well search finds a function by what its author said of it, on repositories the model has never seen.

As CodeSearchNet measures: the first sentence of a docstring is the question, the function without its docstring the one right
answer, all other functions of the repository are the haystack. NDCG@10 of one right answer at rank r is 1 / log2(r + 1).
"""

import io
import itertools
import math
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw

from holdfast.analysis.search import languages, lexical, ranking, static_model
from holdfast.analysis.search.chunks import lines_of
from holdfast.analysis.search.embedding_port import Embedder, Passage
from holdfast.analysis.search.index import database
from holdfast.analysis.search.index.database import SCHEMA
from holdfast.analysis.search.index.file_entry import pack_text, searchable_words, unpack_text
from holdfast.analysis.search.index.update import Embedding
from holdfast.analysis.search.query import parse_query
from holdfast.analysis.search.settings import OFF, IndexSettings
from holdfast.analysis.search.tokens import whole_tokens
from holdfast.analysis.search.vectors import Vectors
from tests.bench import questions as questions_bench
from tests.bench.figures import fact, figure, heading

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "bench-search"
QUESTIONS = 300
SEED = 11

sys.path.insert(0, str(ROOT / "models"))
from functions import Function, functions, is_test  # noqa: E402

REPOSITORIES = {
    "django": ("python", "Django"),
    "sqlalchemy": ("python", "SQLAlchemy"),
    "pydantic": ("python", "pydantic"),
    "werkzeug": ("python", "werkzeug"),
    "httpx": ("python", "httpx"),
    "gin": ("deb", "golang-github-gin-gonic-gin-dev"),
    "tokio": ("deb", "librust-tokio-dev"),
    "jsoup": ("source", "jsoup"),
    "vitest": ("npm", "vitest"),
}
"""Name → how its sources are had, and under which name. None of them, nor a fork, was learnt from (training/fetch.py)."""

Files = Iterator[tuple[str, bytes]]


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sources(name: str) -> list[tuple[str, str]]:
    """(path, text); fetched once. Raises LookupError where the machine cannot reach its registry."""
    kind, package = REPOSITORIES[name]
    kept = CACHE / f"{name}.tar.gz"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            _keep(kept, FETCH[kind](package, Path(folder)))
    with tarfile.open(kept) as archive:
        read = ((item.name, archive.extractfile(item)) for item in archive)
        return [(path, file.read().decode("utf-8", "replace")) for path, file in read if file]


def _keep(path: Path, files: Files) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with tarfile.open(partial, "w:gz") as archive:
        for name, content in files:
            if languages.language_of_path(name) and len(content) < 2_000_000:
                item = tarfile.TarInfo(name)
                item.size = len(content)
                archive.addfile(item, io.BytesIO(content))
    partial.replace(path)


def _run(*argv: str, folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        raise LookupError(f"{argv[0]} {argv[-1]}: {done.stderr.decode(errors='replace')[-200:]}")


def _python(package: str, folder: Path) -> Files:
    how = ("--no-deps", "--only-binary", ":all:", "-q", "-d", ".")
    _run(sys.executable, "-m", "pip", "download", *how, package, folder=folder)
    archive = zipfile.ZipFile(next(folder.glob("*.whl")))
    return ((name, archive.read(name)) for name in archive.namelist())


def _npm(package: str, folder: Path) -> Files:
    _run("npm", "pack", package, "--silent", "--ignore-scripts", folder=folder)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        for item in archive:
            if file := archive.extractfile(item):
                yield item.name, file.read()


def _deb(package: str, folder: Path) -> Files:
    _run("apt-get", "download", package, folder=folder)
    _run("dpkg-deb", "-x", str(next(folder.glob("*.deb"))), "unpacked", folder=folder)
    return _tree(folder / "unpacked")


def _source(package: str, folder: Path) -> Files:
    import fetch

    fetch.prepare_source_lists()
    _run("apt-get", "source", "--download-only", *fetch._source_lists(), package, folder=folder)
    _run("dpkg-source", "--no-check", "-x", str(next(folder.glob("*.dsc"))), "unpacked", folder=folder)
    return _tree(folder / "unpacked")


def _tree(folder: Path) -> Files:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(folder)), path.read_bytes()


FETCH: dict[str, Callable[[str, Path], Files]] = {"python": _python, "npm": _npm, "deb": _deb, "source": _source}


# ── one repository ───────────────────────────────────────────────────────────────────────────────────────────────────


class Haystack:
    """The functions of a repository in an index as the product has it, one chunk each."""

    def __init__(self, found: Sequence[Function], model: Embedder | None) -> None:
        self.db = apsw.Connection(":memory:")
        self.count = len(found)
        list(self.db.execute(SCHEMA.read_text()))
        with self.db:
            for path, members in itertools.groupby(enumerate(found, 1), key=lambda pair: pair[1].path):
                self._add(path, list(members))
        self.model = model
        if model:
            Embedding(self.db, IndexSettings(embedder=OFF), lambda *_: None).run(
                model
            )  # in this process, with this model
            self.vectors = Vectors(model.id)
            self.vectors.refresh(self.db, 1)

    def _add(self, path: str, members: list[tuple[int, Function]]) -> None:
        """A file of nothing but its functions, without what was said about them."""
        file = members[0][0]
        self.db.execute("insert into files values (?, ?, 0, 0, 0, x'', '', '')", (file, path))
        self.db.execute("insert into texts values (?, ?)", (file, pack_text("\n".join(one.body for _, one in members))))
        start = 1
        for number, one in members:
            stop = start + len(lines_of(one.body)) - 1
            row = (number, file, one.symbol, start, stop)
            self.db.execute("insert into chunks values (?, ?, 'function', ?, ?, ?, x'')", row)
            defined = (number, number, one.name, one.symbol, stop - start)
            self.db.execute("insert into definitions values (?, ?, ?, ?, 'function', 0, ?)", defined)
            self.db.execute("insert into names (rowid, name) values (?, ?)", (number, lexical.squeeze_name(one.name)))
            tokens = " ".join(whole_tokens(one.body))
            self.db.execute("insert into tokens (rowid, token) values (?, ?)", (number, tokens))
            words = (number, searchable_words(one.symbol), searchable_words(path), searchable_words(one.body))
            self.db.execute("insert into words (rowid, name, path, body) values (?, ?, ?, ?)", words)
            start = stop + 1

    def text(self, question: str) -> list[tuple[int, float]]:
        return lexical.best_by_words(self.db, parse_query(question).telling_words, ranking.TEXT_DEPTH)

    def meaning(self, question: str) -> list[tuple[int, float]]:
        assert self.model
        return self.vectors.best(self.model.query(question), ranking.DEPTH)

    def both(self, question: str) -> list[tuple[int, float]]:
        mixed = ranking.mix_rankings(self.meaning(question), self.text(question))
        return sorted(mixed.items(), key=lambda one: (-one[1], one[0]))

    def product(self, question: str) -> list[tuple[int, float]]:
        """As `holdfast search` ranks: names that were typed as they are come first."""
        query = parse_query(question)
        known = lexical.WordChunks(self.db, query.words, self.count)
        ranked = ranking.Ranking(self.db, query, known, self._text_of, None)
        return [(one.chunk, one.score) for one in ranked.ranked(self.meaning(question), self.text(question))]

    def _text_of(self, db: apsw.Connection, file: int) -> list[str]:
        return unpack_text(database.fetch_required_row(db, "select text from texts where file = ?", (file,))[0])


Asked = tuple[str, frozenset[int]]
"""A sentence, and the functions of which it was said: overloads often share theirs word for word, and each is right."""


def questions(found: Sequence[Function]) -> list[Asked]:
    said: dict[str, list[int]] = {}
    for number, one in enumerate(found, 1):
        if one.sentence and not is_test(one.path, one.name):
            said.setdefault(one.sentence, []).append(number)
    asked = [(sentence, frozenset(numbers)) for sentence, numbers in said.items()]
    random.Random(SEED).shuffle(asked)
    return asked[:QUESTIONS]


def all_functions(texts: Sequence[tuple[str, str]]) -> list[Function]:
    return [made for path, text in texts for made in functions(text, languages.language_of_path(path), path)]


def scores(rank: Callable[[str], list[tuple[int, float]]], asked: Sequence[Asked]) -> tuple[float, float, float]:
    """(NDCG@10, MRR@10, recall@10)"""
    ranks = []
    for sentence, right in asked:
        top = [chunk for chunk, _ in rank(sentence)[:10]]
        ranks.append(next((place for place, chunk in enumerate(top, 1) if chunk in right), 0))
    hits = [r for r in ranks if r]
    count = max(len(ranks), 1)
    return sum(1 / math.log2(r + 1) for r in hits) / count, sum(1 / r for r in hits) / count, len(hits) / count


def main() -> None:
    heading("search: NDCG@10 on repositories the model has not seen")
    model = (
        static_model.load_model(Path(os.environ["HOLDFAST_MODEL"]))
        if os.environ.get("HOLDFAST_MODEL")
        else static_model.load_model()
    )
    totals: dict[str, list[tuple[float, float, float]]] = {}
    print(
        f"    {'repository':<12}{'functions':>10}{'questions':>10}{'full text':>11}{'meaning':>9}{'both':>8}{'product':>9}"
    )
    for name in REPOSITORIES:
        try:
            found = all_functions(sources(name))
        except (LookupError, OSError) as error:
            fact(name, f"left out: {error}")
            continue
        hay, asked = Haystack(found, model), questions(found)
        row = {way: scores(getattr(hay, way), asked) for way in ("text", "meaning", "both", "product")}
        for way, told in row.items():
            totals.setdefault(way, []).append(told)
        shown = "".join(
            f"{row[way][0]:>{width}.3f}" for way, width in (("text", 11), ("meaning", 9), ("both", 8), ("product", 9))
        )
        print(f"    {name:<12}{len(found):>10}{len(asked):>10}{shown}", flush=True)
    for way, told in totals.items():
        mean = [sum(values) / len(values) for values in zip(*told, strict=True)]
        print(f"    mean {way:<10} NDCG@10 {mean[0]:.3f}  MRR@10 {mean[1]:.3f}  R@10 {mean[2]:.3f}")
    both = [sum(v) / len(v) for v in zip(*totals["product"], strict=True)][0]
    figure("hybrid NDCG@10, mean over repositories", both, 0.56, unit="", more_is_better=True)
    questions_bench.main()


def passages(found: Sequence[Function]) -> list[Passage]:
    return [Passage(one.body, one.symbol, one.path) for one in found]


if __name__ == "__main__":
    main()

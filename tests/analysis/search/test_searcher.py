"""Answers: names and paths first, then meaning and words; filters; what is said when there are no vectors."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.search import embedder, inspect, lexical, query, ranking, static_model, vectors
from holdfast.analysis.search.embedding_port import Passage
from holdfast.analysis.search.references import ChunkRow
from holdfast.analysis.search.settings import IndexSettings
from tests.analysis.search.tree import Tree

FILES = {
    "src/http/headers.py": '''def parse_header(line):
    """Split a header line into its name and value."""
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


class HeaderTable:
    def lookup(self, name):
        return self.rows[name.lower()]
''',
    "src/db/pool.py": '''class ConnectionPool:
    """Keeps database connections open."""

    def acquire(self, timeout):
        """Take a free connection out of the pool, waiting until one is returned."""
        return self.idle.get(timeout=timeout)

    def release(self, connection):
        self.idle.put(connection)
''',
    "src/retry.py": '''def with_backoff(call, attempts):
    """Try again with growing pauses until it works or the attempts are used up."""
    for n in range(attempts):
        try:
            return call()
        except OSError:
            sleep(2 ** n)
''',
    "tests/test_headers.py": "def test_parse_header():\n    assert parse_header('a: b') == ('a', 'b')\n",
    "web/app.ts": "export function renderPage(title: string): string {\n  return `<h1>${title}</h1>`\n}\n",
    "docs/guide.md": "# Guide\n\n## Retrying\n\nFailed calls are repeated after a pause.\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder = tmp_path_factory.mktemp("search")
    made = Tree(folder / "project", folder / "state").write(FILES)
    assert made.index().status == "completed"
    return made


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("parse_header", "src/http/headers.py:1"),
        ("parse_header()", "src/http/headers.py:1"),
        ("PARSE_HEADER", "src/http/headers.py:1"),
        ("ConnectionPool.acquire", "src/db/pool.py:4"),
        ("ConnectionPool::release", "src/db/pool.py:8"),
        ("where is parse_header?", "src/http/headers.py:1"),
        ("renderPage", "web/app.ts:1"),
        ("src/retry.py", "src/retry.py:1"),
        ("retry.py", "src/retry.py:1"),
        ("take a connection out of the pool", "src/db/pool.py:4"),
        ("try again when a call fails", "src/retry.py:1"),
        ("split a header into name and value", "src/http/headers.py:1"),
    ],
)
def test_the_right_place_comes_first(tree: Tree, asked: str, first: str) -> None:
    assert tree.found(asked)[0] == first


def test_an_answer_says_why_and_shows_a_little(tree: Tree) -> None:
    hit = tree.ask("parse_header").hits[0]
    assert (hit.symbol, hit.kind, hit.lang, hit.line, hit.end) == ("parse_header", "function", "python", 1, 4)
    assert hit.why[0] == "symbol"
    assert hit.excerpt.startswith("def parse_header(line):")
    found = tree.ask("repeat failed calls after a pause").hits[0]
    assert any(why.startswith("meaning ") for why in found.why)
    assert len(found.excerpt.split("\n")) <= 5


def test_filters(tree: Tree) -> None:
    assert {h.lang for h in tree.ask("header", lang="typescript").hits} <= {"typescript"}
    assert {h.path for h in tree.ask("header", path="src/http").hits} == {"src/http/headers.py"}
    assert {h.path for h in tree.ask("retrying a call", path="*.md").hits} == {"docs/guide.md"}
    assert {h.kind for h in tree.ask("connection", kind="method").hits} == {"method"}
    assert tree.ask("page title", path="web").hits[0].path == "web/app.ts"
    assert tree.ask("parse_header", path="web").hits == [], "its definition lies elsewhere"
    assert len(tree.ask("header", limit=2).hits) == 2
    assert tree.ask("header", lang="cobol").hits == []


def test_without_vectors_full_text_answers_and_says_so(tree: Tree) -> None:
    answer = tree.ask("take a connection out of the pool", embedder="off")
    assert answer.hits[0].path == "src/db/pool.py"
    assert answer.note == "full text only: embeddings are switched off"


def test_tests_come_behind_what_they_test_unless_they_are_asked_for(tmp_path: Path) -> None:
    body = '    """Fold a sheet of paper into a boat."""\n    return fold(sheet, "boat")\n'
    made = Tree(tmp_path / "p", tmp_path / "s").write(
        {"tests/test_boat.py": f"def test_paper_boat(sheet):\n{body}", "src/boat.py": f"def paper_boat(sheet):\n{body}"}
    )
    made.index()
    assert made.found("fold a paper boat")[0] == "src/boat.py:1"
    assert made.found("test that a paper boat is folded")[0] == "tests/test_boat.py:1"


def test_what_has_nothing_to_do_with_a_question_is_not_shown(tree: Tree) -> None:
    assert tree.ask("xyzzy plugh").hits == []
    assert all(any(why) for why in (hit.why for hit in tree.ask("take a connection out of the pool").hits))


def test_a_model_that_cannot_be_read_does_not_stop_the_full_text(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = static_model.load_model
    monkeypatch.setattr(embedder, "load_model", lambda: real(tmp_path))
    answer = tree.ask("connection pool")
    assert "the search model cannot be read" in answer.note
    assert answer.hits[0].path == "src/db/pool.py"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_no_question_breaks_it(tree: Tree, text: str) -> None:
    """Quotes, operators of the full text, control characters, nothing at all."""
    tree.ask(text or "x")


@pytest.mark.parametrize(
    "text", ['"', "NEAR(a b)", "a OR b AND NOT c", "name:x", "*", "'; drop table chunks; --", "%_%", "a" * 5000]
)
def test_syntax_in_a_question_is_only_text(tree: Tree, text: str) -> None:
    tree.ask(text)
    assert tree.found("parse_header")[0] == "src/http/headers.py:1"


def test_a_long_lived_searcher_sees_changes(tree: Tree) -> None:
    from holdfast.analysis.search.answer import Question
    from holdfast.analysis.search.searcher import Searcher

    asking = Searcher(tree.place)
    assert "grease.py" not in {h.path for h in asking.answer(Question(text="grease the axle"), IndexSettings()).hits}
    tree.write({"grease.py": 'def grease_axle(tin):\n    """Grease the axle."""\n    return tin - 1\n'})
    tree.index()
    assert asking.answer(Question(text="grease the axle"), IndexSettings()).hits[0].path == "grease.py"
    (tree.root / "grease.py").unlink()
    tree.index()
    assert "grease.py" not in {h.path for h in asking.answer(Question(text="grease the axle"), IndexSettings()).hits}
    tree.index(rebuild=True)
    assert asking.answer(Question(text="parse_header"), IndexSettings()).hits[0].path == "src/http/headers.py"


def test_why_a_file_is_in_it_or_not(tree: Tree) -> None:
    def why(name: str) -> dict:
        return inspect.explain_file(tree.place, str(tree.root), name, IndexSettings(exclude=("docs/",)))

    assert [c["symbol"] for c in why("src/db/pool.py")["chunks"]][0] == "ConnectionPool"
    assert why("nothing.py")["reason"] == "there is no such file"
    assert why("../outside.py")["reason"] == "it is outside the checkout"
    assert why("src")["reason"] == "it is a folder"


def test_the_mixture() -> None:
    meaning, text = [(1, 0.9), (2, 0.5), (3, 0.1)], [(3, 12.0), (2, 4.0)]
    by_meaning, by_text = ranking.mix_rankings(meaning, text, 1.0), ranking.mix_rankings(meaning, text, 0.0)
    assert by_meaning[1] > by_meaning[2] > by_meaning[3]
    assert max(by_text, key=by_text.__getitem__) == 3
    assert [*ranking.mix_rankings([], text)] == [3, 2]
    assert ranking.mix_rankings([], []) == {}


def test_a_file_counts_by_its_best_few_chunks() -> None:
    text = [(1, 4.0), (2, 3.0), (3, 3.0), (4, 2.0), (5, 2.0), (6, 1.0)]
    files = {1: 10, 2: 20, 3: 20, 4: 20, 5: 20, 6: 30}
    assert ranking.file_scores(text, files.__getitem__) == {10: 0.5, 20: 1.0, 30: 0.125}
    assert ranking.file_scores([], files.__getitem__) == {}


def test_short_chunks_count_less_the_less_sure_the_answer_is() -> None:
    def row(lines: int, kind: str = "function") -> ChunkRow:
        return ChunkRow(1, "a.py", 1, lines, "a", kind)

    explain, task = query.parse_query("how is a gate opened"), query.parse_query("add a gate: where are they listed")
    factors = [ranking.shape_factor(explain, row(lines), 1.0) for lines in (1, 10, 80, 200)]
    assert factors == sorted(factors)
    assert factors[1] < factors[2] == factors[3] == 1.0
    assert ranking.shape_factor(explain, row(1), 0.0) == 1.0
    assert ranking.shape_factor(task, row(3), 1.0) < ranking.shape_factor(explain, row(3), 1.0)
    assert (
        ranking.shape_factor(explain, row(200, "class"), 1.0)
        < 1.0
        == ranking.shape_factor(task, row(200, "class"), 1.0)
    )
    assert [ranking.doubt_of([(1, near)]) for near in (ranking.UNSURE, ranking.SURE, 0.9)] == [1.0, 0.0, 0.0]
    assert ranking.doubt_of([]) == 1.0


def test_a_path_says_what_a_function_in_it_does_not(tmp_path: Path) -> None:
    body = "def start(self, target):\n    self.target = target\n    return self.send()\n"
    other = Tree(tmp_path / "project", tmp_path / "state").write({"a/first.py": body, "b/printing.py": body})
    other.index()
    assert other.ask("where is printing started", embedder="off").hits[0].path == "b/printing.py"


def test_a_list_ends_before_equals_that_do_not_all_fit() -> None:
    scored = [(1, 3.0), (2, 2.0), (3, 2.0), (4, 2.0)]
    assert vectors.cut_before_tie(scored, 3) == [(1, 3.0)]
    assert vectors.cut_before_tie(scored, 4) == scored
    assert vectors.cut_before_tie(scored[1:], 2) == [(2, 2.0), (3, 2.0)]


def test_words_of_a_question_are_never_syntax() -> None:
    def expression(text: str) -> str:
        return lexical.any_of(query.parse_query(text).telling_words)

    assert expression('say "hello" AND (NOT world)') == '"say" OR "hello" OR "world"'
    assert expression("the of and") == '"the" OR "of" OR "and"'
    assert expression("!!!") == ""


def test_the_model_is_small_and_knows_what_belongs_together() -> None:
    """≤ 20 MB, numpy only; a question lies nearer to its code than to another."""
    assert sum(p.stat().st_size for p in static_model.FOLDER.iterdir()) <= 20_000_000
    model = static_model.load_model()
    rows = model.documents(
        [
            Passage(
                "def f(path):\n    with open(path) as file:\n        return file.read()", "read_text", "io/files.py"
            ),
            Passage("def g(user, password):\n    return check_hash(user.hash, password)", "login", "auth/session.py"),
            Passage("", "", ""),
        ]
    )
    assert rows.shape == (3, model.dims)  # type: ignore[attr-defined]
    files, login = (
        rows[0] @ model.query("read the contents of a file"),
        rows[1] @ model.query("read the contents of a file"),
    )
    assert files > login + 0.2
    assert abs(float(rows[0] @ rows[0]) - 1) < 1e-3
    assert float(abs(model.query("")).sum()) == 0.0

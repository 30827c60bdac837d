"""What is asked for by name, by message or half remembered comes first."""

from pathlib import Path

import pytest

from holdfast.analysis.search import lexical, symbols
from holdfast.analysis.search.searcher import Searcher
from holdfast.analysis.search.settings import IndexSettings
from tests.analysis.search.tree import Tree

FILES = {
    "app/settings.py": '''"""Defaults of the application."""

MAX_RETRIES = 5
DEFAULTS = {
    "cache-lifetime": 3600,
    "upload.chunkSize": 512,
}
''',
    "app/upload.py": '''import os


def send_chunk(part, settings):
    """Send one part of a file."""
    if len(part) > settings["upload.chunkSize"]:
        raise ValueError(f"part {part.name} is larger than {settings.limit} bytes, refusing to send it")
    for attempt in range(MAX_RETRIES):
        if post(part):
            return attempt
    log.error("gave up on %s after %d attempts, see the server log", part, attempt)
    return None


class UploadSession:
    def resume_interrupted(self, token):
        """Go on where an upload was cut off."""
        state = self.states[token]
        state.reopen()
        self.queue.append(state)
        return state
''',
    "app/cli.py": """def add_options(parser):
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    parser.add_argument("--cache-lifetime", type=int)
    parser.add_argument("--verbose", action="store_true")
    return parser
""",
    "tests/test_upload.py": '''from app.upload import send_chunk


def test_send_chunk_gives_up():
    """gave up on a part after some attempts"""
    assert send_chunk(MAX_RETRIES) is None
    assert send_chunk(None) is None
''',
    "docs/guide.md": "# Guide\n\n## Uploads\n\nSet `upload.chunkSize` to send larger parts of a file at once.\n",
    "locale/translations/de.json": '{"error": "gave up on it after 5 attempts, see the server log"}\n',
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder = tmp_path_factory.mktemp("exact")
    made = Tree(folder / "project", folder / "state").write(FILES)
    assert made.index().status == "completed"
    return made


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("MAX_RETRIES", "app/settings.py"),
        ("upload.chunkSize", "app/settings.py"),
        ("cache-lifetime", "app/settings.py"),
        ("--dry-run", "app/cli.py"),
        ("send_chunk", "app/upload.py"),
        ("where is send_chunk defined", "app/upload.py"),
        ("sendChunk", "app/upload.py"),
        ("send_chunck", "app/upload.py"),
        ("UploadSesion", "app/upload.py"),
        ("resume interupted", "app/upload.py"),
        ("gave up on photo.jpg after 7 attempts, see the server log", "app/upload.py"),
        ("part a.bin is larger than 99 bytes, refusing to send it", "app/upload.py"),
        ("documentation of uploads", "docs/guide.md"),
    ],
)
def test_what_is_asked_for_by_name_or_message_comes_first(tree: Tree, asked: str, first: str) -> None:
    assert tree.ask(asked).hits[0].path == first


def test_a_hit_names_its_definition_and_says_why(tree: Tree) -> None:
    hit = tree.ask("resume_interrupted").hits[0]
    assert (hit.symbol, hit.kind, hit.why[0]) == ("UploadSession.resume_interrupted", "method", "symbol")
    assert FILES["app/upload.py"].split("\n")[hit.focus - 1].strip().startswith("def resume_interrupted")
    assert "phrase" in tree.ask("gave up on photo.jpg after 7 attempts, see the server log").hits[0].why


def test_a_hit_says_what_it_lies_in_and_what_is_next_to_it(tree: Tree) -> None:
    method, function = tree.ask("resume_interrupted").hits[0], tree.ask("send_chunk").hits[0]
    assert method.within and method.within.symbol == "UploadSession"
    assert method.before and (method.before.symbol, method.before.line) == ("send_chunk", 4)
    assert (function.within, function.before) == (None, None)
    assert function.after and function.after.symbol == "UploadSession"
    assert function.excerpt.startswith(FILES["app/upload.py"].split("\n")[function.excerpt_line - 1])


def test_code_is_nearer_to_code_than_a_document_about_it(tmp_path: Path) -> None:
    said = "# Sending\n\nsend_chunk sends one part of a file and gives up after MAX_RETRIES attempts, see the server log.\n"
    tree = Tree(tmp_path / "project", tmp_path / "state").write({**FILES, "docs/sending.md": said})
    tree.index()
    hits = Searcher(tree.place).related("app/upload.py", 6, 8, IndexSettings()).hits
    assert hits[0].path != "docs/sending.md"


def test_tests_are_found_when_they_are_asked_for(tree: Tree) -> None:
    assert tree.ask("unit tests of sending a chunk").hits[0].path == "tests/test_upload.py"


@pytest.mark.parametrize(
    "asked", ["a", '"" OR NEAR(', "*" * 50, "word " * 10_000, "где это", "送信", "--", "::", "\x00"]
)
def test_any_question_is_answered(tree: Tree, asked: str) -> None:
    tree.ask(asked)


def test_the_outline_of_a_file(tree: Tree) -> None:
    with Searcher(tree.place).read() as db:
        found = symbols.file_outline(db, "app/upload.py")
        assert symbols.file_outline(db, "nowhere.py") is None
    assert found
    assert [(one.symbol, one.line, one.end) for one in found.definitions] == [
        ("send_chunk", 4, 12), ("UploadSession", 15, 21), ("UploadSession.resume_interrupted", 16, 21),
    ]  # fmt: skip


def test_a_symbol_with_its_definition_uses_and_tests(tree: Tree) -> None:
    with Searcher(tree.place).read() as db:
        found = symbols.find_symbol(db, "send_chunk")
        unknown = symbols.find_symbol(db, "send_chunkk")
        constant = symbols.find_symbol(db, "MAX_RETRIES")
    assert [(one.path, one.line) for one in found.definitions] == [("app/upload.py", 4)]
    assert {one.path for one in found.tests} == {"tests/test_upload.py"}
    assert {one.path for one in constant.uses} == {"app/settings.py", "app/upload.py"}
    assert (unknown.definitions, unknown.similar[0]) == ([], "send_chunk")


def test_what_is_related_to_a_line(tree: Tree) -> None:
    answer = Searcher(tree.place).related("app/upload.py", 6, 3, IndexSettings())
    assert answer.hits
    assert all((hit.path, hit.line) != ("app/upload.py", 4) for hit in answer.hits)
    assert "not in the index" in Searcher(tree.place).related("nowhere.py", 1, 3, IndexSettings()).note


def test_a_renamed_folder_keeps_its_vectors(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "project", tmp_path / "state").write(FILES)
    assert tree.index().counts.embedded > 0
    (tree.root / "app").rename(tree.root / "application")
    again = tree.index()
    assert (again.counts.added, again.counts.removed, again.counts.embedded) == (3, 3, 0)
    assert tree.ask("send_chunk").hits[0].path == "application/upload.py"


def test_a_misspelt_name_is_found_among_hundreds_that_share_its_trigrams(tmp_path: Path) -> None:
    others = "\n".join(f"def command_handler_{n}(value):\n    return value + {n}\n\n" for n in range(300))
    files = {f"app/part{n}.py": others.replace("command", f"command{n}") for n in range(3)}
    files["app/z_last.py"] = "def interesting_command(text):\n    return text.strip()\n"
    tree = Tree(tmp_path / "project", tmp_path / "state").write(files)
    tree.index()
    assert tree.ask("intresting_command").hits[0].symbol == "interesting_command"


def test_chunks_that_hold_most_names_come_first(tmp_path: Path) -> None:
    names = ("MailSender", "SmsSender", "PagerSender")
    files = {f"app/a{n}.py": f"def use_{n}():\n    return {names[n % 3]}({n})\n" for n in range(60)}
    files["app/z_all.py"] = "SENDERS = [\n" + "".join(f"    {name},\n" for name in names) + "]\n"
    tree = Tree(tmp_path / "project", tmp_path / "state").write(files)
    tree.index()
    with Searcher(tree.place).read() as db:
        best = lexical.chunks_naming(db, [name.lower() for name in names], 61, 5)
        row = db.execute(
            "select f.path from chunks c join files f on f.id = c.file where c.id = ?", (best[0][0],)
        ).fetchone()
    assert row == ("app/z_all.py",)


def test_digests_filled_into_a_message_say_nothing(tmp_path: Path) -> None:
    colours = "\n".join(f".fa-{n} {{ color: #3fa0{n}; border: 77b1px 3 0 fa b 1 }}" for n in range(40))
    check = 'def verify(block):\n    if block.digest != block.wanted:\n        raise ValueError(f"hash mismatch {a} != {b}")\n'
    tree = Tree(tmp_path / "project", tmp_path / "state").write({"gui/icons.css": colours, "lib/verify.py": check})
    tree.index()
    assert tree.ask("hash mismatch 3fa0 != 77b1").hits[0].path == "lib/verify.py"


def test_a_text_without_a_suffix_is_found_and_data_is_not(tmp_path: Path) -> None:
    guide = "Key bindings\n============\n\nPress the modifier and a letter to move a window to another desktop.\n"
    tree = Tree(tmp_path / "project", tmp_path / "state").write(
        {"docs/userguide": guide, "data/table": "1 0.25 7e-3\n" * 50, "main.py": "print(1)\n"}
    )
    tree.index()
    assert tree.ask("move a window to another desktop").hits[0].path == "docs/userguide"
    assert all(hit.path != "data/table" for hit in tree.ask("table 0.25").hits)

"""A checkout to index, and what an index says about it, without what may differ from run to run."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.analysis.search.answer import Answer, Question
from holdfast.analysis.search.index import build, database, freshness
from holdfast.analysis.search.index.build import Result, Task
from holdfast.analysis.search.index.file_entry import unpack_text
from holdfast.analysis.search.index.places import IndexDir, index_dir_of, root_of
from holdfast.analysis.search.searcher import Searcher
from holdfast.analysis.search.settings import IndexSettings
from tests.kit import git

Content = set[tuple[Any, ...]]


class Tree:
    def __init__(self, root: Path, state: Path, repository: bool = True) -> None:
        self.root, self.state = root, state
        root.mkdir(parents=True, exist_ok=True)
        if repository:
            git(root, "init", "-q")

    @property
    def place(self) -> IndexDir:
        return index_dir_of(self.state, str(self.root))

    def write(self, files: Mapping[str, str | bytes]) -> "Tree":
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def task(self, **given: Any) -> Task:
        settings = given.pop("settings", None) or IndexSettings(**{k: given.pop(k) for k in SETTINGS if k in given})
        fields = {
            "root": str(self.root),
            "folder": str(self.place.folder),
            "run": "run-1",
            "repo": root_of(str(self.root))[1],
        }
        return Task(**fields | given, settings=settings)

    def index(self, **given: Any) -> Result:
        return build.run_build(self.task(**given))

    def bring_up(self) -> str:
        """As the room's job does: where nothing changed, no run."""
        if freshness.is_unchanged(self.place, str(self.root), IndexSettings()):
            return "unchanged"
        return self.index().status

    def ask(self, text: str, **given: Any) -> Answer:
        settings = IndexSettings(embedder=given.pop("embedder", "builtin"))
        return Searcher(self.place).answer(Question(text=text, **given), settings)

    def found(self, text: str, **given: Any) -> list[str]:
        return [f"{hit.path}:{hit.focus}" for hit in self.ask(text, **given).hits]

    def content(self) -> Content:
        return content(self.place)

    def left_out(self) -> dict[str, str]:
        with contextlib.closing(database.open_to_read(self.place.database(self.place.current()))) as db:
            return dict(db.execute("select path, left_out from files where left_out <> ''"))


SETTINGS = IndexSettings.__struct_fields__


def content(place: IndexDir) -> Content:
    """Every chunk with its lines, text and definitions: two indexes of the same files agree on all of it.

    Vectors are counted, not compared: content that moved to another folder keeps the one it had."""
    with contextlib.closing(database.open_to_read(place.database(place.current()))) as db:
        chunks = db.execute(
            "select c.id, f.path, f.lang, f.hash, c.kind, c.symbol, c.start, c.stop, t.text,"
            " (select group_concat(symbol || first || '-' || last) from definitions d where d.chunk = c.id)"
            " from chunks c join files f on f.id = c.file join texts t on t.file = f.id"
        )
        rows = {(*row[1:8], "\n".join(unpack_text(row[8])[row[6] - 1 : row[7]]), row[9]) for row in chunks}
        assert db.execute("select count(*) from texts").fetchone()[0] == len({row[0] for row in rows})
        count, words = db.execute(
            "select (select count(*) from chunks), (select count(*) from words_docsize)"
        ).fetchone()
        assert count == words, "every chunk has its words, and no words are left of chunks that are gone"
        return rows | {(count, db.execute("select count(*) from vectors").fetchone()[0])}

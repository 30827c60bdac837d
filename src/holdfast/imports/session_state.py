"""SESSION_STATE.md, versions 3 and 4: its open tasks, its history and its focus come into the project."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.features.project.document.old_formats import SOURCE, adopt_document, read_adoption
from holdfast.features.project.files import is_ours
from holdfast.features.project.state import Project
from holdfast.imports.source import Found, Importer, Place, Skipped

FILES = ("SESSION_STATE.md", "SESSION_STATE.yaml", "SESSION_STATE.yml")
LARGEST = 4 << 20


def find_session_documents(location: Place) -> Iterable[Path]:
    own = location.home / ".claude" / "sessions" / location.project.name
    folders = (location.project, location.project / ".claude", location.project / "docs", own)
    candidates = [file for folder in folders for name in FILES if (file := folder / name).is_file()]
    return [file for file in candidates if not is_ours(file.read_bytes()[:LARGEST])]


def read_session_document(path: Path, location: Place) -> Iterator[Found]:
    content = path.read_bytes()
    if len(content) > LARGEST:
        yield Skipped(str(path), f"larger than {LARGEST >> 20} MB")
        return
    adoption = read_adoption(content)
    yield from (Skipped(f"{path}: {what.partition(' (')[0]}", _skip_reason(what)) for what in adoption.left)
    if not (adoption.tasks or adoption.history or adoption.focus):
        yield Skipped(str(path), "no TASKS (version 4), no NEXT_ACTIONS (version 3), no history")
        return
    yield from adopt_document(Project(project=str(location.project)), path, content, int(path.stat().st_mtime * 1000))


def _skip_reason(left: str) -> str:
    return left.partition(" (")[2].removesuffix(")") or "it cannot be taken"


IMPORTER = Importer(SOURCE, "SESSION_STATE documents", find_session_documents, read_session_document)

"""Files that show documents: what somebody else wrote there is taken in, kept and never written over without a word."""

import json
from pathlib import Path

import pytest

from holdfast.core.event import Event
from holdfast.core.feature import File
from holdfast.daemon.files import FileWriter
from holdfast.daemon.ingest.log import Log
from holdfast.setup.imports.earlier_state import import_file


class Writer:
    def __init__(self, root: Path) -> None:
        self.state, self.log, self.events = root / "state", root / "daemon.log", list[Event]()
        self.files = FileWriter(lambda _project: {}, Log(self.log), self.state, self.events.extend, import_file)

    def kept(self) -> list[bytes]:
        return [file.read_bytes() for file in sorted((self.state / "kept").glob("*/*"))]


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def test_a_view_that_was_edited_is_set_aside_and_the_log_says_so(writer: Writer, tmp_path: Path) -> None:
    """S0-19: the documented edit of the JSON file is refused with a word (`holdfast search index flag --reset` is the way)."""
    path = tmp_path / "session-reindex-tracking.json"
    for content in (b"{1}", b"{2}"):
        writer.files.put(File(path, content))
    assert writer.kept() == [], "our own earlier text is nobody's edit"
    path.write_bytes(b"{edited}")
    writer.files.put(File(path, b"{3}"))
    assert path.read_bytes() == b"{3}"
    assert writer.kept() == [b"{edited}"]
    assert "it was written or changed by someone else" in writer.log.read_text()


def test_the_originals_state_files_count_where_they_lie(writer: Writer, tmp_path: Path) -> None:
    """S2-7: a branch file of the requirements framework comes in before ours is written there; whole ids, short ids."""
    path = tmp_path / "repo/.git/requirements/main.json"
    path.parent.mkdir(parents=True)
    sessions = {"cad0ac4d": {"satisfied": True, "satisfied_at": 1_760_000_000}}
    theirs = {"branch": "main", "requirements": {"plan": {"scope": "branch", "satisfied": True, "sessions": sessions}}}
    path.write_text(json.dumps(theirs))
    writer.files.put(File(path, b'{"writer": "holdfast"}', ours=lambda content: b"holdfast" in content))
    assert [(e.kind, e.session, e.data["requirements"][0]["name"]) for e in writer.events] == [
        ("gates.satisfied", "", "plan"), ("gates.satisfied", "cad0ac4d", "plan"),
    ]  # fmt: skip
    assert json.loads(writer.kept()[0]) == theirs


def test_after_an_uninstall_nothing_is_written_outside(writer: Writer, tmp_path: Path) -> None:
    path = tmp_path / "home/.claude/GLOBAL_STATE.md"
    writer.files.put(File(path, b"one"))
    writer.files._footprint.take_out()
    writer.files.put(File(path, b"two"))
    writer.files.put(File(writer.state / "mark", b"ours"))
    assert not path.parent.exists()
    assert (writer.state / "mark").exists()

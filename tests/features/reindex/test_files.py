"""The seed's file as a view of a project's document (S0-1, S0-2)."""

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.core.section import Unfit
from holdfast.features.reindex.files import files
from holdfast.features.reindex.settings import STATE_FILE, Settings
from holdfast.features.reindex.state import CHECKOUT, SESSION, Checkout, FlagState
from holdfast.features.reindex.state_file import validate_session_state

UUID = "11111111-2222-4333-8444-555555555555"
NEWEST = {"session_id": UUID, "shown": True}


def made(project: Path, settings: Settings | None = None, **doc: object) -> dict[str, bytes | None]:
    whole = msgspec.convert({"project": str(project), "newest": NEWEST, **doc}, Checkout)
    return {str(f.path.relative_to(project)): f.content for f in files(CHECKOUT.ref(str(project)), whole, settings)}


def test_the_newest_session_in_the_seeds_shape_hidden_from_git(tmp_path: Path) -> None:
    told = made(tmp_path)
    assert list(told) == [STATE_FILE]
    assert json.loads(told[STATE_FILE] or b"") == {"session_id": UUID, "first_semantic_search_shown": True}
    whole = msgspec.convert({"project": str(tmp_path), "newest": NEWEST}, Checkout)
    assert [file.hidden for file in files(CHECKOUT.ref(str(tmp_path)), whole, None)] == [tmp_path / STATE_FILE]


def test_version_2_when_asked_for(tmp_path: Path) -> None:
    """S0-15."""
    last = {"trigger": "first_prompt", "status": "completed", "at": 5}
    state = json.loads(made(tmp_path, Settings(state_file_version=2), last=last)[STATE_FILE] or b"")
    assert state["last_reindex"] == {"trigger": "first_prompt", "result": "completed", "timestamp": 5}
    assert validate_session_state(state)


def test_its_place_is_settable_and_stays_in_the_project(tmp_path: Path) -> None:
    assert list(made(tmp_path, Settings(state_file="reindex.json"))) == ["reindex.json"]
    for outside in ("../x.json", "/etc/x.json", "~/x.json", ".git/x.json", ""):
        with pytest.raises(Unfit, match="a path inside the project"):
            Settings.of({"state_file": outside})
    (tmp_path / "logs").symlink_to(tmp_path.parent)
    assert made(tmp_path) == {}


def test_no_file_where_there_is_no_session_or_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(tmp_path, newest=None) == {}
    assert made(tmp_path / "gone") == {}
    monkeypatch.setenv("HOME", str(tmp_path))
    assert made(tmp_path) == {}, "a home folder is no project"
    assert list(files(SESSION.ref(UUID), FlagState(session_id=UUID), None)) == []

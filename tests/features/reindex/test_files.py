"""The seed's file as a view of a project's document (S0-1, S0-2)."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.section import Unfit
from holdfast.features.reindex.files import (
    DEPRECATED,
    NEW_IN_2,
    files,
    migrate_session_state,
    parse_state_file,
    render_state_file,
    validate_session_state,
)
from holdfast.features.reindex.settings import STATE_FILE, Settings
from holdfast.features.reindex.state import CHECKOUT, SESSION, Checkout, FlagState, LastRun, NewestSession

# The seed's file: its two versions, reading what others wrote, the schema (S0-2, S0-7, S0-15, S0-16, S0-17).

SEED_ID = "session_20251212_154827"
UUID = "11111111-2222-4333-8444-555555555555"
GOOD = {"session_id": SEED_ID, "first_semantic_search_shown": False}


@pytest.mark.parametrize(
    ("state", "valid"),
    [
        (GOOD, True),
        ({**GOOD, "session_id": UUID}, True),
        ({**GOOD, "session_id": "ses_5f2a91c3bffe"}, True),  # S0-3: as opencode gives them; the id is the agent's.
        ({**GOOD, "session_id": "two words"}, False),
        ({**GOOD, "first_semantic_search_shown": True}, True),
        ({**GOOD, "first_semantic_search_shown": 1}, False),
        ({**GOOD, "session_id": "session_2025_1"}, False),
        ({**GOOD, "session_id": f"{SEED_ID}\n"}, False),
        ({**GOOD, "session_id": None}, False),
        ({**GOOD, "extra": 1}, False),
        ({"session_id": SEED_ID}, False),
        ({"first_semantic_search_shown": True}, False),
        ({}, False),
        ([], False),
        (None, False),
        ({**GOOD, "version": 2}, True),
        ({**GOOD, "version": 2, "last_reindex": None}, True),
        ({**GOOD, "version": 2, "other": None}, False),
        ({**GOOD, "version": 3}, False),
        ({**GOOD, "version": True}, False),
        ({**GOOD, "last_reindex": None}, False),
    ],
)
def test_validate(state: object, valid: bool) -> None:
    """S0-17, S0-3."""
    assert validate_session_state(state) is valid


def test_version_1_becomes_version_2_with_defaults() -> None:
    """S0-15: absent means 1; the given state is not changed."""
    before = dict(GOOD)
    after = migrate_session_state(GOOD)
    assert after == {**GOOD, "version": 2, "last_reindex": None}
    assert before == GOOD
    assert migrate_session_state(after) == after
    assert validate_session_state(after)


def test_an_unknown_version_is_left_alone_and_still_read() -> None:
    newer = {**GOOD, "version": 9, "first_semantic_search_shown": True, "more": [1]}
    assert migrate_session_state(newer) == newer
    assert parse_state_file(json.dumps(newer).encode()) == (SEED_ID, True)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (None, ("", False)),
        (b"", ("", False)),
        (b"{", ("", False)),
        (b"[]", ("", False)),
        (b'{"session_id": "x"}', ("x", False)),
        (b'{"first_semantic_search_shown": true}', ("", True)),
        (b'{"session_id": 5, "first_semantic_search_shown": "yes"}', ("", False)),
        (b"[" * 100_000, ("", False)),
        (b'\xff\xfe{"', ("", False)),
    ],
)
def test_whatever_the_file_holds_it_is_read(text: bytes | None, read: tuple[str, bool]) -> None:
    """S0-14."""
    assert parse_state_file(text) == read


@given(st.binary(max_size=300))
def test_no_bytes_raise(text: bytes) -> None:
    parse_state_file(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_value_raises(value: object) -> None:
    validate_session_state(value)
    migrate_session_state(value)  # type: ignore[arg-type]


def test_the_file_in_both_versions() -> None:
    newest = NewestSession(SEED_ID, True)
    assert json.loads(render_state_file(newest, 1)) == {
        "session_id": SEED_ID,
        "first_semantic_search_shown": True,
    }
    assert validate_session_state(json.loads(render_state_file(newest, 2, LastRun("first_prompt", "completed", 5))))
    assert parse_state_file(render_state_file(newest, 2)) == (SEED_ID, True)


def test_no_field_is_deprecated_today() -> None:
    """S0-16: a field named here is still read and written in this release."""
    assert set(DEPRECATED) <= {"session_id", "first_semantic_search_shown", *NEW_IN_2}


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

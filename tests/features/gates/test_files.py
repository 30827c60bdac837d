"""The seed's two files: their shape, their names, and what was there before."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.ports import Ref
from holdfast.daemon.files import FileWriter
from holdfast.daemon.ingest.log import Log
from holdfast.features.gates.events import BRANCH, LIVE, RULES
from holdfast.features.gates.files import file_name, files
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.state.attention import AcceptedRules
from holdfast.features.gates.state.branches import BranchState, Entry, LiveSessions, RequirementEntries
from holdfast.paths import private_folder
from tests.factories import NOON


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    return tmp_path / ".git"


def branch_doc(repo: Path, branch: str, status: str = "") -> BranchState:
    entry = Entry(at=NOON, seq=1, by="skill", metadata={"skill": "arch-review"})
    requirements = {"commit_plan": RequirementEntries(sessions={"abc123": entry})}
    return BranchState(repo=str(repo), place=str(repo), branch=branch, project="/p", created=NOON, at=NOON,
                       requirements=requirements, status=status)  # fmt: skip


def write(doc: BranchState) -> list[Path]:
    made = list(files(Ref(BRANCH, "x"), doc, None))
    state = private_folder(Path(doc.repo).parent / "state")
    writer = FileWriter(lambda _project: {}, Log(state / "daemon.log"), state, lambda _events: None)
    for file in made:
        writer.put(file)
    return [file.path for file in made]


def test_two_branches_never_share_a_file(repo: Path) -> None:
    """D4: the first keeps the seed's name."""
    seen = {}
    for branch in ("feature/test", "feature-test", "feature_test", "rel/1.2", "rel/1_2", "FEATURE/test"):
        (path,) = write(branch_doc(repo, branch))
        assert path not in seen.values()
        seen[branch] = path
    assert seen["feature/test"].name == "feature-test.json"
    for branch, path in seen.items():
        assert write(branch_doc(repo, branch)) == [path]  # and each keeps its own
        assert json.loads(path.read_text())["branch"] == branch


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=300).filter(lambda s: "\0" not in s))
def test_no_branch_name_leads_out_of_the_folder(tmp_path: Path, branch: str) -> None:
    name = file_name(tmp_path, branch)
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name.encode()) < 255 or not branch.isascii()


def test_another_tools_file_is_set_aside_not_lost(repo: Path) -> None:
    """P7."""
    path = repo / "requirements" / "main.json"
    path.parent.mkdir()
    path.write_text('{"branch": "main", "requirements": {"theirs": {}}}')
    write(branch_doc(repo, "main"))
    write(branch_doc(repo, "main"))
    (kept,) = (repo.parent / "state/kept").glob("*/*-main.json")
    assert "theirs" in kept.read_text()
    assert list(json.loads(path.read_text())["requirements"]) == ["commit_plan"]


def test_nothing_is_written_where_no_git_directory_is_or_through_a_link(repo: Path, tmp_path: Path) -> None:
    assert write(branch_doc(tmp_path / "elsewhere", "main")) == []
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / "requirements").symlink_to(outside)
    assert write(branch_doc(repo, "main")) == []
    assert list(outside.iterdir()) == []


def test_a_pruned_branch_has_no_file(repo: Path) -> None:
    (path,) = write(branch_doc(repo, "gone"))
    write(branch_doc(repo, "gone", status="pruned"))
    assert not path.exists()


def test_files_can_be_switched_off(repo: Path) -> None:
    off = GateSettings(files=False)
    assert list(files(Ref(BRANCH, "x"), branch_doc(repo, "main"), off)) == []
    assert list(files(Ref(LIVE, "sessions"), LiveSessions(), off)) == []


def test_the_mark_of_rules_in_force_is_written_whatever_the_settings_say() -> None:
    """The hook clients and a daemon that begins look for it."""
    [marker] = files(Ref(RULES, "user"), AcceptedRules(), GateSettings(files=False))
    assert marker.path.name == "gates-in-force"

"""What is left outside of the state folder, and taken out again: files, what was there before, lines in git's exclude file."""

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

from holdfast.core.erase import Quotation
from holdfast.daemon.quoting_files import erase_in_file
from holdfast.paths import plain_files
from holdfast.stores.footprint import BEGIN, LEAST_LINES, Footprint, WrittenFile
from tests.kit import git


@pytest.fixture
def footprint(tmp_path: Path) -> Footprint:
    return Footprint(tmp_path / "state")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    return root


def test_files_and_the_folders_made_for_them_go_again(footprint: Footprint, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    file = home / ".claude/sessions/p/SESSION_STATE.md"
    footprint.write(file, b"one", 0o600)
    footprint.write(file, b"two", 0o600)
    assert {path.stat().st_mode & 0o077 for path in plain_files(tmp_path / "state")} == {0}
    assert footprint.take_out().removed == [str(file)]
    assert list(home.iterdir()) == []
    assert footprint.refuses(file)
    footprint.allow()
    assert not footprint.refuses(file)


def test_what_was_there_before_comes_back(footprint: Footprint, tmp_path: Path) -> None:
    file = tmp_path / "home/SESSION_STATE.md"
    file.parent.mkdir()
    file.write_bytes(b"theirs")
    footprint.set_aside(file)
    footprint.write(file, b"ours", 0o600)
    file.write_bytes(b"ours, edited")
    footprint.set_aside(file)
    footprint.write(file, b"ours again", 0o600)
    assert footprint.take_out().restored == [str(file)]
    assert file.read_bytes() == b"theirs"
    assert len(list((tmp_path / "state/kept").glob("*/*"))) == 2, "both are kept"


def test_what_somebody_changed_stays(footprint: Footprint, tmp_path: Path) -> None:
    file = tmp_path / "home/GLOBAL_STATE.md"
    footprint.write(file, b"ours", 0o600)
    file.write_bytes(b"edited")
    assert footprint.take_out().left_behind == [str(file)]
    assert file.read_bytes() == b"edited"


@pytest.mark.parametrize("before", [None, b"", b"*.log\n", b"*.log"])
def test_git_does_not_show_what_is_hidden_and_its_file_is_as_it_was(
    footprint: Footprint, repo: Path, before: bytes | None
) -> None:
    exclude = repo / ".git/info/exclude"
    exclude.unlink(missing_ok=True)
    if before is not None:
        exclude.write_bytes(before)
    for name in ("logs/state/a [1].json", "uat/sessions/x.json", "uat/scenarios/y.yaml"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("x")
    for hidden in (repo / "logs/state/a [1].json", repo / "uat/sessions", repo / "uat/sessions"):
        footprint.hide_from_git(hidden)
    assert git(repo, "status", "--porcelain", "-uall").split() == ["??", "uat/scenarios/y.yaml"]
    assert exclude.read_bytes().startswith((before or b"").rstrip(b"\n"))
    footprint.take_out()
    assert (exclude.read_bytes() if exclude.exists() else None) == before
    assert "sessions" in git(repo, "status", "--porcelain", "-uall")


def test_a_worktree_uses_the_file_all_worktrees_share(footprint: Footprint, repo: Path, tmp_path: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree/logs").mkdir()
    (tmp_path / "tree/logs/a").write_text("x")
    footprint.hide_from_git(tmp_path / "tree/logs/a")
    assert BEGIN in (repo / ".git/info/exclude").read_bytes()
    assert git(tmp_path / "tree", "status", "--porcelain", "-uall") == ""


@pytest.mark.parametrize("where", ["info", "info/exclude", ".git"])
def test_a_hostile_repository_sends_us_nowhere(footprint: Footprint, repo: Path, tmp_path: Path, where: str) -> None:
    """A link in place of git's file, or a `.git` file that names another folder."""
    outside = tmp_path / "outside"
    (outside / "info").mkdir(parents=True)
    (outside / "profile").write_text("mine")
    path = repo / ".git" / where if where != ".git" else repo / ".git"
    path.rename(tmp_path / "moved")
    if where == ".git":
        path.write_text(f"gitdir: {outside}\n")
    else:
        path.symlink_to(outside / ("profile" if where.endswith("exclude") else "info"))
    (repo / "a").write_text("x")
    footprint.hide_from_git(repo / "a")
    assert (outside / "profile").read_text() == "mine"
    assert list((outside / "info").iterdir()) == []


def test_folders_go_whichever_file_is_taken_out_first(footprint: Footprint, tmp_path: Path) -> None:
    """Records come in the order of their digests: a folder is full when the file that had it made is looked at."""
    project = tmp_path / "home" / "sessions" / "shop"
    for n in range(12):
        footprint.write(project / "history" / f"{n}" / "SESSION_STATE.md", b"x", 0o600)
        footprint.write(project / f"SESSION_STATE-{n}.md", b"x", 0o600)
    footprint.take_out()
    assert not (tmp_path / "home").exists()


def test_the_block_of_a_moved_repository_goes_too(footprint: Footprint, repo: Path, tmp_path: Path) -> None:
    (repo / "logs").mkdir()
    before = (repo / ".git" / "info" / "exclude").read_bytes()
    footprint.hide_from_git(repo / "logs" / "ours.json")
    moved = repo.rename(tmp_path / "moved")
    footprint.hide_from_git(moved / "logs" / "ours.json")
    footprint.take_out()
    assert (moved / ".git" / "info" / "exclude").read_bytes() == before


def test_all_records_lie_in_one_file_which_stays_small(footprint: Footprint, tmp_path: Path) -> None:
    for n in range(20):
        for content in range(30):
            footprint.write(tmp_path / f"p/{n}.md", f"{content}".encode(), 0o600)
    records = [path for path in plain_files(tmp_path / "state") if path.stat().st_size]
    assert len(records) == 1
    assert len(records[0].read_bytes().splitlines()) <= LEAST_LINES + 2 * 20
    assert len(footprint.take_out().removed) == 20
    assert not records[0].read_bytes()


def test_every_process_sees_what_another_recorded(footprint: Footprint, tmp_path: Path) -> None:
    """The daemon's threads and the command line each have their own."""
    other, file = Footprint(tmp_path / "state"), tmp_path / "p/a.md"
    footprint.write(file, b"one", 0o600)
    assert other.wrote(file)
    other.write(file, b"two", 0o600)
    assert not footprint.was_edited(file, b"two")
    assert footprint.was_edited(file, b"one")


def test_a_torn_line_costs_no_other_record(footprint: Footprint, tmp_path: Path) -> None:
    """Who is killed while writing, or finds the disk full, leaves half a line."""
    footprint.write(tmp_path / "p/a.md", b"a", 0o600)
    records = tmp_path / "state/footprint/records.jsonl"
    with records.open("ab") as file:
        file.write(b'{"path":"/half')
    again = Footprint(tmp_path / "state")
    again.write(tmp_path / "p/b.md", b"b", 0o600)
    assert len(Footprint(tmp_path / "state").take_out().removed) == 2


def test_records_of_an_older_version_are_taken_over(footprint: Footprint, tmp_path: Path) -> None:
    """Each was a file of its own."""
    folder = tmp_path / "state/footprint"
    folder.mkdir(parents=True, mode=0o700)
    for name in ("a", "b"):
        path = tmp_path / f"{name}.md"
        path.write_bytes(b"ours")
        record = WrittenFile(path=str(path), digest=hashlib.sha256(b"ours").hexdigest())
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(record))
    (folder / "torn.json").write_bytes(b'{"path')
    (folder / "c.new").write_bytes(b"{}")
    footprint.write(tmp_path / "a.md", b"newer", 0o600)
    assert sorted(path.name for path in plain_files(folder)) == ["lock", "records.jsonl"]
    assert len(footprint.take_out().removed) == 2


def test_what_is_erased_leaves_the_records(footprint: Footprint, tmp_path: Path) -> None:
    """A project's name in the path: its record goes, the others stay, and nothing relative is ever taken out."""
    kept, gone = tmp_path / "p/a.md", tmp_path / "zebrafinch/b.md"
    for file in (kept, gone):
        footprint.write(file, b"ours", 0o600)
    assert footprint.rewrite(lambda path: erase_in_file(path, [Quotation(str(gone.parent), is_name=True)]))
    assert b"zebrafinch" not in b"".join(path.read_bytes() for path in plain_files(tmp_path / "state"))
    assert footprint.take_out().removed == [str(kept)]
    assert gone.exists()


def test_a_repository_cloned_again_at_the_same_path_is_excluded_again(footprint: Footprint, repo: Path) -> None:
    for _ in range(2):
        (repo / "ours.json").write_text("{}")
        footprint.hide_from_git(repo / "ours.json")
        assert git(repo, "status", "--short") == ""
        shutil.rmtree(repo)
        repo.mkdir()
        git(repo, "init", "-q")

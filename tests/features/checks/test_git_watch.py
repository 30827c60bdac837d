"""Git acts as git's own files show them, with real git."""

from pathlib import Path

import pytest

from holdfast.core.checks import GitLogEntry
from holdfast.features.checks.git_watch import GitWatch, Worktree, find_place
from tests.kit import git


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "one")
    return folder


def commit(folder: Path, text: str) -> None:
    (folder / "a.txt").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", text)


def place(folder: Path) -> Worktree:
    found = find_place(str(folder))
    assert found is not None
    return found


class Watched:
    def __init__(self, root: Path) -> None:
        self.place, self._watch = place(root), GitWatch()
        first = self._watch.look(self.place, outside=True)
        self._size = first.log_size if first else 0

    def acts(self) -> list[GitLogEntry]:
        """Those that are new, as whoever keeps the length of the reflog knows."""
        look = self._watch.look(self.place, outside=True)
        new = [act for act in look.acts if not act.at or act.at > self._size] if look else []
        self._size = look.log_size if look else self._size
        return new

    def verbs(self) -> list[str]:
        return [act.verb for act in self.acts()]


def test_a_look_without_change_tells_nothing(root: Path) -> None:
    watched = Watched(root)
    (root / "a.txt").write_text("edited")
    git(root, "status")
    assert watched.acts() == []


def test_commits_checkouts_and_resets(root: Path) -> None:
    watched = Watched(root)
    before = watched.place.head
    commit(root, "two")
    (act,) = watched.acts()
    assert (act.verb, act.old, act.new) == ("commit", before, watched.place.head)
    git(root, "commit", "-q", "--amend", "-m", "other words")
    git(root, "checkout", "-qb", "topic")
    git(root, "reset", "-q", "--hard", before)
    assert watched.verbs() == ["commit", "checkout", "reset"]
    assert watched.place.branch == "topic"
    assert watched.place.head == before


def test_a_rebase_is_one_act_and_its_commits_are_not_told_apart(root: Path) -> None:
    git(root, "checkout", "-qb", "topic")
    for name in ("x", "y"):
        (root / name).write_text(name)
        git(root, "add", "-A")
        git(root, "commit", "-qm", name)
    git(root, "checkout", "-q", "main")
    commit(root, "two")
    git(root, "checkout", "-q", "topic")
    watched = Watched(root)
    git(root, "rebase", "-q", "main")
    assert watched.verbs() == ["rebase"]


def test_a_merge_a_stash_and_a_cherry_pick(root: Path) -> None:
    git(root, "checkout", "-qb", "topic")
    commit(root, "two")
    git(root, "checkout", "-q", "main")
    watched = Watched(root)
    git(root, "merge", "-q", "topic")
    (root / "a.txt").write_text("three")
    git(root, "stash", "-q")
    verbs = watched.verbs()
    assert verbs[0] == "merge"
    assert "stash" in verbs


def test_push_and_fetch_are_told_apart(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(root), "remote.git")
    git(root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    watched = Watched(root)
    git(root, "fetch", "-q", "origin")
    assert watched.verbs() == ["fetch"]
    commit(root, "two")
    watched.acts()
    git(root, "push", "-q", "origin", "main")
    assert watched.verbs() == ["push"]
    git(root, "push", "-q", "origin", "main")
    assert watched.verbs() == []


def test_worktrees_have_their_own_head(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "other"))
    here, other = Watched(root), Watched(tmp_path / "other")
    commit(tmp_path / "other", "two")
    assert here.acts() == []
    assert other.verbs() == ["commit"]
    assert (other.place.branch, other.place.shared) == ("topic", str(root / ".git"))


def test_what_a_commit_says_is_not_kept(root: Path) -> None:
    watched = Watched(root)
    commit(root, "the password is hunter2")
    assert [act.detail for act in watched.acts()] == [""]


def test_the_last_acts_are_told_again_for_whoever_did_not_keep_them(root: Path) -> None:
    watch = GitWatch()
    for number in range(30):
        commit(root, str(number))
        look = watch.look(place(root), outside=True)
    assert look is not None
    assert 3 < len(look.acts) < 10
    assert look.acts[-1].new == place(root).head
    assert look.acts[-1].at == look.log_size
    assert all(len(act.old) == len(act.new) == 40 for act in look.acts)


def test_odd_repositories(tmp_path: Path) -> None:
    assert find_place(str(tmp_path)) is None
    assert find_place("relative") is None
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert find_place(str(tmp_path)) is None
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    watched = Watched(empty)
    assert (watched.place.head, watched.place.branch) == ("", "main")
    commit(empty, "first")
    assert watched.verbs() == ["commit"]


def test_packed_refs_and_a_detached_head(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD").strip()
    git(root, "pack-refs", "--all")
    assert place(root).head == head
    git(root, "checkout", "-q", "--detach")
    assert (place(root).head, place(root).branch) == (head, "")

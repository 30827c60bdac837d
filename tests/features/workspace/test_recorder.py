"""The recorder: what is captured of a worktree, when, and what it says of what it cannot keep."""

import os
import random
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.features.workspace import git_files
from holdfast.features.workspace import inotify as kernel
from holdfast.features.workspace.content_store import UNKEPT, ChangeRow
from holdfast.features.workspace.git_files import Place, head_objects
from holdfast.features.workspace.inotify import Inotify, Notice
from holdfast.features.workspace.observe import Workspace
from holdfast.features.workspace.policy import NOT_KEPT
from holdfast.features.workspace.recorder import Recorder
from holdfast.features.workspace.settings import WorkspaceSettings
from holdfast.features.workspace.watched_root import WatchedRoot
from tests.kit import wait_until

GIT = "git -c user.name=a -c user.email=a@b"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    (repo / "src" / "deep").mkdir(parents=True)
    for name in ("a", "src/b", "src/deep/c"):
        (repo / name).write_text(f"{name} as committed\n")
    (repo / ".gitignore").write_text("*.log\nbuild/\n")
    sh(repo, f"git init -q && git add -A && {GIT} commit -qm first")
    return repo


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(tmp_path / "state")
    yield made
    made.close()


def sh(folder: Path, command: str) -> None:
    subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)


def watched(recorder: Recorder, repo: Path, **settings: object) -> WatchedRoot:
    root = recorder.root_for(str(repo), WorkspaceSettings(**settings))
    assert root is not None
    recorder._scan_wanted()
    recorder.drain(root)
    assert root.current, root.problem
    return root


def test_git_is_asked_for_these_files_and_no_others(repo: Path) -> None:
    (repo / "src" / "deep" / "d").write_text("d\n")
    sh(repo, f"git add -A && {GIT} commit -qm second")
    # A folder that became a symlink is asked for too, and git then names everything below it.
    asked = ["src", "src/b", "src/deep/c"]
    assert sorted(head_objects(Place(str(repo), str(repo / ".git")), asked)) == ["src/b", "src/deep/c"]


def test_whoever_asks_first_all_get_the_same_recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def open_slowly(_state_dir: Path, _cipher: object) -> object:
        made.append(object())
        # Longer than another thread needs to see that there is none yet.
        threading.Event().wait(0.05)
        return made[-1]

    monkeypatch.setattr("holdfast.features.workspace.observe.Recorder", open_slowly)
    workspace = Workspace()
    with ThreadPoolExecutor(8) as pool:
        given = set(pool.map(lambda _: id(workspace.recorder(tmp_path)), range(8)))
    assert (len(made), len(given)) == (1, 1)


def changes(recorder: Recorder, root: WatchedRoot) -> dict[str, ChangeRow]:
    """What changed since the last call of this, by path."""
    recorder.drain(root)
    rows = recorder.store.changes()
    recorder.store.told(row.seq for row in rows)
    return {row.path: row for row in rows}


def before(recorder: Recorder, row: ChangeRow) -> str:
    content = recorder.store.get(row.before)
    assert content is not None
    return content.decode()


def test_what_is_there_at_the_first_look_can_be_restored(recorder: Recorder, repo: Path) -> None:
    (repo / "a").write_text("uncommitted\n")
    (repo / "new").write_text("untracked\n")
    root = watched(recorder, repo)
    assert recorder.store.changes() == []
    sh(repo, "git checkout -q -- . && rm new")
    made = changes(recorder, root)
    assert {name: before(recorder, row) for name, row in made.items()} == {"a": "uncommitted\n", "new": "untracked\n"}


def test_what_git_has_is_named_and_not_copied(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo)
    sh(repo, "rm -rf src")
    made = changes(recorder, root)
    assert set(made) == {"src/b", "src/deep/c"}
    assert all(row.before.startswith("git:") and not row.after for row in made.values())
    assert recorder.store.count() == 0


def test_a_renamed_folder_takes_its_files_along_and_stays_watched(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo)
    sh(
        repo,
        "echo one > src/deep/new; mv src other; echo two > other/deep/new; mv other/deep third; echo 3 > third/last",
    )
    made = changes(recorder, root)
    assert {name for name, row in made.items() if row.after} == {"other/b", "third/c", "third/new", "third/last"}
    assert {name for name, row in made.items() if not row.after} == {"src/b", "src/deep/c"}
    sh(repo, "echo later > third/c; mv third src")
    assert {"src/c", "third/c"} <= set(changes(recorder, root))
    sh(repo, "rm -rf src")
    assert before(recorder, changes(recorder, root)["src/c"]) == "later\n"


def test_an_empty_folder_is_watched_too(recorder: Recorder, repo: Path) -> None:
    (repo / "empty" / "below").mkdir(parents=True)
    root = watched(recorder, repo)
    (repo / "empty" / "below" / "new").write_text("x")
    assert set(changes(recorder, root)) == {"empty/below/new"}


def test_ignored_files_are_left_out_unless_named(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo, include=("*.env",))
    sh(repo, "echo x > x.log; mkdir build; echo x > build/x; echo .env >> .gitignore; echo kept > .env; echo n > n")
    assert set(changes(recorder, root)) == {".gitignore", ".env", "n"}
    sh(repo, "echo > .gitignore; echo y > x.log")
    assert "x.log" in changes(recorder, root)


def test_git_acts_leave_the_repository_as_it_is(recorder: Recorder, repo: Path) -> None:
    objects = sorted(str(one) for one in (repo / ".git").rglob("*"))
    index = (repo / ".git" / "index").stat().st_mtime_ns
    root = watched(recorder, repo)
    sh(repo, "echo more >> a; echo new > new")
    changes(recorder, root)
    assert sorted(str(one) for one in (repo / ".git").rglob("*")) == objects
    assert (repo / ".git" / "index").stat().st_mtime_ns == index


def test_what_has_no_content_or_cannot_be_read_holds_nobody_up(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo, max_file_mb=1)
    os.mkfifo(repo / "pipe")
    sh(repo, "ln -s loop loop; ln -s . here; truncate -s 2G big; echo x > fine")
    made = changes(recorder, root)
    assert set(made) == {"loop", "here", "big", "fine"}
    assert made["big"].after == UNKEPT
    assert recorder.store.get(made["loop"].after) == b"loop"
    assert root.notes == {"big": "larger than 1 MB"}


def test_an_overflow_leads_to_a_new_look(recorder: Recorder, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = watched(recorder, repo)
    sh(repo, "echo lost > a; rm src/b; echo new > src/new")
    real = Inotify.read

    def overflowed(self: Inotify) -> Iterator[Notice]:
        list(real(self))
        yield Notice(-1, kernel.OVERFLOW, "")

    with monkeypatch.context() as patched:
        patched.setattr(Inotify, "read", overflowed)
        made = changes(recorder, root)
    assert set(made) == {"a", "src/b", "src/new"}
    assert made["src/b"].before.startswith("git:")


def test_without_watches_each_call_looks(recorder: Recorder, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_self: Inotify, _folder: str) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Inotify, "watch", none_left)
    root = recorder.root_for(str(repo), WorkspaceSettings())
    assert root is not None
    recorder._scan_wanted()
    assert not root.current
    assert "no watch" in root.problem
    sh(repo, "echo changed > a; echo new > new")
    assert set(changes(recorder, root)) == {"a", "new"}


def test_a_full_disk_is_said_and_holds_nobody_up(
    recorder: Recorder, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = watched(recorder, repo)

    def full(*_given: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorder.store, "put", full)
    (repo / "a").write_text("new\n")
    assert changes(recorder, root)["a"].after == UNKEPT
    assert "No space left" in root.notes["a"]


def test_what_happened_without_a_daemon_is_known_to_the_next(repo: Path, tmp_path: Path) -> None:
    first = Recorder(tmp_path / "state")
    root = watched(first, repo)
    (repo / "a").write_text("kept\n")
    first.drain(root)
    first.store.told(row.seq for row in first.store.changes())
    first.close()
    sh(repo, "git checkout -q -- a; rm src/b; echo new > new")
    second = Recorder(tmp_path / "state")
    made = changes(second, watched(second, repo))
    assert set(made) == {"a", "src/b", "new"}
    assert before(second, made["a"]) == "kept\n"
    assert made["src/b"].before.startswith("git:")
    second.close()


def test_a_file_that_was_gone_at_the_first_look_is_known_to_be_gone(repo: Path, tmp_path: Path) -> None:
    sh(repo, "rm src/b")
    first = Recorder(tmp_path / "state")
    watched(first, repo)
    first.close()
    sh(repo, "git checkout -q -- .")
    second = Recorder(tmp_path / "state")
    assert set(changes(second, watched(second, repo))) == {"src/b"}
    second.close()


def test_every_change_before_a_drain_is_captured(recorder: Recorder, repo: Path) -> None:
    """Races the background thread, which captures the same files."""
    stopping = threading.Event()
    thread = threading.Thread(target=recorder.run, args=(stopping, lambda _rows: None, print))
    root = recorder.root_for(str(repo), WorkspaceSettings())
    assert root is not None
    thread.start()
    try:
        wait_until(lambda: root.current, "the worktree is watched")
        for number in range(500):
            (repo / "a").write_text(f"version {number}\n")
            with recorder.lock:
                recorder.drain(root)
                assert recorder.store.get(root.files["a"].id) == f"version {number}\n".encode()
    finally:
        stopping.set()
        thread.join()


def test_what_a_call_did_not_wait_for_is_named_as_not_kept(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo)
    root.pending, root.backlog = dict.fromkeys(("b/c", "b/d", "e")), 3
    told = [recorder.endangered(root, "one", named=[f"{root.root}/{name}"])[:1] for name in ("*", "b", "f")]
    assert [[(one.path, one.lines) for one in found] for found in told] == [
        [("3 files", NOT_KEPT)], [("2 files", NOT_KEPT)], [],
    ]  # fmt: skip


def test_one_git_process_reads_many_objects(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = str(repo / ".git")
    oid = subprocess.run(
        ["git", "rev-parse", "HEAD:a"], cwd=repo, capture_output=True, text=True, check=True
    ).stdout.strip()
    alone = git_files.read_blob(shared, oid)
    tree = subprocess.run(["git", "rev-parse", "HEAD^{tree}"], cwd=repo, capture_output=True, text=True).stdout.strip()
    with git_files.many_blobs(shared), monkeypatch.context() as patch:
        patch.setattr(git_files, "run_briefly", None)
        assert [git_files.read_blob(shared, one) for one in (oid, "0" * 40, tree, oid)] == [alone, None, None, alone]
    assert alone and git_files.read_blob(shared, oid) == alone


def test_without_a_daemon_nobody_is_waited_for(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo)
    (repo / "a").write_text("changed\n")
    recorder.drain(root)
    assert recorder.store.changes() and recorder.settle(0.0)


def test_a_second_look_leaves_the_writer_as_it_is(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo)
    recorder.before_call([root], "token")
    recorder.begin("token", session="one")
    (repo / "a").write_text("by one\n")
    recorder.drain(root)
    recorder.end_turn("one")
    os.utime(repo / "a")
    recorder.drain(root)
    assert root.files["a"].by == "one"


def test_a_worktree_made_again_is_another_one(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo)
    (repo / "a").write_text("uncommitted\n")
    recorder.drain(root)
    recorder.store.told(row.seq for row in recorder.store.changes())
    sh(
        repo.parent,
        f"rm -rf repo && mkdir repo && cd repo && git init -q && echo other > a && git add a && {GIT} commit -qm x",
    )
    again = recorder.root_for(str(repo), WorkspaceSettings())
    assert again is root
    made = changes(recorder, root)
    assert before(recorder, made["a"]) == "uncommitted\n"
    assert made["src/b"].after == ""


def test_each_line_belongs_to_whom_it_was_written_by(recorder: Recorder, repo: Path) -> None:
    """A history of two sessions and a person; every line says who wrote it."""
    chance = random.Random(37)
    (repo / "a").write_text("".join(f"base {number}\n" for number in range(100)))
    sh(repo, f"git add -A && {GIT} commit -qm base")
    root = watched(recorder, repo)
    right = wrong = 0
    for number in range(150):
        who = chance.choice(("one", "two", ""))
        if who:
            recorder.before_call([root], f"key{number}")
            recorder.begin(f"key{number}", session=who, call=f"call{number}")
        lines = (repo / "a").read_text().splitlines()
        begin = chance.randrange(len(lines))
        lines[begin : begin + chance.randint(0, 3)] = [
            f"{who or '-'} {number} {n}" for n in range(chance.randint(0, 4))
        ]
        (repo / "a").write_text("\n".join(lines) + "\n")
        recorder.drain(root)
        if who:
            recorder.end(session=who, call=f"call{number}")
        if number % 10 == 9:
            found = {n: one.by or "-" for one in recorder.endangered(root, "reader") for n in numbers_in(one.lines)}
            truth = {n: line.split()[0] for n, line in enumerate(lines, 1) if not line.startswith("base")}
            right += sum(found.get(n) == by for n, by in truth.items())
            wrong += sum(found.get(n) != by for n, by in truth.items()) + len(found.keys() - truth.keys())
    assert right / (right + wrong) >= 0.99, (right, wrong)


def numbers_in(ranges: str) -> list[int]:
    ends = [(one.split("-")[0], one.split("-")[-1]) for one in ranges.split(", ") if one]
    return [number for first, last in ends for number in range(int(first), int(last) + 1)]


def test_a_sparse_checkout_and_a_submodule_are_not_taken_for_losses(recorder: Recorder, repo: Path) -> None:
    sh(repo.parent, f"git init -q other && cd other && echo o > o && git add o && {GIT} commit -qm o")
    sh(repo, f"git -c protocol.file.allow=always submodule --quiet add ../other sub && {GIT} commit -qm sub")
    sh(repo, "git sparse-checkout set --no-cone /a /sub")
    root = watched(recorder, repo)
    (repo / "sub" / "o").write_text("changed in the submodule\n")
    (repo / "a").write_text("changed\n")
    assert not (repo / "src" / "b").exists()
    assert sorted(changes(recorder, root)) == ["a"]
    sh(repo, "git sparse-checkout disable")
    changes(recorder, root)
    (repo / "src" / "b").unlink()
    assert changes(recorder, root)["src/b"].before


def test_a_file_above_the_limit_is_named_and_not_read(recorder: Recorder, repo: Path) -> None:
    root = watched(recorder, repo, max_file_mb=1)
    with (repo / "disk.img").open("wb") as file:
        file.truncate(2 << 30)  # Takes no space on the disk.
    assert changes(recorder, root)["disk.img"].after == UNKEPT
    assert root.notes == {"disk.img": "larger than 1 MB"}

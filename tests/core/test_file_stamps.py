"""New files without asking git: whatever happens in a worktree, the fingerprint is the one that git's answer gives."""

import os
import random
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from holdfast.core import file_stamps
from holdfast.core.file_stamps import MISSING, FileStamps
from holdfast.core.fingerprint import Fingerprinter
from holdfast.core.job import Ran
from tests.core.test_fingerprint import diverge, git, root, run

__all__ = ["root"]


class Counting:
    """Runs git, and notes how often it was asked what changed."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b"",
        timeout: float = 60.0, nice: int = 10,
    ) -> Ran:  # fmt: skip
        self.asked += "status" in argv
        return run(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, nice=nice)


def settle(root: Path) -> None:
    """As if everything had been written a while ago."""
    past = time.time_ns() - 5_000_000_000
    for folder, _folders, files in os.walk(root):
        os.utime(folder, ns=(past, past))
        for file in files:
            if not os.path.islink(os.path.join(folder, file)):
                os.utime(os.path.join(folder, file), ns=(past, past))


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def remembering(root: Path, counting: Counting) -> Fingerprinter:
    """One that has read the folders of a worktree with a new file, an ignored and an empty folder."""
    for folder in ("empty/inner", "build", "src/deep"):
        (root / folder).mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    git(root, "commit", "-qam", "rules")
    (root / "new.txt").write_text("new\n")
    (root / "build" / "out.js").write_text("1\n")
    settle(root)
    one = Fingerprinter(counting, os.environ)
    one.take_fingerprint(str(root), budget_s=30)
    one.remember_folders()
    return one


def fresh(root: Path) -> str:
    return Fingerprinter(run, os.environ).take_fingerprint(str(root), budget_s=30).content


def test_an_unchanged_worktree_and_edits_need_no_git(
    root: Path, remembering: Fingerprinter, counting: Counting
) -> None:
    before = counting.asked
    assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root)
    (root / "src" / "a.py").write_text("a = 2\n")
    assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root)
    (root / "build" / "more.js").write_text("2\n")
    assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root)
    (root / "src" / "part").write_text("a = 3\n")
    (root / "src" / "part").rename(root / "src" / "a.py")
    os.utime(root / "src", ns=(1, 1))
    assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root)
    (root / "new.txt").unlink()
    os.utime(root, ns=(1, 1))
    assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root)
    assert counting.asked == before


CHANGES: dict[str, Callable[[Path], object]] = {
    "a new file": lambda root: (root / "src" / "b.py").write_text("b\n"),
    "a new file in an empty folder": lambda root: (root / "empty" / "inner" / "b.py").write_text("b\n"),
    "a new folder": lambda root: (shutil.copytree(root / "src", root / "lib")),
    "a folder instead of a file": lambda root: (
        (root / "new.txt").unlink(), (root / "new.txt").mkdir(), (root / "new.txt" / "x").write_text("x")),
    "a file that git no longer tracks": lambda root: git(root, "rm", "-q", "--cached", "README.md"),
    "a rule that is gone": lambda root: (root / ".gitignore").write_text("*.log\n"),
    "a rule of the repository": lambda root: (root / ".git" / "info" / "exclude").write_text("new.txt\n"),
    "a file that was staged": lambda root: git(root, "add", "new.txt"),
    "a folder that is gone": lambda root: shutil.rmtree(root / "empty"),
    "a link": lambda root: (root / "src" / "link").symlink_to("a.py"),
    "a new file that is ignored": lambda root: (root / "src" / "x.log").write_text("x\n"),
    "an edit that keeps size and time": lambda root: rewrite_quietly(root / "src" / "a.py", "a = 9\n"),
    "an executable": lambda root: (root / "src" / "a.py").chmod(0o755),
    "a file that is gone": lambda root: (root / "src" / "a.py").unlink(),
    "a link instead of a file": lambda root: ((root / "README.md").unlink(), (root / "README.md").symlink_to("src")),
    "a commit": lambda root: git(root, "commit", "-qam", "more", "--allow-empty"),
    "an edit that is staged": lambda root: ((root / "src" / "a.py").write_text("a = 4\n"), git(root, "add", "-A")),
    "a merge conflict": lambda root: conflict(root),
    "other line ends": lambda root: (
        (root / ".gitattributes").write_text("* text=auto\n"), (root / "src" / "a.py").write_bytes(b"a = 1\r\n")),
    "an edit and its undoing": lambda root: (
        (root / "src" / "a.py").write_text("a = 7\n"), (root / "src" / "a.py").write_text("a = 1\n")),
}  # fmt: skip


def rewrite_quietly(file: Path, text: str) -> None:
    """As somebody would who does not want it to be seen."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def conflict(root: Path) -> None:
    diverge(root)
    subprocess.run(["git", "merge", "-q", "other"], cwd=root, check=False, capture_output=True)


@pytest.mark.parametrize("change", CHANGES)
def test_every_way_of_getting_new_files_is_seen(root: Path, remembering: Fingerprinter, change: str) -> None:
    CHANGES[change](root)
    assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root)


def test_many_changes_in_any_order(root: Path, remembering: Fingerprinter) -> None:
    names = [
        "src/a.py",
        "src/b.py",
        "src/deep/c.py",
        "empty/d.py",
        "empty/inner/e.log",
        "new.txt",
        "build/f",
        "g/h/i.py",
    ]
    choice = random.Random(7)
    for step in range(14):
        file = root / choice.choice(names)
        if file.exists() and choice.random() < 0.4:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{step}\n")
        assert remembering.take_fingerprint(str(root), budget_s=30).content == fresh(root), (step, file)
        if step % 6 == 5:
            settle(root)
            remembering.take_fingerprint(str(root), budget_s=30)
            remembering.remember_folders()


@pytest.mark.parametrize("rule", ["*.py text eol=crlf\n", "*.py ident\n", "* -text\n"])
def test_where_git_compares_something_else_than_the_file_its_answer_counts(
    root: Path, counting: Counting, rule: str
) -> None:
    (root / ".gitattributes").write_text(rule)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "attributes")
    (root / "src" / "a.py").unlink()
    git(root, "checkout", "-q", "--", "src/a.py")
    settle(root)
    one = Fingerprinter(counting, os.environ)
    before = one.take_fingerprint(str(root), budget_s=30).content
    one.remember_folders()
    os.utime(root / "src" / "a.py", ns=(5, 5))
    assert one.take_fingerprint(str(root), budget_s=30).content == before == fresh(root)
    (root / "src" / "a.py").write_text("a = 2\n")
    assert one.take_fingerprint(str(root), budget_s=30).content == fresh(root) != before


def test_without_the_library_the_same_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "src" / "new.py").write_text("n\n")
    settle(root)
    seen = []
    for native in (True, False):
        if not native:
            monkeypatch.setattr(file_stamps, "_native_look", lambda: None)
        stamps = FileStamps(str(root), ["src/a.py", "src/new.py", "nowhere/x", "src", "."])
        assert list(stamps.find_changed()) == []
        (root / "src" / "a.py").write_text("a = 77\n")
        (root / "src" / "new.py").unlink()
        seen.append((list(stamps.find_changed()), stamps.stamp(2), stamps.stamp(3)[4]))
        (root / "src" / "new.py").write_text("n\n")
        settle(root)
    assert seen[0] == seen[1] == ([0, 1, 3], MISSING, stat.S_IFDIR | 0o755)

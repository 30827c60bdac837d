"""New files without asking git: whatever happens in a worktree, the fingerprint is the one that git's answer gives."""

import os
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from holdfast.core import fingerprint
from holdfast.core.fingerprint import Fingerprinter
from holdfast.core.job import Ran
from tests.core.test_fingerprint import git, root, run

__all__ = ["root"]


class Counting:
    """Runs git, and notes how often it was asked for new files."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b"",
        timeout: float = 60.0, nice: int = 10,
    ) -> Ran:  # fmt: skip
        self.asked += "--untracked-files=all" in argv
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
def remembering(root: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch) -> Fingerprinter:
    """One that has read the folders of a worktree with a new file, an ignored and an empty folder."""
    monkeypatch.setattr(fingerprint, "MIN_REMEMBERED_FILES", 0)
    for folder in ("empty/inner", "build", "src/deep"):
        (root / folder).mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    git(root, "commit", "-qam", "rules")
    (root / "new.txt").write_text("new\n")
    (root / "build" / "out.js").write_text("1\n")
    settle(root)
    one = Fingerprinter(counting, os.environ)
    one.take(str(root), budget_s=30)
    one.remember_folders()
    return one


def fresh(root: Path) -> str:
    return Fingerprinter(run, os.environ).take(str(root), budget_s=30).content


def test_an_unchanged_worktree_and_edits_need_no_list_of_new_files(
    root: Path, remembering: Fingerprinter, counting: Counting
) -> None:
    before = counting.asked
    assert remembering.take(str(root), budget_s=30).content == fresh(root)
    (root / "src" / "a.py").write_text("a = 2\n")
    assert remembering.take(str(root), budget_s=30).content == fresh(root)
    (root / "build" / "more.js").write_text("2\n")
    assert remembering.take(str(root), budget_s=30).content == fresh(root)
    (root / "src" / "part").write_text("a = 3\n")
    (root / "src" / "part").rename(root / "src" / "a.py")
    os.utime(root / "src", ns=(1, 1))
    assert remembering.take(str(root), budget_s=30).content == fresh(root)
    (root / "new.txt").unlink()
    os.utime(root, ns=(1, 1))
    assert remembering.take(str(root), budget_s=30).content == fresh(root)
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
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_every_way_of_getting_new_files_is_seen(root: Path, remembering: Fingerprinter, change: str) -> None:
    CHANGES[change](root)
    assert remembering.take(str(root), budget_s=30).content == fresh(root)


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
        assert remembering.take(str(root), budget_s=30).content == fresh(root), (step, file)
        if step % 6 == 5:
            settle(root)
            remembering.take(str(root), budget_s=30)
            remembering.remember_folders()

"""The fingerprint of a worktree's content, with real git."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.fingerprint import Fingerprinter
from holdfast.core.job import Ran


def run(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60.0,
    nice: int = 10,
) -> Ran:
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Ran(-9, b"", b"", timed_out=True)
    return Ran(done.returncode, done.stdout, done.stderr)


def git(root: Path, *words: str) -> str:
    settings = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "commit.gpgsign=false",
    ]
    return subprocess.run(["git", *settings, *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "README.md").write_text("hello\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def take(root: Path, *covers: str) -> str:
    found = Fingerprinter(run, os.environ).take_fingerprint(str(root), covers, budget_s=30)
    assert found.is_known, found
    return found.content


def test_every_change_of_content_counts_and_nothing_else(root: Path) -> None:
    first = take(root)
    assert take(root) == first
    (root / "src" / "a.py").write_text("a = 2\n")
    edited = take(root)
    assert edited != first
    git(root, "add", "-A")
    assert take(root) == edited, "staging changes no content"
    git(root, "commit", "-qm", "second")
    assert take(root) == edited, "committing changes no content"
    (root / "src" / "a.py").write_text("a = 1\n")
    assert take(root) == first


def test_new_deleted_ignored_and_executable_files(root: Path) -> None:
    first = take(root)
    (root / "debug.log").write_text("noise")
    assert take(root) == first
    (root / "new.py").write_text("n = 1\n")
    assert take(root) != first
    (root / "new.py").unlink()
    assert take(root) == first
    (root / "README.md").unlink()
    assert take(root) != first
    git(root, "checkout", "-q", "README.md")
    (root / "src" / "a.py").chmod(0o755)
    assert take(root) != first


def test_covers_of_the_root_alone(root: Path) -> None:
    """`./*.py` is no pattern of gitignore."""
    (root / "deep").mkdir()
    before = take(root, "./*.py")
    (root / "deep/a.py").write_text("1")
    assert take(root, "./*.py") == before
    (root / "new.py").write_text("1")
    assert take(root, "./*.py") != before


def test_covers_leaves_other_files_out(root: Path) -> None:
    first = take(root, "src/**")
    (root / "README.md").write_text("other\n")
    assert take(root, "src/**") == first
    (root / "src" / "b.py").write_text("b = 1\n")
    assert take(root, "src/**") != first


def test_the_same_fingerprinter_sees_a_second_edit(root: Path) -> None:
    one = Fingerprinter(run, os.environ)
    seen = set()
    for number in range(5):
        (root / "src" / "a.py").write_text(f"a = {number}{number}\n")
        seen.add(one.take_fingerprint(str(root), budget_s=30).content)
    assert len(seen) == 5


def test_worktrees_and_detached_heads(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(root, "worktree", "add", "-q", "--detach", str(other))
    found = Fingerprinter(run, os.environ).take_fingerprint(str(other), budget_s=30)
    assert found.is_known and found.content == take(root)
    (other / "README.md").write_text("x")
    assert take(other) != take(root)


def test_a_change_inside_of_a_submodule_counts(root: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    (library / "lib.py").write_text("x = 1\n")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "lib")
    git(root, "submodule", "add", "-q", str(library), "lib")
    git(root, "commit", "-qm", "with lib")
    first = take(root)
    (root / "lib" / "lib.py").write_text("x = 2\n")
    assert take(root) != first


def test_no_repository_and_no_time_are_unknown_not_errors(tmp_path: Path, root: Path) -> None:
    one = Fingerprinter(run, os.environ)
    assert not one.take_fingerprint(str(tmp_path / "nowhere")).is_known
    assert not one.take_fingerprint(str(tmp_path)).is_known
    late = one.take_fingerprint(str(root), budget_s=0.0)
    assert not late.is_known and "0 ms" in late.why_unknown


def test_a_look_that_took_too_long_is_tried_once_more(root: Path) -> None:
    slow: list[Sequence[str]] = []

    def busy(argv: Sequence[str], **how: Any) -> Ran:
        """A machine that has no time for the first two questions."""
        slow.append(argv)
        return Ran(124, b"", b"", timed_out=True) if len(slow) < 3 else run(argv, **{**how, "timeout": 30})

    one = Fingerprinter(busy, os.environ)
    found = one.take_parts(str(root), [(), ("src/**",)], 30)
    assert all(part.out_of_time and not part.is_known for part in found)
    found = one.take_patiently(str(root), [(), ("src/**",)], 30)
    assert [part.content for part in found] == [take(root), take(root, "src/**")]


def test_too_many_new_files_are_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.core.fingerprint.MAX_CHANGED", 50)
    for number in range(60):
        (root / f"f{number}").write_text("x")
    found = Fingerprinter(run, os.environ).take_fingerprint(str(root), budget_s=30)
    assert not found.is_known and "too many" in found.why_unknown


def diverge(root: Path) -> None:
    """Two branches that change the same file."""
    git(root, "checkout", "-qb", "other")
    (root / "README.md").write_text("theirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "README.md").write_text("ours\n")
    git(root, "commit", "-qam", "ours")


def test_mid_rebase_and_conflicts(root: Path) -> None:
    diverge(root)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "rebase", "other")
    first = take(root)
    (root / "README.md").write_text("resolved\n")
    assert take(root) != first


def test_programs_that_the_repository_names_are_not_run(root: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    git(root, "config", "filter.evil.clean", f"sh -c 'touch {ran}; cat'")
    (root / ".gitattributes").write_text("* filter=evil\n")
    (root / "src" / "a.py").write_text("a = 3\n")
    take(root)
    assert not ran.exists()


def test_several_parts_cost_one_look(root: Path) -> None:
    looks: list[Sequence[str]] = []

    def counting(argv: Sequence[str], **how: Any) -> Ran:
        looks.append(argv)
        return run(argv, **how)

    found = Fingerprinter(counting, os.environ).take_parts(str(root), [(), ("src/**",), ("*.md",)], 30)
    assert [one.content for one in found] == [take(root), take(root, "src/**"), take(root, "*.md")]
    assert sum("status" in argv for argv in looks) == 1


def test_content_of_a_sha256_repository_is_the_same_before_and_after_it_is_committed(tmp_path: Path) -> None:
    root = tmp_path / "wide"
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", str(root))
    (root / "a.py").write_text("1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "base")
    (root / "a.py").write_text("2\n")
    edited = take(root)
    git(root, "commit", "-qam", "edit")
    assert take(root) == edited


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_was_told_to_overlook_are_read(root: Path, flag: str) -> None:
    git(root, "update-index", flag, "src/a.py")
    before = take(root)
    (root / "src" / "a.py").write_text("a = 66\n")
    assert take(root) != before


def test_a_file_left_out_by_a_sparse_checkout_is_no_change(root: Path) -> None:
    before = take(root)
    git(root, "update-index", "--skip-worktree", "src/a.py")
    (root / "src" / "a.py").unlink()
    assert take(root) == before


def test_a_change_with_the_old_time_and_size_is_seen(root: Path) -> None:
    git(root, "config", "core.checkStat", "minimal")
    git(root, "config", "core.trustctime", "false")
    file = root / "src" / "a.py"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    git(root, "update-index", "--refresh")
    before, stat = take(root), file.stat()
    # Git compares whole seconds.
    while int(time.time()) <= int(stat.st_ctime):
        time.sleep(0.02)
    file.write_text("a = 2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert take(root) != before

"""Looks at real repositories and trees: worktrees, detached heads, rebases, hostile configs, ten thousand files."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import git as git_words
from holdfast.core.process import Ran
from holdfast.features.project.collectors import git_facts, junit, mapping, notion, scan, trees
from holdfast.features.project.collectors.spending import budget
from holdfast.features.project.model import empty
from holdfast.features.project.settings import Notion, Tokens, Tree
from tests.factories import NOON
from tests.features.project.notion_server import DATABASE, NotionServer
from tests.kit import git


class Runner:
    """Runs programs plainly and counts them."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def __call__(
        self, argv: Any, *, cwd: Any = None, env: Any = None, stdin: bytes = b"", timeout: float = 60, nice: int = 0
    ) -> Ran:
        self.ran.append([word for word in argv[1:] if not word.startswith("-")])
        done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run() -> Runner:
    return Runner()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("x = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first one")
    return folder


def look(repo: Path, run: Runner, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return git_facts.look(str(repo), run, before or {}, NOON)


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_clean_repository(repo: Path, run: Runner) -> None:
    found = look(repo, run)
    assert (found["status"], found["branch"], found["count"], found["detached"]) == ("clean", "main", 0, False)
    assert found["last"]["subject"] == "first one"
    assert found["last"]["author"] == "Test <test@example.invalid>"
    assert abs(found["last"]["at"] - time.time() * 1000) < 600_000


def test_a_second_look_asks_one_question(repo: Path, run: Runner) -> None:
    found = look(repo, run)
    run.ran.clear()
    assert look(repo, run, found) == found
    assert len(run.ran) == 1


def test_changed_new_deleted_and_odd_files(repo: Path, run: Runner) -> None:
    (repo / "a.py").write_text("x = 22\n")
    (repo / "dir").mkdir()
    for name in ("new.py", "with space.txt", "neu\u00e9.md", "-dash", "new\nline"):
        (repo / "dir" / name).write_text("y")
    os.symlink("/etc/passwd", repo / "link")
    found = look(repo, run)
    files = {file["path"]: file for file in found["files"]}
    assert (found["status"], found["count"]) == ("dirty", 7)
    assert (files["a.py"]["code"], files["a.py"]["size"]) == (".M", 7)
    assert set(files) == {
        "a.py",
        "link",
        *(f"dir/{n}" for n in ("new.py", "with space.txt", "neu\u00e9.md", "-dash", "new\nline")),
    }
    assert found["untracked_sources"] == ["dir/new.py"]
    assert files["link"]["size"] is None
    (repo / "a.py").unlink()
    gone = look(repo, run, found)
    assert {f["path"]: f["size"] for f in gone["files"]}["a.py"] is None


def test_a_file_of_ours_on_its_way_is_nobodys_change(repo: Path, run: Runner) -> None:
    (repo / "logs").mkdir()
    (repo / "logs" / f"..gitignore.{os.getpid()}.partial").write_text("*\n")
    found = look(repo, run)
    assert (found["status"], found["count"], found["files"]) == ("clean", 0, [])
    (repo / "logs" / "data.partial").write_text("mine")
    assert look(repo, run)["count"] == 1


def test_names_that_are_no_text(repo: Path, run: Runner) -> None:
    with open(os.fsencode(repo) + b"/\xff\xfe.txt", "wb") as file:
        file.write(b"x")
    found = look(repo, run)
    assert found["count"] == 1
    assert found["files"][0]["size"] == 1
    found["files"][0]["path"].encode()


def test_a_detached_head_and_no_commit_yet(repo: Path, run: Runner, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    found = look(repo, run)
    assert (found["branch"], found["detached"]) == ("HEAD", True)
    young = tmp_path / "young"
    young.mkdir()
    git(young, "init", "-q")
    found = look(young, run)
    assert (found["branch"], found["head"], found["last"]) == ("main", "", None)


def test_a_worktree_has_its_own_state(repo: Path, run: Runner, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "b.py").write_text("y")
    found = look(tmp_path / "side", run)
    assert (found["branch"], found["count"], found["worktree"]) == ("side", 1, True)
    assert look(repo, run)["count"] == 0


def test_ahead_behind_and_since_when(repo: Path, run: Runner, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repo), "clone")
    clone = tmp_path / "clone"
    (clone / "a.py").write_text("x = 2\n")
    git(clone, "commit", "-qam", "second", "--date", "2001-01-01T00:00:00")
    found = look(clone, run)
    assert (found["ahead"], found["behind"], found["upstream"]) == (1, 0, "origin/main")
    assert found["unpushed_since"] == found["last"]["at"]
    (repo / "b").write_text("b")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "theirs")
    git(clone, "fetch", "-q")
    assert look(clone, run, found)["behind"] == 1


def test_a_merge_conflict_and_a_rebase(repo: Path, run: Runner) -> None:
    git(repo, "checkout", "-qb", "side")
    (repo / "a.py").write_text("side\n")
    git(repo, "commit", "-qam", "side")
    git(repo, "checkout", "-q", "main")
    (repo / "a.py").write_text("main\n")
    git(repo, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "-q", "side")
    found = look(repo, run)
    assert (found["doing"], found["conflicts"]) == ("merge", ["a.py"])
    git(repo, "merge", "--abort")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "rebase", "-q", "side")
    found = look(repo, run)
    assert (found["doing"], found["detached"]) == ("rebase", True)
    git(repo, "rebase", "--abort")
    assert look(repo, run)["doing"] == ""


def test_no_repository_a_missing_folder_and_a_broken_one(tmp_path: Path, run: Runner) -> None:
    assert look(tmp_path, run)["problem"] == "not a git repository"
    assert look(tmp_path / "none", run)["problem"] == "the folder is gone"
    (tmp_path / ".git").mkdir()
    found = look(tmp_path, run)
    assert found["status"] == "unknown"
    assert "not a git repository" in found["problem"]
    (tmp_path / ".git").rmdir()
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert look(tmp_path, run)["status"] == "unknown"


HOSTILE = {
    "core.fsmonitor": "{trap}",
    "core.hooksPath": "{hooks}",
    "core.pager": "{trap}",
    "core.sshCommand": "{trap}",
    "diff.external": "{trap}",
    "diff.evil.textconv": "{trap}",
    "filter.evil.clean": "{trap}",
    "filter.evil.smudge": "{trap}",
    "filter.evil.process": "{trap}",
    "filter.Other Name.clean": "{trap}",
    "filter.evil.required": "true",
    "gpg.program": "{trap}",
    "log.showSignature": "true",
    "core.editor": "{trap}",
    "core.askPass": "{trap}",
    "alias.status": "!{trap}",
    "remote.origin.url": "ext::{trap}",
    "remote.origin.promisor": "true",
    "extensions.partialClone": "origin",
    "protocol.ext.allow": "always",
    "interactive.diffFilter": "{trap}",
    "status.showUntrackedFiles": "no",
}


def test_a_hostile_config_runs_nothing(repo: Path, run: Runner, tmp_path: Path) -> None:
    """P9: fsmonitor, hooks, pager, filters, textconv, ssh, signatures: a mere look must not run any of them."""
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).write_text(trap.read_text())
        (hooks / name).chmod(0o755)
    (repo / ".gitattributes").write_text('*.py filter=evil diff=evil\n*.md filter="Other Name"\n')
    (repo / "b.md").write_text("one\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "attributes")
    for name, value in HOSTILE.items():
        git(repo, "config", name, value.format(trap=trap, hooks=hooks))
    for name in ("a.py", "b.md"):
        (repo / name).write_text("TODO changed\n")
        os.utime(repo / name, (1, 1))
    found = look(repo, run)
    assert (found["status"], found["count"]) == ("dirty", 2), found
    assert list(scan._in_difference(git_facts.Asking(str(repo), run), found, repo / ".git", repo / ".git"))
    assert not sprung.exists()
    # The trap does work where nothing guards against it, so its silence above means something.
    subprocess.run(["git", "status"], cwd=repo, capture_output=True, check=False)
    assert sprung.exists()


def test_a_repository_that_includes_its_hostility(repo: Path, run: Runner, tmp_path: Path) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    (repo / ".git" / "more").write_text(f'[filter "evil"]\n\tclean = {trap}\n')
    git(repo, "config", "include.path", "more")
    (repo / ".gitattributes").write_text("*.py filter=evil\n")
    (repo / "a.py").write_text("x = 3\n")
    os.utime(repo / "a.py", (1, 1))
    assert look(repo, run)["count"] == 2
    assert not sprung.exists()


def test_ten_thousand_uncommitted_files(repo: Path, run: Runner) -> None:
    folder = repo / "many"
    folder.mkdir()
    for n in range(10_000):
        (folder / f"{n}.txt").touch()
    found = look(repo, run)
    assert (found["count"], len(found["files"]), found["cut"]) == (10_000, 100, False)


def test_an_answer_that_was_cut_off_is_no_lie() -> None:
    found = git_words.parse_status(b"# branch.oid abc\0# branch.head main\x001 .M N... 1 2 3 a b x\0? whole\0? hal")
    assert [c.path for c in found.changes] == ["x", "whole"]
    assert found.cut


@pytest.mark.parametrize(
    "rubbish", [b"", b"\0\0\0", b"1 \0", b"2 x\0", b"u\0", b"# branch.ab x y\0", bytes(range(256))]
)
def test_rubbish_from_git_is_survived(rubbish: bytes) -> None:
    git_words.parse_status(rubbish)
    git_words.parse_commit(rubbish)
    git_words.parse_commits(rubbish)
    git_words.own_filters(rubbish)


# ── branch differences ───────────────────────────────────────────────────────────────────────────────────────────────


def todos(repo: Path, run: Runner) -> list[str]:
    found = look(repo, run)
    ask = git_facts.Asking(str(repo), run)
    folders = git_facts.git_folders(str(repo))
    assert folders
    return sorted([*scan._in_difference(ask, found, *folders), *scan._in_new_files(str(repo), found)])


def test_todos_this_branch_adds(repo: Path, run: Runner) -> None:
    (repo / "old.py").write_text("# TODO was there before\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "old")
    assert todos(repo, run) == []
    git(repo, "checkout", "-qb", "work")
    (repo / "a.py").write_text("x = 1\n# FIXME committed\n")
    git(repo, "commit", "-qam", "one")
    (repo / "old.py").write_text("# TODO was there before\ny = 1\n# TODO not committed\n")
    (repo / "new.py").write_text("z = 1\n# TODO untracked\n")
    assert todos(repo, run) == ["a.py:2", "new.py:2", "old.py:3"]
    (repo / "a.py").write_text("x = 1\n")
    assert todos(repo, run) == ["new.py:2", "old.py:3"], "what a later change takes out again does not count"


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def facts(tmp_path: Path, **options: Any) -> dict[str, Any]:
    named = {"source": Tree(path="src"), "target": Tree(path="dst", source="source", **options)}
    return trees.tree_facts("target", named, str(tmp_path))


def test_in_sync_is_by_content_not_by_time(tmp_path: Path) -> None:
    for folder in ("src/sub", "dst/sub"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text("same")
    os.utime(tmp_path / "dst/sub/f", (1, 1))
    (tmp_path / "dst/extra").write_text("its own affair")
    assert facts(tmp_path)["in_sync"] is True
    (tmp_path / "dst/sub/f").write_text("SAME")
    os.utime(tmp_path / "dst/sub/f", (1, 1))
    found = facts(tmp_path)
    assert (found["in_sync"], found["differing"]) == (False, ["sub/f"])
    (tmp_path / "dst/sub/f").unlink()
    assert facts(tmp_path)["in_sync"] is False


def test_chezmois_names(tmp_path: Path) -> None:
    (tmp_path / "src/dot_config").mkdir(parents=True)
    (tmp_path / "dst/.config").mkdir(parents=True)
    (tmp_path / "src/dot_config/private_executable_x").write_text("1")
    (tmp_path / "dst/.config/x").write_text("1")
    (tmp_path / "src/run_once_install.sh").write_text("never compared")
    (tmp_path / "src/dot_bashrc.tmpl").write_text("never compared")
    assert facts(tmp_path, naming="chezmoi")["in_sync"] is True


def test_trees_that_are_missing_or_closed_are_said(tmp_path: Path) -> None:
    assert "No such file" in facts(tmp_path)["problem"]
    (tmp_path / "dst").mkdir()
    found = facts(tmp_path)
    assert (found["in_sync"], "No such file" in found["problem"]) == (False, True)
    (tmp_path / "src").mkdir()
    os.symlink(tmp_path, tmp_path / "src" / "loop")
    assert facts(tmp_path)["in_sync"] is True, "links are not followed"


# ── reports, budget, mapping ─────────────────────────────────────────────────────────────────────────────────────────

JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="a" tests="4">
<testcase classname="t.A" name="ok"/><testcase classname="t.A" name="bad"><failure message="x">no</failure></testcase>
<testcase classname="t.A" name="broken"><error/></testcase><testcase classname="t.A" name="left"><skipped/></testcase>
</testsuite></testsuites>"""


def test_junit_reports(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/r.xml").write_text(JUNIT)
    (run,) = junit.reports(str(tmp_path), ["out/*.xml"], {})
    assert (run.verdict, run.passed, run.failed, run.skipped) == ("failed", 1, 2, 1)
    assert run.failures == ["t.A::bad", "t.A::broken"]
    assert junit.reports(str(tmp_path), ["out/*.xml"], {run.runner: run.at}) == [], "the same report is no news"


@pytest.mark.parametrize(
    "text", ["", "<a>", "<html></html>", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>']
)
def test_a_report_that_is_none_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.xml").write_text(text)
    found = junit.reports(str(tmp_path), ["r.xml"], {})
    assert found == []


def test_reports_are_only_looked_for_below_the_project(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(JUNIT)
    inside = tmp_path / "inside"
    inside.mkdir()
    assert junit.reports(str(inside), ["../r.xml", str(tmp_path / "r.xml")], {}) == []


def test_the_budget_counts_its_own_period() -> None:
    days = {"2025-10-01": 5, "2025-10-05": 7, "2025-10-09": 11}
    doing = {"spent": {**days, "2025-09-30": 100}, "ended": [10, 20], "sessions": {}, "edits": []}
    assert NOON == 1_760_000_000_000, "Thursday, 2025-10-09"
    used = {period: budget(doing, Tokens(limit=50, period=period), NOON)["used"] for period in ("day", "week", "month")}
    assert used == {"day": 11, "week": 11, "month": 23}
    assert budget(doing, Tokens(), NOON)["per_session"] == 15
    assert budget(None, Tokens(), NOON)["used"] == 0


def test_a_mapping_file_that_is_too_large_is_none(tmp_path: Path) -> None:
    (tmp_path / "m.yml").write_text("a: [" + "x," * 200_000 + "]")
    assert mapping.read(str(tmp_path / "m.yml")) == {}


# ── Notion ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_tasks(*names: str, notion_state: dict[str, Any] | None = None) -> dict[str, Any]:
    task = {"priority": "P1", "type": "own_task", "done_when": ["It is done"]}
    tasks = [{**task, "id": f"task_{n:03}", "description": name} for n, name in enumerate(names, 1)]
    return {**empty("/p"), "folder": "p", "tasks": tasks, "notion": notion_state or {}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOTION_TOKEN", "secret-token")
    with NotionServer() as made:
        yield made


def test_tasks_go_to_notion_and_are_closed_there(server: NotionServer) -> None:
    """S1-6."""
    settings = Notion(database=DATABASE, base_url=server.url)
    first = notion.pushed(with_tasks("one", "two"), settings, NOON)
    assert (first["sync_status"], first["last_synced"], first["pending_count"]) == ("synced", NOON, 0)
    assert server.rows() == {"p/task_001": ("one", "P1", "Open"), "p/task_002": ("two", "P1", "Open")}
    second = notion.pushed(with_tasks("one changed", notion_state=first), settings, NOON)
    assert server.rows() == {"p/task_001": ("one changed", "P1", "Open"), "p/task_002": ("two", "P1", "Done")}
    server.requests.clear()
    assert notion.pushed(with_tasks("one changed", notion_state=second), settings, NOON)["sync_status"] == "synced"
    assert server.requests == [], "nothing changed, nothing is asked"


def test_what_cannot_be_sent_waits_and_is_sent_once(server: NotionServer) -> None:
    settings = Notion(database=DATABASE, base_url=server.url)
    server.fail = 503
    down = notion.pushed(with_tasks("one"), settings, NOON)
    assert (down["sync_status"], down["pending"], down["pending_count"]) == ("pending", ["write task_001: one"], 1)
    server.fail = 0
    up = notion.pushed(with_tasks("one", notion_state=down), settings, NOON)
    assert (up["sync_status"], up["pending"]) == ("synced", [])
    again = notion.pushed(with_tasks("one"), settings, NOON)
    assert again["sync_status"] == "synced"
    assert len(server.pages) == 1, "a push whose end was never recorded makes no second page"


def test_a_wrong_token_fails_and_an_unreachable_server_waits(
    server: NotionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTION_TOKEN", "wrong")
    found = notion.pushed(with_tasks("one"), Notion(database=DATABASE, base_url=server.url), NOON)
    assert (found["sync_status"], found["pending_count"]) == ("failed", 1)
    assert "wrong" not in str(found)
    found = notion.pushed(with_tasks("one"), Notion(database=DATABASE, base_url="http://127.0.0.1:9"), NOON)
    assert found["sync_status"] == "pending"

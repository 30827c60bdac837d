"""What is seen of the world when an event comes, with real git."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.core.fingerprint import content_key
from holdfast.features.checks.observe import LATE_MS, Observer
from holdfast.features.checks.settings import ChecksSettings
from tests.kit import git

SETTINGS = ChecksSettings(look_ms=10_000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


class Seen:
    def __init__(self, root: Path) -> None:
        self.root, self.observer = root, Observer()

    def event(self, kind: str, *parts: list[str], session: str = "s", late: int = 0, **data: Any) -> Any:
        data = {"cwd": str(self.root), "repo": str(self.root / ".git"), "branch": "main", "call": "c", **data}
        at = time.time_ns() // 1_000_000 - late
        event = Event(key="k", kind=kind, at=at, session=session, project=str(self.root), data=data)
        self.observer.enrich(event, SETTINGS, lambda: parts)
        return event.data

    def start(self, command: str, **more: Any) -> Any:
        return self.event("tool.started", action="shell", command=command, **more)

    def end(self, command: str, **more: Any) -> Any:
        return self.event("tool.finished", action="shell", command=command, **{"exit_code": 0, **more})


@pytest.fixture
def seen(root: Path) -> Seen:
    return Seen(root)


def test_content_is_looked_at_where_it_matters_and_nowhere_else(seen: Seen) -> None:
    for data in (seen.event("turn.ended"), seen.event("session.started"), seen.start("git add -A && git commit -m x")):
        assert data.content[""]
    for data in (
        seen.event("prompt.submitted"),
        seen.start("git status"),
        seen.start("echo git commit"),
        seen.end("ls"),
        seen.event("tool.finished", action="edit"),
    ):
        assert data.content == {}


def test_parts_that_features_compare_have_their_own_fingerprint(seen: Seen) -> None:
    before = seen.event("turn.ended", ["src/**"]).content
    (seen.root / "README.md").write_text("new")
    after = seen.event("turn.ended", ["src/**"]).content
    key = content_key(["src/**"])
    assert before[key] == after[key]
    assert before[""] != after[""]


def test_an_event_that_comes_late_says_nothing_of_the_content_now(seen: Seen) -> None:
    assert seen.event("turn.ended", late=max(LATE_MS, SETTINGS.look_ms) + 1_000).content == {}


def test_what_was_written_after_the_end_of_the_run_was_not_checked(seen: Seen) -> None:
    file = seen.root / "src" / "a.py"
    file.write_text("a = 2\n")
    later = time.time() + 60
    os.utime(file, (later, later))
    data = seen.end("pytest -q", output="1 passed in 0.1s")
    assert ([check.verdict for check in data.judgement.checks], data.content) == (["passed"], {})
    os.utime(file, (1, 1))
    assert seen.end("pytest -q", output="1 passed in 0.1s").content[""]


def test_a_check_is_judged_from_where_the_command_began(seen: Seen) -> None:
    seen.start("cd src && pytest -q")
    data = seen.end("cd src && pytest -q", cwd=str(seen.root / "src"), output="1 passed in 0.1s")
    assert [(check.dir, check.verdict) for check in data.judgement.checks] == [("src", "passed")]
    assert data.content[""]


def test_a_background_call_proves_nothing(seen: Seen) -> None:
    data = seen.end("pytest -q", detached=True, output="1 passed in 0.1s")
    assert [check.verdict for check in data.judgement.checks] == ["unknown"]
    assert not data.judgement.proves_tests_pass


def test_who_did_a_git_act(seen: Seen) -> None:
    seen.event("session.started")
    seen.start("make release", call="long")
    git(seen.root, "commit", "-q", "--allow-empty", "-m", "by the long one")
    assert seen.event("prompt.submitted", session="other").git is None, "it may be the running call's"
    assert seen.start("ls", session="other", call="o").git is None
    assert seen.end("ls", session="other", call="o").git is None
    done = seen.end("make release", call="long")
    assert (done.git.acts[-1].verb, done.git.outside) == ("commit", False)
    git(seen.root, "commit", "-q", "--allow-empty", "-m", "by a person")
    look = seen.event("prompt.submitted").git
    assert (look.acts[-1].verb, look.outside) == ("commit", True)


def test_a_refused_call_is_forgotten_at_the_end_of_the_turn(seen: Seen) -> None:
    seen.event("session.started")
    seen.start("git push", call="refused")
    git(seen.root, "commit", "-q", "--allow-empty", "-m", "by a person")
    assert seen.event("turn.ended").git.outside


def test_what_a_command_is_about_to_do_in_git(seen: Seen) -> None:
    assert seen.start("bash -c 'git -C . commit -m x' && git push").git_verbs == ["commit", "push"]
    assert seen.start("git log | grep commit; git commit --dry-run").git_verbs == []
    assert seen.start("git commit -m x; " * 1_500).git_verbs == ["?"], (
        "too large to be followed, so nothing is ruled out"
    )
    assert seen.start("git commit -m 'unbalanced").content[""]
    assert seen.start("ls; " * 3_000).git_verbs == []


def test_outside_of_git_there_is_only_the_judgement(tmp_path: Path) -> None:
    seen = Seen(tmp_path)
    data = seen.end("pytest -q", repo="", output="1 passed in 0.1s")
    assert [check.verdict for check in data.judgement.checks] == ["passed"]
    assert (data.content, data.git) == ({}, None)


def test_what_was_imported_is_not_looked_at(seen: Seen) -> None:
    assert seen.end("pytest -q", imported="claude", output="1 passed").judgement is None

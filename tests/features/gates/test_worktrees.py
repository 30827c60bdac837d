"""An edit belongs to the worktree and branch that contain the file, wherever the session is; real git and hooks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import World, git

RULES = "requirements:\n  protected_branch: {type: guard, guard_type: protected_branch, protected_branches: [main]}\n"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    (world.root / "config").mkdir()
    (world.root / "config" / "settings.yaml").write_text(RULES)
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "config", "user.email", "a@example.org")
    git(world.project, "config", "user.name", "A")
    (world.project / "a.py").write_text("1\n")
    git(world.project, "add", ".")
    git(world.project, "commit", "-qm", "first")
    git(world.project, "worktree", "add", "-q", str(world.root / "topic"), "-b", "topic")
    yield world
    world.close()


def is_refused(answer: dict[str, Any]) -> bool:
    return "deny" in str(answer)


def test_a_session_on_another_branch_may_not_write_the_protected_ones_files(world: World) -> None:
    topic = world.root / "topic"
    session = world.session("s1", cwd=str(topic))
    session.start()
    assert not is_refused(session.before("Edit", file_path=str(topic / "a.py"), old_string="1", new_string="2"))
    protected = world.project / "a.py"
    assert is_refused(session.before("Edit", file_path=str(protected), old_string="1", new_string="2"))
    assert is_refused(session.before("Bash", command=f"echo 3 > {protected}"))


def test_a_session_on_the_protected_branch_may_write_another_worktree(world: World) -> None:
    file = world.root / "topic" / "a.py"
    session = world.session("s1")
    session.start()
    assert is_refused(session.before("Edit", file_path=str(world.project / "a.py"), old_string="1", new_string="2"))
    assert not is_refused(session.before("Edit", file_path=str(file), old_string="1", new_string="2"))
    assert not is_refused(session.before("Bash", command=f"cd {file.parent} && echo 3 > a.py"))


def test_a_detached_head_at_the_tip_of_a_protected_branch_is_that_branch(world: World) -> None:
    session = world.session("s1")
    session.start()
    git(world.project, "checkout", "-q", "--detach")
    edit = {"file_path": str(world.project / "a.py"), "old_string": "1", "new_string": "2"}
    assert is_refused(session.before("Edit", **edit))
    git(world.project, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    assert not is_refused(session.before("Edit", **edit))

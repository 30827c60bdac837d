"""What is noticed beside the hooks, with a real daemon and real git."""

from pathlib import Path

from holdfast.core.kinds.check_events import GitActed, GitNoticed
from tests.kit import World, git, wait_until


def test_what_a_person_does_in_git_is_noticed_without_a_hook(tmp_path: Path) -> None:
    world = World(tmp_path)
    git(world.project, "init", "-q")
    git(world.project, "commit", "-q", "--allow-empty", "-m", "first")
    try:
        agent = world.session()
        agent.start()
        git(world.project, "commit", "-q", "--allow-empty", "-m", "by hand")
        wait_until(lambda: world.events(kinds=(GitActed.KIND,)), "the commit")
        (act,) = world.events(kinds=(GitActed.KIND,))
        assert (act.data.verb, act.data.outside) == ("commit", True)
        assert act.data.commits == [git(world.project, "rev-parse", "HEAD").strip()]

        (world.project / "a.txt").write_text("one\n")
        git(world.project, "add", "a.txt")
        wait_until(lambda: any(e.data.staged for e in world.events(kinds=(GitNoticed.KIND,))), "the staged file")

        agent.before("Bash", call="c", command="git commit --allow-empty -m mine")
        git(world.project, "commit", "-q", "--allow-empty", "-m", "mine")
        agent.after("Bash", call="c", response={"stdout": "", "stderr": ""}, command="git commit --allow-empty -m mine")
        agent.stop()
        assert [(e.data.verb, e.data.outside) for e in world.events(kinds=(GitActed.KIND,))][1:] == [("commit", False)]
    finally:
        world.close()

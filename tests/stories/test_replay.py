"""A log is replayed in a process that saw none of its commands, and gives the same documents."""

from tests.kit import World, git
from tests.replay import differences


def test_a_file_that_a_command_writes_before_and_after_its_commit(world: World) -> None:
    """What a process remembered of a command that it had followed in another folder once decided what a reducer saw."""
    git(world.project, "init", "-q")
    world.session("first").start()
    world.cli("gate", "init", "--preset", "relaxed", code=None)
    web = world.project / "web"
    web.mkdir()
    for folder in (world.project, web):
        agent = world.session(folder.name, cwd=str(folder))
        agent.start()
        agent.tool("Bash", command="echo x > app.py && pytest -q && git commit -qam x && printf y > app.py")
        agent.stop("Done.")
    world.ask(op="settle")
    assert differences(world.paths.database) == []
    assert world.json("rebuild")["differences"] == []
    told = world.json("doctor", code=None)["findings"]
    assert "the log says" not in str(told)

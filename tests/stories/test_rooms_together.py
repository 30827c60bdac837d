"""Rooms hear of one another only through events; here is what that gives a user."""

from tests.kit import World, git, wait_until

GATE = """
requirements:
  smoke:
    type: evidence
    evidence: {uat: smoke}
"""
SCENARIO = """
name: smoke
description: The program starts
steps:
  - {action: start, description: It says hello, tool: Bash, arguments: {command: "python hello.py*"}}
"""


def test_done_is_believed_only_when_the_scenario_has_passed(world: World) -> None:
    """Issue 4, point 2: *UAT scenario X passed* is evidence, taken from the log and not from the agent's word."""
    git(world.project, "init", "-q")
    for name, text in ((".holdfast/settings.yaml", GATE), ("uat/scenarios/smoke.yaml", SCENARIO)):
        (world.project / name).parent.mkdir(parents=True, exist_ok=True)
        (world.project / name).write_text(text)
    agent = world.session("s1")
    agent.start()
    wait_until(lambda: world.events(kinds=("uat.scenarios",)), "the scenario is known")
    agent.prompt("change hello.py")
    agent.tool("Write", file_path=str(world.project / "hello.py"), content="print('hello')")
    refused = agent.stop()
    assert refused["decision"] == "block"
    assert "smoke" in refused["reason"]
    world.cli("uat", "start", "smoke", "--session", "s1")
    agent.tool("Bash", {"stdout": "hello", "stderr": "", "interrupted": False}, command="python hello.py")
    ended = world.events(kinds=("uat.ended",))
    assert [(e.data["scenario"], e.data["outcome"]) for e in ended] == [("smoke", "passed")]
    assert agent.stop(again=True) == {}

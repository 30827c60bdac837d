"""The same call that fails again and again is noticed once for each five times."""

from tests.features.gates.stage import Stage


def fail(stage: Stage, times: int, command: str = "make deploy") -> list[str]:
    """What the agent is told before each call."""
    return ["".join(context.text for context in stage.run(command, code=2).contexts) for _ in range(times)]


def test_it_is_said_before_the_sixth_and_the_eleventh_time() -> None:
    said = fail(Stage(loop={}), 12)
    assert [number for number, text in enumerate(said, 1) if text] == [6, 11]
    assert "make deploy failed 5 times in a row" in said[5]


def test_looking_around_keeps_the_count_and_work_resets_it() -> None:
    stage = Stage(loop={})
    fail(stage, 4)
    stage.run("ls -la")
    fail(stage, 1)
    assert "failed 5 times" in fail(stage, 1)[0]
    stage = Stage(loop={})
    fail(stage, 4)
    stage.edit()
    assert fail(stage, 4) == [""] * 4


def test_another_call_that_fails_begins_a_new_count() -> None:
    stage = Stage(loop={})
    assert fail(stage, 4) + fail(stage, 4, "make other") + fail(stage, 4) == [""] * 12

"""What an agent writes down of its token use is what `holdfast cost` adds up, once, live as after a restart."""

import json

import pytest

from holdfast.core.ports import EventQuery
from tests.kit import World, wait_until

USAGE = {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


def answer(number: int) -> str:
    line = {
        "type": "assistant", "sessionId": "s-1", "requestId": f"req-{number}", "uuid": f"u-{number}",
        "timestamp": f"2026-11-10T10:00:0{number}.000Z", "cwd": "/x",
        "message": {"id": f"msg-{number}", "model": "claude-sonnet-4-5", "role": "assistant", "content": [], "usage": USAGE},
    }  # fmt: skip
    return json.dumps(line) + "\n"


def tokens(world: World) -> int:
    with world.reader() as reader:
        found = reader.events(EventQuery(kinds=("model.answered",), limit=100))
        return sum(sum(event.data.tokens.values()) for event in found)


def turn(world: World, number: int) -> None:
    agent = world.session("s-1")
    agent.prompt(f"prompt {number}")
    with open(world.home / "s-1.jsonl", "a") as file:
        file.write(answer(number))
    agent.stop()


@pytest.mark.quick
def test_calls_are_counted_once_live_and_after_a_restart(world: World) -> None:
    world.start()
    world.session("s-1").start()
    turn(world, 1)
    wait_until(lambda: tokens(world) == 1050, "the first call is counted")
    turn(world, 2)
    wait_until(lambda: tokens(world) == 2100, "the second call is counted")
    world.cli("daemon", "restart")
    turn(world, 3)
    wait_until(lambda: tokens(world) == 3150, "after a restart what was counted is not counted again")
    assert "claude-sonnet-4-5" in world.cli("cost", "model")

"""A model reads finished turns: real hooks, a real daemon that is killed in the middle, a model on loopback, a program."""

import json
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.memory.models import Asked, Model, a_model, noting
from tests.kit import World, wait_until


@pytest.fixture
def model() -> Iterator[Model]:
    with a_model() as made:
        yield made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def switched_on(world: World, **given: Any) -> None:
    settings = world.root / "config" / "settings.yaml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"memory": {"model": {"wait_seconds": 0, **given}}}))
    world.start()


def of_model(world: World) -> list[str]:
    found = world.view("memory.listed", everywhere=True, limit=100)["observations"]
    return sorted(doc["text"] for doc in found if doc["origin"] == "model")


def meter(world: World) -> dict[str, Any]:
    return world.view("memory.meter")


def test_finished_turns_are_read_and_the_meter_says_what_it_cost(world: World, model: Model) -> None:
    switched_on(world, use="endpoint", url=model.url, name="tiny")
    agent = world.session()
    agent.start()
    agent.prompt("why is the importer slow")
    agent.tool("Bash", command="make profile")
    agent.stop("It reads every line twice.")
    wait_until(lambda: of_model(world), "the model's observation is there")
    assert of_model(world) == ["It was about: why is the importer slow"]
    assert len(model.asked) == 1
    assert "make profile" in model.asked[0].user
    assert "model    endpoint tiny, 700 of 100,000 tokens today" in world.cli("status")
    assert "700 tokens  1 calls" in world.cli("memory", "meter")
    assert world.json("status")["model"]["used"] == 700
    assert world.json("rebuild")["differences"] == []


def test_kill_9_in_the_middle_of_a_call_loses_no_turn_and_doubles_none(world: World, model: Model) -> None:
    """Pain 4. The call that was cut off counts as spent; the turns are asked about again, once."""
    called, go_on = threading.Event(), threading.Event()

    def held_up(asked: Asked) -> None:
        called.set()
        go_on.wait(20)
        noting(asked)

    model.answer = held_up
    switched_on(world, use="endpoint", url=model.url, name="tiny", turns=10)
    agent = world.session()
    agent.start()
    for n in range(3):
        agent.prompt(f"please look at part{n}")
        agent.stop()
    assert called.wait(20)
    world.kill()
    model.answer = noting
    go_on.set()
    agent.prompt("please look at part3")
    agent.stop()
    world.drained()
    wait_until(lambda: meter(world)["waiting"] == 0, "every turn was read")
    docs = world.view("memory.listed", everywhere=True, limit=100)["observations"]
    mine = sorted((doc["text"], doc["times"]) for doc in docs if doc["origin"] == "model")
    assert mine == [(f"It was about: please look at part{n}", 1) for n in range(4)]
    asked = world.events(kinds=("memory.asked",))[0]
    assert meter(world)["failed"] == 1
    assert meter(world)["used"] >= asked.get("tokens") + 700
    assert world.json("rebuild")["differences"] == []


def test_without_the_model_everything_else_goes_on(world: World, model: Model) -> None:
    """500 and then good: hooks are quick meanwhile, the rules work, nothing of the queue is lost."""
    model.answer = lambda asked: asked.reply(500, b"overloaded")
    switched_on(world, use="endpoint", url=model.url, name="tiny")
    agent = world.session()
    agent.start()
    agent.prompt("Always use tabs in makefiles.")
    began = time.monotonic()
    agent.stop()
    assert time.monotonic() - began < 5
    wait_until(lambda: meter(world)["failed"], "the call failed")
    assert "tabs in makefiles" in world.cli("memory", "list")
    assert "HTTP 500" in world.cli("status")
    model.answer = noting
    wait_until(lambda: of_model(world), "it was asked again")
    assert (meter(world)["waiting"], meter(world)["error"]) == (0, "")


FAKE = """#!/bin/sh
cat > "$0.stdin"
echo "$PWD $HOLDFAST_PAUSE" > "$0.where"
printf '%s\\n' "$@" > "$0.args"
cat <<'END'
{"is_error": false, "usage": {"input_tokens": 900, "output_tokens": 60},
 "result": "Here it is: {\\"observations\\": [{\\"type\\": \\"discovery\\", \\"text\\": \\"The parser is recursive.\\"}]}"}
END
"""


def test_the_claude_program_on_the_path(world: World, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    world.env["PATH"] = f"{program.parent}:{world.env['PATH']}"
    switched_on(world, use="claude", name="haiku")
    agent = world.session()
    agent.start()
    agent.prompt("what is the parser like")
    agent.stop("Recursive.")
    wait_until(lambda: of_model(world), "its observation is there")
    assert of_model(world) == ["The parser is recursive."]
    assert meter(world)["used"] == 960
    assert "what is the parser like" in Path(f"{program}.stdin").read_text()
    assert Path(f"{program}.where").read_text().split() == [str(world.paths.state), "1"]
    assert "--setting-sources" in Path(f"{program}.args").read_text()


def test_a_repository_cannot_send_words_anywhere(world: World, model: Model) -> None:
    """P9: until it is trusted, a project's own settings switch no model on."""
    (world.project / ".holdfast").mkdir()
    wanted = {"memory": {"model": {"use": "endpoint", "url": model.url, "name": "tiny", "wait_seconds": 0}}}
    (world.project / ".holdfast" / "settings.yaml").write_text(json.dumps(wanted))
    world.start()
    agent = world.session()
    agent.start()
    agent.prompt("please look")
    agent.stop()
    assert world.view("memory.meter", project=str(world.project))["waiting"] == 0
    assert not world.events(kinds=("memory.queued",))
    assert "memory.model" in world.cli("status")
    assert model.asked == []

"""`holdfast config` as a person types it."""

import json

from tests.kit import World, git


def test_a_value_is_set_where_it_is_said_and_shown_with_its_origin(world: World) -> None:
    file = world.root / "config" / "settings.yaml"
    assert f"context.start_tokens = 900 in {file}" in world.cli("config", "set", "context.start_tokens", "900")
    assert "start_tokens: 900" in file.read_text()
    assert str(file) in world.cli("config", "show", "context")


def test_what_a_project_may_not_say_untrusted_is_said_when_it_is_set(world: World) -> None:
    git(world.project, "init", "-q")
    told = world.cli("config", "set", "store.body_days", "5", "--layer", "project")
    assert str(world.project / ".holdfast" / "settings.yaml") in told
    assert "you have not trusted this file" in told
    assert "holdfast config trust" in told


def test_the_schema_is_for_editors(world: World) -> None:
    told = json.loads(world.cli("config", "schema"))
    assert told["properties"]["context"]
    assert told["additionalProperties"] is False


def test_a_narrow_terminal_still_shows_the_values(world: World) -> None:
    told = world.cli("config", "show", COLUMNS="60")
    assert "90" in next(line for line in told.splitlines() if line.startswith("store.body_days"))

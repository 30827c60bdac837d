"""Asking the daemon as somebody in the project, without starting a command line for it: for many cycles."""

from typing import Any

from tests.kit import World


def view(world: World, name: str, **args: Any) -> Any:
    return _ask(world, "view", name, args)


def command(world: World, name: str, **args: Any) -> Any:
    return _ask(world, "command", name, args)


def _ask(world: World, op: str, name: str, args: dict[str, Any]) -> Any:
    return world.ask(op=op, name=name, args=args, project=str(world.project), session="")

"""Asking the daemon without starting a command line for it: for looking often, and for many cycles."""

import json
import os
import socket
from typing import Any

from tests.kit import World


def view(world: World, name: str, **args: Any) -> Any:
    return ask(world, "view", name, args)


def command(world: World, name: str, **args: Any) -> Any:
    return ask(world, "command", name, args)


def ask(world: World, op: str, name: str, args: dict[str, Any]) -> Any:
    request = {"op": op, "name": name, "args": args, "project": str(world.project), "session": ""}
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(os.path.relpath(world.paths.control_socket))
        sock.sendall(json.dumps(request).encode() + b"\n")
        told = json.loads(sock.makefile("rb").readline())
    if "error" in told:
        raise AssertionError(told["error"])
    return told["done"]

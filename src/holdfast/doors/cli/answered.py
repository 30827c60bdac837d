"""Asks the daemon on behalf of a command; with --json, the answer is the command's whole output."""

from typing import Any

from holdfast import client
from holdfast.doors.cli import render


def view(json: bool, name: str, /, **args: Any) -> Any:
    answer = client.ask_view(name, **args)
    render.finish_as_json(json, answer)
    return answer


def command(json: bool, name: str, /, **args: Any) -> Any:
    answer = client.run_command(name, **args)
    render.finish_as_json(json, answer)
    return answer

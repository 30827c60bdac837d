"""What is known of a finished shell call, as whole as the event has it."""

import json
from typing import Any

from holdfast.core.event import Event
from holdfast.core.text import CUT_MARK
from holdfast.features.checks.observe import read_shell_result


def ended(body: Any = None, **data: Any) -> Event:
    return Event(key="k", kind="tool.finished", at=1, data=data, body=json.dumps(body).encode() if body else b"")


def test_a_whole_output_is_taken_as_it_is() -> None:
    found = read_shell_result(ended(command="ls", exit_code=0, output="a"))
    assert (found.exit_code, found.stdout, found.why_unknown) == (0, "a", "")


def test_a_cut_output_is_read_from_the_body() -> None:
    body = {"tool_response": {"stdout": "long\n1 failed", "stderr": "warning"}}
    found = read_shell_result(ended(body, command="x", output=f"long …[9 {CUT_MARK}]… end"))
    assert (found.stdout, found.stderr) == ("long\n1 failed", "warning")
    found = read_shell_result(ended({"tool_response": "all of it"}, command="x", output=f"a {CUT_MARK}"))
    assert found.stdout == "all of it"
    found = read_shell_result(ended({"error": 5}, command="x", output=f"a {CUT_MARK}"))
    assert found.stdout == f"a {CUT_MARK}"


def test_silence_and_an_output_that_is_not_told_are_two_things() -> None:
    assert read_shell_result(ended({"tool_response": {"stdout": "", "stderr": ""}}, command="x")).stdout == ""
    assert read_shell_result(ended({"tool_response": ""}, command="x")).stdout is None
    assert read_shell_result(ended(None, command="x")).stdout is None
    assert read_shell_result(ended([1], command="x")).stdout is None


def test_what_cannot_be_known_says_why() -> None:
    assert "longer than" in read_shell_result(ended(command=f"a {CUT_MARK}", exit_code=0)).why_unknown
    detached = read_shell_result(ended(command="a", exit_code=0, detached=True))
    assert (detached.exit_code, bool(detached.why_unknown)) == (None, True)
    assert read_shell_result(ended(command="a", exit_code=0, interrupted=True)).exit_code is None

"""`holdfast memory explain`: the three forms of a line, and anything else."""

import json

import pytest
from typer.testing import CliRunner

from holdfast.doors.cli.memory import app
from holdfast.features.memory.policy.recall import explain_line


def test_a_prompt() -> None:
    answer = explain_line(json.dumps({"id": "a", "prompt": "from now on sign each commit", "context": None}))
    assert answer == {
        "id": "a",
        "remembered": [{"type": "rule", "text": "sign each commit", "outcome": "kept"}],
    }


def test_statements() -> None:
    said = [
        {"i": n, "at": f"2026-03-0{n + 1}", "by": "user", "text": t}
        for n, t in enumerate(("we use npm", "pnpm replaces npm"))
    ]
    assert explain_line(json.dumps({"statements": said, "asked_at": "2026-03-09"})) == {"valid": [1]}


def test_a_session() -> None:
    events = [
        {"kind": "prompt", "text": "run the tests"},
        {"kind": "command", "command": "make test", "exit": 0, "output": "3 passed"},
    ]
    memories = [{"id": "m1", "type": "rule", "by": "user", "at": "2026-03-01", "text": "we use uv here"}]
    answer = explain_line(
        json.dumps(
            {"events": events, "memories": memories, "next": {"at": "2026-03-09", "kind": "start", "prompt": ""}}
        )
    )
    assert answer["told"] == ["m1"]
    assert "`make test`" in answer["summary"]


@pytest.mark.parametrize("line", ["", "nonsense", "[]", "{}", '{"prompt": 3}', '{"statements": [1]}', "\x00"])
def test_anything_else_is_an_error_that_says_so(line: str) -> None:
    assert "error" in explain_line(line)


def test_on_the_command_line() -> None:
    lines = '{"prompt": "always use uv for dependencies"}\n\n{"prompt": "go on"}\n'
    done = CliRunner().invoke(app, ["explain", "--json", "-"], input=lines)
    assert done.exit_code == 0
    assert [len(json.loads(line)["remembered"]) for line in done.stdout.splitlines()] == [1, 0]

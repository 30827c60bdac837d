"""What people's tools say to the daemon: cleaned as it came, before any command sees it."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.analysis.redact import redact
from holdfast.core.feature import CommandResult
from holdfast.daemon.control import Control, clean_arguments
from holdfast.features import FEATURES
from holdfast.paths import plain_files
from tests.analysis.redact.examples import make_example
from tests.kit import World
from tests.sample_features.joining import texts_in

VALUES = {name: make_example(form, name) for name, form in
          {"table": "<h64>", "option": "<w32>", "yaml": "<w24>", "pem": "<w64>"}.items()}  # fmt: skip
# The first two are told from ordinary words only by the lines they stand on.
TOLD_BY_LINES = {
    "table": f"  name  |  value\n--------+--------\n softlayer_api_key | {VALUES['table']}\n(1 row)\n",
    "option": f"acme login \\\n  --tencentcloud-secret-key \\\n  {VALUES['option']} \\\n  --yes",
    "yaml": f"database:\n  password:\n    {VALUES['yaml']}\n",
    "pem": f"-----BEGIN PRIVATE KEY-----\n{VALUES['pem']}\n{VALUES['pem'][::-1]}\n-----END PRIVATE KEY-----\n",
}
SHAPES: dict[str, Callable[[str], Any]] = {
    "string": lambda text: text,
    "list": lambda text: ["first", text],
    "deep": lambda text: {"outer": [{"inner": {"any": text}}]},
    "key": lambda text: {text: 1},
}


def shaped() -> Iterator[Any]:
    for text in TOLD_BY_LINES.values():
        yield from (shape(text) for shape in SHAPES.values())


def kept_values(shown: str) -> list[str]:
    return [name for name, value in VALUES.items() if value in shown]


@pytest.mark.parametrize("name", [f"{f.name}.{verb}" for f in FEATURES for verb in f.commands])
@pytest.mark.parametrize("argument", ["text", "files", "code", "path", "id", "anything"])
def test_no_command_is_told_a_secret(name: str, argument: str) -> None:
    """Whatever the command and however its argument is called: the next command is one of these too."""
    told: list[Any] = []
    app = SimpleNamespace(
        engine=SimpleNamespace(ports=SimpleNamespace(scrub_fields=lambda body: redact(body)[0])),
        call=lambda _name, args, _reader, **_: args,
        command=lambda _name, args: told.append(args) or CommandResult(answer=""),
    )
    reader = SimpleNamespace(close=lambda: None)
    control: Any = SimpleNamespace(
        _daemon=SimpleNamespace(app=app), reader=lambda: reader, _caller_fields=lambda _request: {}
    )
    for value in shaped():
        list(Control._command(control, {"op": "command", "name": name, "args": {argument: value}}))
    assert len(told) == len(TOLD_BY_LINES) * len(SHAPES)
    assert kept_values(" ".join(texts_in(told))) == []


def test_a_command_that_joins_lines_keeps_no_secret(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    world = World(tmp_path, HOLDFAST_FEATURES="tests.sample_features.joining", PYTHONPATH=str(root))
    try:
        world.start()
        for value in shaped():
            answer = world.ask(op="command", name="joining.join", args={"of_no_known_name": value})
            assert kept_values(answer) == [], answer
        world.ask(op="settle")
        world.kill(signal.SIGTERM)
        kept = b"".join(path.read_bytes() for path in plain_files(world.paths.state))
        assert b"tencentcloud-secret-key" in kept
        assert kept_values(kept.decode("latin-1")) == []
    finally:
        world.close()


def test_what_is_compared_or_opened_keeps_its_letters() -> None:
    """A path may look like a token, and a code is nothing else; both are on one line."""
    path = f"/tmp/{make_example('ghp_<w36>', 'a folder')}/report.json"
    args = {"path": path, "code": "482 913", "text": path, "pin": True, "days": 3, "names": ["lint"]}
    seen = clean_arguments(args, lambda body: redact(body)[0])
    assert seen == {**args, "text": seen["text"]}
    assert path not in seen["text"]


def test_where_somebody_asks_from_is_cleaned_too(world: World) -> None:
    """A folder or a session named like a token: commands and imports know them by the name that hooks stored."""
    token = make_example("ghp_<w36>", "a folder")
    world.project = world.root / token
    world.project.mkdir()
    world.session(f"of {token}").prompt("hello")
    world.cli("memory", "add", "tests run with pytest")
    asked_from = {"session": f"of {token}", "project": str(world.project)}
    world.ask(op="command", name="log.note", args={"text": "seen"}, **asked_from)
    imported = {"key": "k1", "kind": "prompt.submitted", "at": 1, "agent": "claude-code", "tool": token, **asked_from}
    assert world.ask(op="ingest", events=[imported])["taken"] == 1
    told = {e.kind: e for e in world.events()}
    assert told["note.added"].project == told["prompt.submitted"].project == told["memory.observed"].project
    assert told["note.added"].session == told["prompt.submitted"].session
    assert "tests run with pytest" in world.cli("memory", "list")
    world.kill(signal.SIGTERM)
    kept = [p for p in plain_files(world.paths.state) if token.encode() in p.read_bytes()]
    assert kept == []

"""The real Claude Code as the model that reads finished turns: what it is sent, what it costs, that it sets nothing going."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import text as fence
from holdfast.features.memory.llm import OWN_TOKENS, SYSTEM
from tests.kit import World, wait_until

from . import model_server
from .claude import ClaudeCode
from .model_server import ModelServer, text
from .wire import all_strings

pytestmark = pytest.mark.real


@pytest.fixture
def held(claude: ClaudeCode, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "holdfast")
    world.home, world.project = claude.home, claude.project
    own = {name: world.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    path = f"{claude.executable.parent}:{world.env['PATH']}"
    # As of a daemon that was started by a hook of Claude Code itself.
    inside = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ID": "outer"}
    world.env |= {**claude.env, **own, **inside, "PATH": path, "HOME": str(claude.home)}
    claude.env |= own
    config = world.root / "config" / "settings.yaml"
    config.parent.mkdir()
    config.write_text(json.dumps({"memory": {"model": {"use": "claude", "wait_seconds": 0}}}))
    world.cli("install", "--agent", "claude-code")
    world.start()
    yield world
    world.close()


def test_claude_reads_a_finished_turn(
    claude: ClaudeCode, model: ModelServer, held: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call, no tools, no hooks of its own, and no more beside our words than is set aside for it."""
    noted = {"observations": [{"turn": 1, "type": "discovery", "text": "The parser is recursive."}]}
    # A request without tools is no conversation of the user's: the scripted model takes it for a title, say.
    monkeypatch.setattr(model_server, "SIDE", text(json.dumps(noted)))
    model.script([text("It is recursive.")])
    claude.run("what is the parser like")
    wait_until(lambda: held.view("memory.meter")["calls"], "the turn was read", 60)
    told = held.view("memory.meter")
    assert (told["failed"], told["waiting"]) == (0, 0), told
    found = held.view("memory.listed", everywhere=True)["observations"]
    assert "The parser is recursive." in [doc["text"] for doc in found if doc["origin"] == "model"]

    [request] = [r for r in model.requests if any(SYSTEM[:60] in words for words in all_strings(r.body))]
    assert not request.body.get("tools")
    sent = fence.estimate_tokens(json.dumps(request.body))
    ours = fence.estimate_tokens(SYSTEM) + fence.estimate_tokens("what is the parser like" * 4)
    assert sent - ours < OWN_TOKENS
    assert {e.session for e in held.hooks_seen()} == {held.hooks_seen()[0].session}

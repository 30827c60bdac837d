"""The real Claude Code: its first prompt refreshes the index, its second does not, after /clear it does again."""

from __future__ import annotations

import json

import pytest

from tests.kit import World, wait_until

from .claude import ClaudeCode
from .model_server import ModelServer, call, text

pytestmark = pytest.mark.real

STATE = "logs/state/session-reindex-tracking.json"


def first_prompts(world: World) -> list[str]:
    return [e.session for e in world.events(kinds=("reindex.decided",)) if e.data["trigger"] == "first_prompt"]


def test_once_per_session_and_again_after_clear(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S0-10 to S0-13: the flows of the seed, as the program itself plays them."""
    (claude.project / "wheel.py").write_text("def turn_wheel(angle):\n    return angle % 360\n")
    with claude.tui() as tui:
        model.script([text("FIRST-ANSWER")])
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER")
        wait_until(lambda: len(first_prompts(held)) == 1, "the first prompt triggered")
        wait_until(lambda: held.events(kinds=("reindex.finished",)), "the index is made")
        assert "wheel.py:1" in held.cli("search", "turn_wheel")
        model.script([text("SECOND-ANSWER")])
        tui.type("hello again")
        tui.wait_for("SECOND-ANSWER")
        tui.type("/compact")
        wait_until(lambda: held.events(kinds=("compact.ended",)), "the compaction is told")
        model.script([text("THIRD-ANSWER")])
        tui.type("still there?")
        tui.wait_for("THIRD-ANSWER")
        assert len(first_prompts(held)) == 1, "neither a second prompt nor a compaction triggers"
        tui.type("/clear")
        tui.wait_gone("THIRD-ANSWER")
        model.script([text("FOURTH-ANSWER")])
        tui.type("a new beginning")
        tui.wait_for("FOURTH-ANSWER")
        wait_until(lambda: len(first_prompts(held)) == 2, "after /clear the first prompt triggers again")
        tui.leave("/exit")
    first, second = first_prompts(held)
    assert first != second
    wanted = {"session_id": second, "first_semantic_search_shown": True}
    wait_until(lambda: json.loads((claude.project / STATE).read_text()) == wanted, "the file shows the new session")
    assert held.json("rebuild", "reindex")["differences"] == []


def test_what_a_turn_wrote_is_found_afterwards(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    settings = held.root / "config" / "settings.yaml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("reindex:\n  cooldown_s: 1\n")
    code = "def press_brake(force):\n    return -force\n"
    model.script([call("Write", file_path=str(claude.project / "brake.py"), content=code), text("written")])
    result = claude.run("write a brake")
    assert result.returncode == 0, result.stderr
    wait_until(lambda: "brake.py:1" in held.cli("search", "press_brake", code=None), "the new file is found")

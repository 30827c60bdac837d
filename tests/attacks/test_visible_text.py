"""Whatever an agent sent, no door lets out a character that a reader cannot see: terminal, JSON, files, exports, pages,
injected context, tools' answers."""

import re
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.decision import Context
from holdfast.core.text import escape_invisible, name_invisible, strip_controls, wrap_context
from holdfast.doors.cli import render
from holdfast.doors.mcp.answers import Answer
from holdfast.doors.mcp.connection import render_answer
from holdfast.doors.web import pages as web_text
from holdfast.features.project.document.text import dump_yaml
from tests.kit import World

HOSTILE = (
    "safe\x1b]52;c;ZXZpbA==\x07\x1b[31mred\u202egnp.exe\u200b\u2066x\u2069\u034f\U000e0041\x9b5m\x00\x7f\ufeff end"
)
INVISIBLE = ("Cc", "Cf", "Co", "Cs")
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def hidden(shown: str) -> list[str]:
    return [hex(ord(c)) for c in shown if (c not in "\n\t" and unicodedata.category(c) in INVISIBLE) or c == "\u034f"]


anything = st.text(st.characters(exclude_categories=()), max_size=60)


@given(anything)
def test_no_door_in_memory_lets_it_out(text: str) -> None:
    json_ready = text.encode("utf-8", "replace").decode()
    doors = {
        "terminal": render.clean_line(text),
        "plain": strip_controls(text),
        "page": web_text.sanitise_value(text).replace("\r", ""),
        "marked": str(web_text.mark_words(text, ["a"])).replace("\r", ""),
        "named": name_invisible(text).replace("\r", ""),
        "json": render.json_text({"a": json_ready}),
        "yaml": dump_yaml({json_ready: [json_ready]}),
        "context": wrap_context(Context(source=json_ready, text=text, weight=1)),
        "tool": render_answer(Answer(text, {"a": json_ready}))["content"][0]["text"],
    }
    assert {name: found for name, shown in doors.items() if (found := hidden(shown))} == {}


@given(anything.map(lambda text: text.encode("utf-8", "replace").decode()))
def test_programs_get_every_character(text: str) -> None:
    assert msgspec.json.decode(escape_invisible(msgspec.json.encode([text]).decode())) == [text]


def test_a_console_prints_its_own_styles_and_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.text import Text

    from holdfast.doors.cli.render import VisibleConsole

    console = VisibleConsole(force_terminal=True, color_system="standard", width=400)
    table = render.plain_table("a")
    table.add_row(HOSTILE)
    for thing in (HOSTILE, Text(HOSTILE, style="red"), table):
        console.print(thing)
    shown = capsys.readouterr().out
    assert "red" in shown
    assert hidden(STYLES.sub("", shown)) == []


def test_every_command_that_prints_stored_text(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        agent = world.session("session-1")
        agent.start()
        agent.prompt(f"We decided to use {HOSTILE}")
        agent.tool("Bash", {"stdout": HOSTILE, "stderr": ""}, command=f"echo '{HOSTILE}'")
        agent.stop(HOSTILE)
        world.cli("memory", "add", HOSTILE.replace("\x00", ""))
        commands = [
            ("events",), ("events", "--json"), ("sessions", "list"), ("sessions", "show", "session-1"),
            ("sessions", "export", "session-1"), ("sessions", "export", "session-1", "-f", "jsonl"),
            ("sessions", "export", "session-1", "-f", "html"), ("state", "show"), ("state", "show", "--json"),
            ("memory", "list"), ("memory", "search", "decided"), ("status",), ("task", "list"), ("daemon", "logs"),
            ("erase", "--text", "We decided to use safe"),
        ]  # fmt: skip
        found = {words: bad for words in commands if (bad := hidden(world.cli(*words, code=None)))}
        assert found == {}
    finally:
        world.close()

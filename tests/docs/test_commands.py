"""Every command of README, tutorial, how-to, FAQ and the pages around them, typed by a shell in a made-up project."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit import World

ROOT = Path(__file__).parents[2]
SESSION = "33333333-aaaa-4bbb-8ccc-000000000001"
PAGES = {
    "README.md": 2, "docs/tutorial.md": 1, "docs/how-to.md": 0, "docs/faq.md": 0, "docs/troubleshooting.md": 0,
    "docs/first-minute.md": 1,
}  # fmt: skip
"""How many of their blocks say that they are not run here, and why."""
BLOCK = re.compile(r"(<!-- not run here: [^>\n]{10,}-->\n+)?^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(holdfast [^`\n]+)`")
ANY_COMMAND = re.compile(r"^(?:\$ )?(?:holdfast|uv|uvx|pipx|make|pip|npx?) ", re.MULTILINE)
VALUES = {"ID": SESSION, "…": "tests", "NAME": "gate", "FILE": "heads.txt"}
"""For words that stand for a value."""
LASTING = ("holdfast demo", "holdfast event tail")
"""They go on until they are interrupted, and then leave without an error."""


@dataclass(frozen=True)
class Command:
    page: str
    text: str
    kind: str = "sh"


def commands(page: str) -> Iterator[Command]:
    """In the order in which somebody reads them."""
    text = (ROOT / page).read_text()
    found = [(match.start(), match) for match in (*BLOCK.finditer(text), *SPAN.finditer(BLOCK.sub(_blank, text)))]
    for _, match in sorted(found, key=lambda one: one[0]):
        if match.re is SPAN:
            yield Command(page, _filled(match[1]))
        elif match[2] in ("sh", "yaml") and not match[1]:
            yield Command(page, match[3], match[2])


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _filled(words: str) -> str:
    return re.sub(r"\b[A-Z]+\b|…", lambda word: VALUES.get(word[0], word[0]), words)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_that_are_not_run_say_why(page: str) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text())
    unmarked = [body for marker, language, body in blocks if language != "sh" and not marker]
    assert [body for body in unmarked if ANY_COMMAND.search(body)] == []
    assert sum(bool(marker) for marker, _, _ in blocks) == PAGES[page]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[World]:
    """Somebody with one project and one session, and the warm server that people have."""
    world = World(tmp_path, HOLDFAST_CLI_SERVER="1", BROWSER="true", **AUTHOR)
    (world.home / ".claude").mkdir()
    for name, text in PROJECT.items():
        file = world.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    shell(world, "git init -q -b work && git add -A && git commit -qm 'Count retries'")
    shell(world, "holdfast up")
    agent = world.session(SESSION)
    agent.start()
    agent.prompt("Limit the retries")
    agent.tool("Edit", file_path=str(world.project / "src/retries.py"), old_string="3", new_string="5")
    agent.tool("Bash", {"stdout": "1 passed", "exit_code": 0}, command="pytest -q")
    agent.stop()
    agent.end()
    yield world
    world.cli("dashboard", "--stop", code=None)
    world.close()


AUTHOR = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
          (("NAME", "A Person"), ("EMAIL", "person@example.com"))}  # fmt: skip
PROJECT = {
    "src/retries.py": "LIMIT = 3\n\n\ndef is_retried(attempt: int) -> bool:\n    return attempt < LIMIT\n",
    "tests/test_retries.py": "from src.retries import is_retried\n\n\ndef test_first():\n    assert is_retried(0)\n",
    "pyproject.toml": '[project]\nname = "shop"\n\n[tool.pytest.ini_options]\n',
    "results.xml": '<testsuite name="login"><testcase name="opens" time="0.1"/></testsuite>\n',
    "heads.txt": "",
}


IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(['/bin/sh', '-ec', sys.argv[1]])))"
ENTER = ("holdfast gate init",)
"""Commands that ask for more than a yes; others are answered with one."""


def shell(world: World, script: str) -> str:
    """What a terminal shows; somebody there answers questions."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_TERMINAL, script], cwd=world.project, env=world.env, capture_output=True, text=True,
        input="\n" if script in ENTER else "y\n", timeout=120, check=False, start_new_session=True,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in said) == (0, False), (script, said)
    return said


@pytest.mark.parametrize("page", PAGES)
def test_every_command_works(page: str, reader: World) -> None:
    for command in commands(page):
        if command.kind == "yaml":
            _write_settings(reader, command.text)
        elif command.text in LASTING:
            _interrupted(reader, command.text)
        else:
            shell(reader, command.text)


def _write_settings(world: World, text: str) -> None:
    """Where its first line says, else into the project's; every name in it is a setting."""
    users = text.startswith("# ~/.config/holdfast/settings.yaml")
    file = Path(world.env["HOLDFAST_CONFIG"] if users else world.project / ".holdfast") / "settings.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert "holdfast: " not in shell(world, "holdfast config")


def _interrupted(world: World, words: str) -> None:
    """Its first line has come."""
    process = subprocess.Popen(
        words.split(), cwd=world.project, env=world.env, stdout=subprocess.PIPE, text=True, start_new_session=True,
        # What runs in the background of a script inherits that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline(), words
    os.kill(process.pid, signal.SIGINT)
    process.stdout.close()
    assert process.wait(60) in (0, 130), words

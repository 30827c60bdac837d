"""The README's own lines, typed by somebody who has just got an account: another user, an empty HOME, a plain PATH."""

import importlib.util
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
PACKAGES = Path(importlib.util.find_spec("msgspec").origin).parents[1]
SETTINGS = '{\n  "model": "opus",\n\t"hooks": {}\n}'
# What the index and the installer do, with the wheel of this tree and the packages that are here already.
INSTALLER = """#!/bin/sh
set -e
case "$(basename "$0") $*" in
    "uv tool install holdfast-agents"|"pipx install holdfast-agents") ;;
    "uvx holdfast-agents up") set -- run; ;;
    *) echo "$(basename "$0"): no such command: $*" >&2; exit 2;;
esac
tool="$HOME/.local/share/tools/holdfast-agents"
if [ ! -e "$tool" ]; then
    {python} -m venv --without-pip "$tool"
    packages=$(echo "$tool"/lib/python3*/site-packages)
    PYTHONPATH={pip} {python} -m pip --python "$tool/bin/python" install -q --no-deps --no-index --no-compile \\
        --disable-pip-version-check --root-user-action ignore --no-cache-dir {wheel}
    echo {packages} > "$packages/others.pth"
fi
mkdir -p "$HOME/.local/bin"
ln -sf "$tool"/bin/holdfast* "$HOME/.local/bin/"
if [ "$1" = run ]; then exec "$tool/bin/holdfast-agents" up; fi
"""


@dataclass(frozen=True)
class Newcomer:
    """Somebody at a shell prompt of their own."""

    home: Path
    user: int | None
    path: str

    def types(self, line: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.home, input=stdin, capture_output=True, text=True, timeout=120, check=False,
            env={"HOME": str(self.home), "PATH": self.path, "LANG": "C.UTF-8"}, start_new_session=True,
            user=self.user, group=self.user, extra_groups=None if self.user is None else [],
        )  # fmt: skip
        assert done.returncode == 0, (line, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hf-wheel-") as folder:
        Path(folder).chmod(0o755)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (made,) = Path(folder).glob("*.whl")
        yield made


@pytest.fixture
def newcomer(wheel: Path) -> Iterator[Newcomer]:
    """`nobody` where we may become that and that can read the packages; else whoever runs the tests."""
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        python, user = _python_and_user()
        for name in ("uv", "pipx", "uvx"):
            _write_installer(root / "tools" / name, python, wheel)
        home = root / "home"
        home.mkdir(mode=0o700)
        if user is not None:
            os.chown(home, user, user)
        somebody = Newcomer(home, user, f"{home}/.local/bin:{root}/tools:{PLAIN_PATH}")
        yield somebody
        if (home / ".local/bin/holdfast").exists():
            somebody.types("holdfast dashboard --stop; holdfast daemon stop")


def _python_and_user() -> tuple[str, int | None]:
    version = f"python3.{sys.version_info.minor}"
    plain = shutil.which(version, path=PLAIN_PATH)
    if os.geteuid() == 0 and plain:
        nobody = pwd.getpwnam("nobody").pw_uid
        sees = subprocess.run(
            [plain, "-c", "import msgspec, numpy, venv"], env={"PYTHONPATH": str(PACKAGES)}, user=nobody,
            capture_output=True, check=False, cwd="/",
        )  # fmt: skip
        if sees.returncode == 0:
            return plain, nobody
    return os.path.realpath(sys.executable), None


def _write_installer(file: Path, python: str, wheel: Path) -> None:
    pip = Path(importlib.util.find_spec("pip").origin).parents[1]
    parts = {"python": python, "pip": pip, "wheel": wheel, "packages": PACKAGES}
    text = INSTALLER
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", shlex.quote(str(value)))
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def install_block() -> list[str]:
    """The lines of the first block, and the ways that its comments name instead."""
    (block,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[:1]
    lines = [line.partition("#") for line in block.splitlines() if line.strip()]
    others = [words for _, _, comment in lines for words in re.findall(r"((?:pipx|uvx) [a-z -]+)", comment)]
    return [*(line.strip() for line, _, _ in lines), *(words.strip() for words in others)]


def tried_commands() -> list[str]:
    """What the table of features tells people to try."""
    rows = re.findall(r"^\| \[\w+\]\(docs/features/.*\|([^|]*)\|$", README, re.MULTILINE)
    return [command for row in rows for command in re.findall(r"`(holdfast [^`]+)`", row)]


def test_the_first_minute_as_the_readme_tells_it(newcomer: Newcomer) -> None:
    lines = install_block()
    assert lines == [
        "uv tool install holdfast-agents", "holdfast up", "pipx install holdfast-agents", "uvx holdfast-agents up",
    ]  # fmt: skip
    newcomer.types(lines[0])
    assert "No coding agent was found" in newcomer.types(lines[1])
    settings = newcomer.home / ".claude" / "settings.json"
    newcomer.types("mkdir .claude; cat > .claude/settings.json; git init -q shop", stdin=SETTINGS)
    said = newcomer.types(lines[1])
    assert re.search(r"^Claude Code\n  ✓ hooks", said, re.MULTILINE), said
    assert "holdfast dashboard" in said
    for line in lines[2:]:
        newcomer.types(line)
    fire = "holdfast-hook ask claude-code UserPromptSubmit"
    prompt = (
        '{"hook_event_name": "UserPromptSubmit", "session_id": "33333333-aaaa-4bbb-8ccc-000000000001", "prompt": "Go"}'
    )
    newcomer.types(f"cd shop; {fire}", stdin=prompt)
    for command in tried_commands():
        said = newcomer.types(f"cd shop; {_filled(command)}")
        assert "Traceback" not in said, (command, said)
    assert "Go" in newcomer.types("cd shop; holdfast event list")
    newcomer.types("holdfast uninstall")
    assert settings.read_text() == SETTINGS


def _filled(command: str) -> str:
    """Words that stand for values, given one; a command that would go on for ever, ended."""
    filled = command.replace(" ID", " 33333333").replace(" …", " tests")
    ends = {
        "holdfast demo": "holdfast demo --help",  # tests/browser plays it
        "holdfast event tail": "holdfast event tail --no-follow",
        "holdfast dashboard": "holdfast dashboard --no-open",
    }
    return ends.get(filled, filled)

"""What the documentation tells people to type exists and works; its links lead somewhere; it speaks plain English."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.doors.cli.names import for_help
from holdfast.doors.cli.root import build_command

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/features").glob("*.md")]
)
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(holdfast [^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CUT = re.compile(r"\s+[|>&;#·(].*|\s{3,}.*|\s*…")


@pytest.fixture(scope="module")
def root() -> Any:
    return build_command()


def commands(page: Path) -> Iterator[str]:
    text = page.read_text()
    yield from SPAN.findall(text)
    for _, body in BLOCK.findall(text):
        for line in body.splitlines():
            line = line.strip().removeprefix("$ ")
            if line.startswith("holdfast "):
                yield line


def problem(root: Any, line: str) -> str:
    """Why these words are no command of ours; empty when they are. Words in capitals and quotes stand for values."""
    try:
        words = shlex.split(CUT.sub("", line))[1:]
    except ValueError:
        words = CUT.sub("", line).split()[1:]
    if words and words[0].startswith("-"):
        return "" if words[0] in _options(root) else f"no option {words[0]}"
    words = for_help(words)
    if not words or words[0] in _options(root):
        return ""
    if not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return ""
    _, command, words = root.find(words)
    if command is None:
        return f"no command in {line!r}"
    at = 0
    while at < len(words) and hasattr(command, "commands"):
        if words[at].startswith("-"):
            return "" if words[at] in _options(command) else f"no option {words[at]}"
        name = words[at]
        if not re.fullmatch(r"[a-z][a-z-]*", name):
            return ""
        if name not in command.commands:
            return f"no command {words[at]!r}"
        command, at = command.commands[name], at + 1
    rest = words[at:]
    rest = rest[: rest.index("--")] if "--" in rest else rest
    known = _options(command)
    for word in rest:
        for option in re.split(r"[|\[\]]", word):
            if option.startswith("--") and option.partition("=")[0].rstrip(",.]") not in known:
                return f"no option {option}"
    return ""


def _options(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_named_exists(page: Path, root: Any) -> None:
    wrong = [f"{line}: {why}" for line in commands(page) if (why := problem(root, line))]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [
        t for t in LINK.findall(page.read_text()) if "://" not in t and not t.startswith(("mailto:", "reference/"))
    ]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_tells_the_inner_history(page: Path) -> None:
    assert (
        re.findall(r"\bseeds?(?:'s)?\b (?:\d|has|had|of)|\bseed \d+|the seed\b", page.read_text(), re.IGNORECASE) == []
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_package_is_called_by_its_name(page: Path) -> None:
    installs = re.findall(
        r"(?:pip install|uv tool install|pipx install|pipx run|uvx)\s+'?holdfast(?!-agents)\b", page.read_text()
    )
    assert installs == []


def test_the_table_of_behaviours_leads_to_tests_that_name_them():
    lines = (ROOT / "docs" / "specification.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| S") and "`tests/" in line]
    assert len(rows) > 10
    for row in rows:
        named = re.compile("|".join(rf"{one}\b" for one in re.findall(r"S\d-\d+", row)))
        files = re.findall(r"`(tests/[^`]+)`", row)
        assert [file for file in files if not named.search((ROOT / file).read_text())] == [], row


def test_every_promise_of_security_names_tests_that_exist() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| **")]
    named = [re.findall(r"`(tests/[\w/.]+)`", row.split(" | ")[-1]) for row in rows]
    assert len(rows) > 15
    assert all(named)
    assert [path for paths in named for path in paths if not (ROOT / path).exists()] == []

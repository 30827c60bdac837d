"""One grammar: what we print and write names commands by their one name; older spellings still work."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.doors.cli.names import MORE, OLDER_SPELLINGS, SECTIONS
from holdfast.doors.cli.root import build_command
from tests.kit import World

ROOT = Path(__file__).parents[3]
OLD = re.compile(rf"(?<!from )(?<![\w/.-])holdfast (?:{'|'.join(OLDER_SPELLINGS)}) [a-z]")
MIGRATIONS = "stores/sql"


def test_no_text_uses_an_older_spelling() -> None:
    files = [*ROOT.glob("src/holdfast/**/*.py"), *ROOT.glob("src/holdfast/**/*.html"), *ROOT.glob("docs/**/*.md")]
    found = [
        f"{file}: {hit[0]}" for file in files if MIGRATIONS not in str(file) for hit in OLD.finditer(file.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("old", sorted(OLDER_SPELLINGS))
def test_older_spellings_lead_to_the_same_command(old: str) -> None:
    group = build_command()
    new = OLDER_SPELLINGS[old]
    path, command, rest = group.resolve_command(None, [old, "x"])
    assert (path, rest) == (new, ["x"])
    assert command is group.commands[new.split()[-1]]


def test_a_sub_command_of_search_does_not_take_words_from_a_search() -> None:
    group = build_command()
    assert group.find(["search", "index", "status"])[0] == "search index"
    assert group.find(["search", "index", "of", "books"])[::2] == ("search", ["index", "of", "books"])
    assert group.find(["search", "--", "index"])[0] == "search"


def test_the_first_screen_has_one_line_for_each_of_about_twenty_commands() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert len(listed) <= 22
    assert not set(listed) & set(MORE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("root"))
    yield made
    made.close()


@pytest.mark.parametrize("words", ["-h", "help", "help gate status", "gate status -h", "help data verify"])
def test_help_is_asked_for_in_every_way(world: World, words: str) -> None:
    assert world.cli(*words.split()).startswith("Usage: holdfast")


def test_the_version_is_a_command_too(world: World) -> None:
    assert world.cli("version") == world.cli("--version")


@pytest.mark.parametrize("group", [*(n for n, c in build_command().commands.items() if hasattr(c, "commands"))])
def test_a_group_without_a_verb_is_no_error(world: World, group: str) -> None:
    assert world.cli(*next((p.split() for p in OLDER_SPELLINGS.values() if p.endswith(f" {group}")), [group]))


def test_an_older_spelling_is_noticed_but_never_in_json(world: World) -> None:
    assert "holdfast: `verify` is now `data verify`." in world.cli("verify")
    assert "is now" not in world.cli("verify", "--json")
    assert "is now" not in world.cli("data", "verify")


def test_no_line_of_help_is_cut() -> None:
    """Whoever reads `--help` on a narrow terminal must not open another page for the end of a sentence."""
    group = build_command()
    for name, command in [("", group), *group.commands.items()]:
        context = command.make_context(name, [], resilient_parsing=True, terminal_width=60)
        lines = command.get_help(context).splitlines()[1:]
        assert not [line for line in lines if line.endswith(("…", "..."))], name

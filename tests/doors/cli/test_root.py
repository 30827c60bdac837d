"""One grammar: what we print and write names commands by their one name; older spellings still work."""

import re
from pathlib import Path

from holdfast.doors.cli.root import MODULES, OLDER_SPELLINGS, build_command

ROOT = Path(__file__).parents[3]
OLD = re.compile(rf"\bholdfast (?:{'|'.join(OLDER_SPELLINGS)}) [a-z]")
MIGRATIONS = "stores/sql"


def test_no_text_uses_an_older_spelling() -> None:
    files = [*ROOT.glob("src/holdfast/**/*.py"), *ROOT.glob("src/holdfast/**/*.html"), *ROOT.glob("docs/**/*.md")]
    found = [
        f"{file}: {hit[0]}" for file in files if MIGRATIONS not in str(file) for hit in OLD.finditer(file.read_text())
    ]
    assert found == []


def test_older_spellings_lead_to_the_same_command() -> None:
    group = build_command()
    for old, name in OLDER_SPELLINGS.items():
        assert group.resolve_command(None, [old, "list"])[1] is group.commands[name]
    assert set(OLDER_SPELLINGS.values()) <= set(MODULES)


def test_no_line_of_help_is_cut() -> None:
    """Whoever reads `--help` on a narrow terminal must not open another page for the end of a sentence."""
    group = build_command()
    for name, command in [("", group), *group.commands.items()]:
        context = command.make_context(name, [], resilient_parsing=True, terminal_width=60)
        lines = command.get_help(context).splitlines()[1:]
        assert not [line for line in lines if line.endswith(("…", "..."))], name

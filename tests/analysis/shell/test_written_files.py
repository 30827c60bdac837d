"""What a command changes behind one of its programs, so that the program saw something else than what lies there now."""

import pytest

from holdfast.analysis.shell.analysis import analyse_command
from holdfast.analysis.shell.written_files import WHOLE_TREE, put_back_after, written_after

CASES = [
    ("echo fix >> a.py; pytest -q; git checkout -q a.py", ["a.py"], ["a.py"]),
    ("echo fix >> a.py; pytest -q; git checkout -q -- a.py", ["a.py"], ["a.py"]),
    ("git stash -q; pytest -q; git stash pop -q", [WHOLE_TREE], [WHOLE_TREE]),
    ("pytest -q && git reset -q --hard", [WHOLE_TREE], []),
    ("pytest -q && git stash push -m wip", [WHOLE_TREE], []),
    ("git stash -q; pytest -q", [], []),
    ("pytest -q; git stash list; git reset -q HEAD~1; git checkout main; git checkout v1.2", [], []),
    ("pytest -q && git add -A && git commit -qm x", [], []),
]


@pytest.mark.parametrize(("command", "after", "back"), CASES)
def test_what_is_changed_behind_a_run(command: str, after: list[str], back: list[str]) -> None:
    analysis = analyse_command(command, 0, "")
    [run] = [one.invocation.index for one in analysis.commands if one.words[0] == "pytest"]
    assert (written_after(analysis, run), put_back_after(analysis, run)) == (after, back)

"""Commands in the arguments of another program, and PowerShell as commands of the shell."""

import base64

import pytest

from holdfast.analysis.shell.command_effects import read_acts
from holdfast.analysis.shell.nested_commands import powershell_commands

ENCODED = base64.b64encode("git commit -m w".encode("utf-16-le")).decode()
STARTED = (
    "lxc exec c1 -- git commit -m w", "vagrant ssh -c 'cd x && git commit -m w'", "heroku run 'git commit -m w'", "ts git commit -m w",
    "git.exe commit -m w", "pwsh -c '& git commit -m w'", "pwsh -c \"Start-Process git -ArgumentList 'commit','-m','w'\"",
    f"pwsh -EncodedCommand {ENCODED}", "tclsh <<< 'exec git commit -m w'", "gh codespace ssh -- git commit -m w", "{ echo; }; hub commit -m w",
    "c=coXXit; git ${c//X/m} -m w", "v=c; c=commit; git ${!v} -m w", "echo $(( $(git commit -m w) + 1 ))", "[[ a && $(git commit -m w) ]]",
    "printf commit | xargs -I% git %", "git fetch --upload-pack='git commit -m w' .", "PROMPT_COMMAND='git commit -m w' bash -i",
)  # fmt: skip
ONLY_SAID = (
    "tldr git commit", "npm run test -- --grep 'git commit'", "pytest -k 'git commit'", "jest -t 'git commit'", "psql -c 'commit'",
    "gh pr create --title 'git commit is slow' --body 'git commit -m w'", "docker build --build-arg C='git commit' .", "man git commit",
)  # fmt: skip


@pytest.mark.parametrize("command", STARTED)
def test_a_command_that_another_program_carries_is_read(command: str) -> None:
    assert any(one.startswith("git commit") for one in read_acts(command).readings), read_acts(command)


@pytest.mark.parametrize("command", ONLY_SAID)
def test_words_that_are_only_said_start_nothing(command: str) -> None:
    assert not any(one.startswith("git commit") for one in read_acts(command).readings)


def test_what_may_be_a_command_or_not_is_not_called_hidden() -> None:
    assert read_acts("psql -c 'select (1'").hidden == ()


def test_powershell_writes_are_writes() -> None:
    assert powershell_commands("Set-Content -Path infra\\prod.tf -Value 9") == [": > 'infra/prod.tf'"]
    assert powershell_commands("'9' | Out-File infra/prod.tf; git status") == [
        "'9'",
        ": > 'infra/prod.tf'",
        "'git' 'status'",
    ]

"""Whether a command only looks, and how rules name what it runs."""

import re
from functools import cache

import msgspec

from holdfast.analysis.shell.analysis import ShellCommand, analyse_command, remember_by_text
from holdfast.analysis.shell.command_effects import BLANK
from holdfast.analysis.shell.git_words import split_git
from holdfast.core.data_files import load_data

_QUIET_MAKE = re.compile(r"^(?:-s|-j\d*|--silent|--no-print-directory|-w)$")
_DRY_MAKE = re.compile(r"^-[BbdeikLmprRsStvw]*[nq]")
# `test -v 'a[$(…)]'`: bash evaluates the index of a name, also in quotes.
_EVALUATED_INDEX = "[$("


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`looking.toml`, which says what the fields mean."""

    looks: str
    runs_nothing: str
    plain_wrappers: str
    elsewhere: str
    starting_variables: str
    git_acts: str
    may_act: dict[str, str]
    git: dict[str, str]


@cache
def _table() -> _Table:
    return load_data(__file__, "looking", _Table)


@cache
def _words(field: str) -> frozenset[str]:
    return frozenset(getattr(_table(), field).split())


@remember_by_text
def only_looks(command: str) -> bool:
    """Nothing of it can have changed a file or a branch."""
    analysis, table = analyse_command(command), _table()
    if analysis.problem or analysis.run_later or analysis.sourced or _EVALUATED_INDEX in command:
        return False
    # Started where a file may be another one (a container, another machine, a tool with a log), or sent to a file.
    if re.search(table.elsewhere, command) or any(not name.startswith("/dev/") for _, name in analysis.redirected):
        return False
    return all(_looks(command) for command in analysis.commands)


def _looks(command: ShellCommand) -> bool:
    invocation = command.invocation
    if not _words("plain_wrappers").issuperset(invocation.wrappers) or invocation.writes:
        return False
    if any(re.search(_table().starting_variables, name) for name in invocation.environment):
        return False
    return not is_real_run(command.words) and not _may_act(command.words)


def is_real_run(words: list[str]) -> bool:
    """Not an `ls` or the like: hundreds of them would push out real proof."""
    name = words[0].rpartition("/")[2]
    if name in _words("looks") or name in _table().may_act or (name == "git" and split_git(words).verb in _table().git):
        return False
    dry = name in ("make", "gmake") and any(_DRY_MAKE.match(word) for word in words[1:])
    return not dry and _words("runs_nothing").isdisjoint(words[1:])


def _may_act(words: list[str]) -> bool:
    """What `is_real_run` calls no run may still move a branch or write: `git branch -f`, `git stash`, `sort -o f`."""
    name = words[0].rpartition("/")[2]
    if name == "git":
        verb, *rest = reading_words(words)[1:] or [""]
        looks = re.match(_table().git.get(verb, "(?!)"), " ".join(rest))
        return looks is None or any(re.search(_table().git_acts, word) for word in words[1:])
    pattern = _table().may_act.get(name)
    return pattern is not None and any(re.search(pattern, word) for word in words[1:])


def reading_of(command: ShellCommand) -> str:
    """Its words in one line; options between `git` and its verb are left out."""
    return " ".join(reading_words(command.words))


def reading_words(raw_words: list[str]) -> list[str]:
    words = [one_word(word) for word in raw_words]
    name = words[0].rpartition("/")[2]
    if name == "git":
        call = split_git(words)
        return ["git", call.verb, *call.arguments] if call.verb else ["git"]
    if name in ("make", "gmake"):
        return ["make", *(word for word in words[1:] if not _QUIET_MAKE.match(word))]
    return [name or words[0], *words[1:]]


def one_word(word: str) -> str:
    return "".join(BLANK if c.isspace() else c for c in word)

"""What a command did in git, by its words, exit status and output; and which programs git starts."""

import re
from collections.abc import Mapping

import msgspec

from holdfast.analysis.shell import git_words
from holdfast.analysis.shell.analysis import Ran, ShellCommand
from holdfast.analysis.shell.git_words import reading_verbs, verb_facts
from holdfast.analysis.shell.syntax import UNKNOWN

_HELP = frozenset(("--help", "-h"))


class GitAct(msgspec.Struct, frozen=True):
    verb: str
    effective: bool | None
    """None when only the repository could tell."""


class _Parsed(msgspec.Struct):
    verb: str
    arguments: list[str]
    guessed: bool = False


def git_acts(commands: list[ShellCommand], output: str) -> list[GitAct]:
    # Aliases that the command itself makes count for what comes after.
    aliases: dict[str, str] = {}
    parsed = [(command, call) for command in commands if (call := _parse_git(command, aliases))]
    verbs = [call.verb for _, call in parsed]
    acts = []
    for command, call in parsed:
        # With two calls of one verb it is unknown which of them printed a line.
        shown = output if command.visible and verbs.count(call.verb) == 1 else ""
        acts.append(GitAct(call.verb, _took_effect(command, call, shown)))
    return acts


def _parse_git(command: ShellCommand, made: dict[str, str]) -> _Parsed | None:
    """`made`: aliases of earlier commands; those that this one makes are added."""
    words, environment = command.words, command.invocation.environment
    if words[0].rpartition("/")[2] != "git" or command.invocation.shadowed:
        return None
    call = git_words.split_git(words, environment)
    settings = made | settings_of_variables(environment) | call.settings
    verb, arguments = call.verb, call.arguments
    if not verb:
        return None
    if verb == "config" and len(arguments) >= 2:
        made[arguments[-2].lower()] = arguments[-1]
    if verb in reading_verbs() | git_words.changing_verbs():
        return _Parsed(verb, arguments)
    # `!git commit` is git as well; what else a `!` starts is no act of git.
    meaning = settings.get(f"alias.{verb.lower()}", "").removeprefix("!git ").split()
    if meaning and not meaning[0].startswith("!"):
        return _Parsed(meaning[0], [*meaning[1:], *arguments])
    return _Parsed(git_words.usual_meaning(verb).replace(UNKNOWN, "?"), arguments, guessed=True)


def _took_effect(command: ShellCommand, call: _Parsed, output: str) -> bool | None:
    if call.verb in reading_verbs() or command.ran is Ran.NO or _changes_nothing(call):
        return False
    if call.guessed or command.invocation.tampered:
        return None
    facts = verb_facts(call.verb)
    for pattern, effective in ((facts.unchanged, False), (facts.shown, True)):
        if _shows(pattern, output):
            return effective
    if command.exit_code:
        return None if facts.half else False
    return _effect_of_success(call, output) if (command.ran, command.exit_code) == (Ran.YES, 0) else None


def _shows(pattern: str, output: str) -> bool:
    return bool(pattern and output and re.search(pattern, output, re.M))


def _changes_nothing(call: _Parsed) -> bool:
    """Options and first arguments with which a changing verb only looks."""
    facts, options = verb_facts(call.verb), git_words.option_words(call.verb, call.arguments)
    first = call.arguments[0] if call.arguments else ""
    return first in facts.looks_first or not _HELP.isdisjoint(options) or _has_option(facts.looks, options)


def _has_option(pattern: str, options: list[str]) -> bool:
    return bool(pattern) and any(re.match(pattern, option) for option in options)


def _effect_of_success(call: _Parsed, output: str) -> bool | None:
    """The effect of a changing verb that ended with 0."""
    facts, options = verb_facts(call.verb), git_words.option_words(call.verb, call.arguments)
    if _has_option(facts.no_effect, options):
        return False
    if facts.changed is None or _has_option(facts.unclear, options):
        return None
    return True if not facts.changed or _shows(facts.changed, output) else None


_PROGRAMS = re.compile(
    r"^core\.(?:pager|editor|sshcommand|fsmonitor|askpass|alternaterefscommand)$|^sequence\.editor$|^(?:diff|merge)\..*(?:external|command|driver|textconv|cmd)$|^(?:difftool|mergetool|browser|man)\..*\.cmd$|^trailer\..*\.(?:command|cmd)$|^remote\..*\.(?:uploadpack|receivepack)$|^sendemail\..*cmd$|^uploadpack\.packobjectshook$|^core\.gitproxy$|^pager\.|^credential\.helper$|^gpg\.program$|^filter\..*\.(?:clean|smudge|process)$"
)
"""Settings whose value git starts as a command."""
_VARIABLES = (
    "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_ASKPASS", "PAGER", "EDITOR", "VISUAL",
)  # fmt: skip


def started_programs(settings: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    started = [value.removeprefix("!") for key, value in settings.items() if _PROGRAMS.search(key)]
    # What an editor puts into the list of a rebase: `sed -i '1i exec make …'`.
    editors = (settings.get("sequence.editor", ""), environment.get("GIT_SEQUENCE_EDITOR", ""))
    started += [text.strip() for value in editors for text in re.findall(r"\bexec ([^'\"\n]{3,400})", value)]
    return started + [environment[name] for name in _VARIABLES if environment.get(name)]


def made_setting(rest: list[str]) -> tuple[str, str] | None:
    """What `git config KEY VALUE` sets, by its name in small letters."""
    operands = [word for word in rest if not word.startswith("--") and word != "set"]
    return (operands[0].lower(), operands[1]) if len(operands) >= 2 else None


def settings_of_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings that git is given by variables, by their names in small letters."""
    settings = {
        value.lower(): environment.get(f"GIT_CONFIG_VALUE_{name[15:]}", "")
        for name, value in environment.items()
        if name.startswith("GIT_CONFIG_KEY_")
    }
    parameters = environment.get("GIT_CONFIG_PARAMETERS", "")
    return settings | {key.lower(): value for key, value in re.findall(r"'([^'=]+)'?='?([^']*)'", parameters)}

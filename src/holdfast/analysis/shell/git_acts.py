"""What a command did in git, by its words, its exit status and what git printed."""

import re
from collections.abc import Mapping

import msgspec

from holdfast.analysis.shell.analysis import Ran, ShellCommand
from holdfast.analysis.shell.syntax import UNKNOWN

# What the git commands of a shell command did, as far as words, exit status and output tell.

_VALUES = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
)
READS = frozenset(
    "status log diff show blame grep rev-parse ls-files describe config merge-base remote reflog shortlog cat-file rev-list "
    "ls-tree ls-remote for-each-ref show-ref check-ignore count-objects fsck help version var name-rev whatchanged bisect "
    "diff-tree diff-index diff-files verify-commit verify-tag range-diff archive bundle instaweb gui gitk difftool annotate cherry".split()
)
CHANGES = frozenset(
    "commit push merge rebase cherry-pick revert pull am reset checkout switch restore stash add rm mv clean apply tag branch "
    "update-ref worktree fetch clone init submodule notes gc prune filter-branch replace symbolic-ref update-index write-tree "
    "read-tree commit-tree sparse-checkout".split()
)
# Names that people commonly give; without the repository's settings the meaning is a guess.
_USUAL_ALIASES = {
    "ci": "commit", "co": "checkout", "br": "branch", "st": "status", "cm": "commit", "cp": "cherry-pick", "sw": "switch",
    "amend": "commit", "unstage": "reset", "lg": "log", "d": "diff", "cam": "commit", "ca": "commit", "c": "commit",
    "save": "commit", "pushf": "push", "up": "pull", "snap": "commit", "undo": "reset", "wip": "commit",
}  # fmt: skip
# What git prints where the verb changed nothing, though it may have ended with 0.
_NO_EFFECT = {
    "push": re.compile(r"^Everything up-to-date", re.M),
    "pull": re.compile(r"^Already up[ -]to[ -]date", re.M),
    "merge": re.compile(
        r"^Already up[ -]to[ -]date|^Automatic merge failed|\(no commit created; -m option ignored\)", re.M
    ),
    "rebase": re.compile(r"is up to date\.?$|^CONFLICT ", re.M),
    "commit": re.compile(
        r"^nothing (?:to commit|added to commit)|^no changes added to commit|^error: |^fatal: |^Aborting commit", re.M
    ),
    "cherry-pick": re.compile(r"^error: could not apply|^fatal: ", re.M),
    "stash": re.compile(r"^No local changes to save|^No stash entries found", re.M),
}
# `[main 1a2b3c4] Message`, with `(root-commit)` at the first one.
_COMMITTED = re.compile(r"^\[[^\]\n]+ (?:\(root-commit\) )?[0-9a-f]{4,}\] ", re.M)
# A line of the summary of a push: ` * [new branch] a -> b` or `   1234..abcd  a -> b`.
_PUSHED = re.compile(r"^ [ +*=!-] ?.*->|^   [0-9a-f]+\.\.[0-9a-f]+ ", re.M)


class GitAct(msgspec.Struct, frozen=True):
    verb: str
    effective: bool | None
    """None when it cannot be told without a look at the repository."""


class _Parsed(msgspec.Struct):
    verb: str
    arguments: list[str]
    guessed: bool = False
    quiet: bool = False


def git_acts(commands: list[ShellCommand], output: str) -> list[GitAct]:
    acts: list[GitAct] = []
    # Aliases that the command itself makes count for what comes behind.
    aliases: dict[str, str] = {}
    parsed = [(command, git_call) for command in commands if (git_call := _parse_git(command, aliases))]
    counts: dict[str, int] = {}
    for _command, git_call in parsed:
        counts[git_call.verb] = counts.get(git_call.verb, 0) + 1
    for command, git_call in parsed:
        # With two calls of one verb nobody can tell which of them printed a line.
        shown = output if command.visible and counts[git_call.verb] == 1 else ""
        acts.append(GitAct(git_call.verb, _took_effect(command, git_call, shown)))
    return acts


def _parse_git(command: ShellCommand, made: dict[str, str]) -> _Parsed | None:
    """`made`: aliases of earlier commands; those that this one makes are added."""
    words = command.words
    if words[0].rpartition("/")[2] != "git" or command.invocation.shadowed:
        return None
    aliases, at = made | _environment_aliases(command.invocation.environment), 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-c" and at + 1 < len(words) and words[at + 1].startswith("alias."):
            name, _, value = words[at + 1][6:].partition("=")
            aliases[name] = value
        at += 2 if words[at] in _VALUES else 1
    if at >= len(words):
        return None
    verb, arguments = words[at], words[at + 1 :]
    if verb == "config" and len(arguments) >= 2 and arguments[-2].startswith("alias."):
        made[arguments[-2][6:]] = arguments[-1]
    if verb in READS | CHANGES:
        return _Parsed(verb, arguments)
    # `!git commit` is git as well; what else a `!` starts is no act of git.
    meaning = aliases.get(verb, "").removeprefix("!git ").split()
    if meaning and not meaning[0].startswith("!"):
        return _Parsed(meaning[0], [*meaning[1:], *arguments])
    return _Parsed(_USUAL_ALIASES.get(verb, verb.replace(UNKNOWN, "?")), arguments, guessed=True)


def _environment_aliases(environment: dict[str, str]) -> dict[str, str]:
    """`GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0=commit` makes an alias like `git -c`."""
    return {
        key[6:]: environment.get(name.replace("_KEY_", "_VALUE_"), "")
        for name, key in environment.items()
        if name.startswith("GIT_CONFIG_KEY_") and key.startswith("alias.")
    }


def _took_effect(command: ShellCommand, git_call: _Parsed, output: str) -> bool | None:
    if git_call.verb in READS:
        return False
    if command.ran is Ran.NO or _changes_nothing(git_call):
        return False
    if git_call.guessed or command.invocation.tampered:
        return None
    if (pattern := _NO_EFFECT.get(git_call.verb)) and output and pattern.search(output):
        return False
    if output and git_call.verb == "commit" and _COMMITTED.search(output):
        return True
    if command.exit_code not in (None, 0):
        # These can have changed files or made commits before they failed.
        return None if git_call.verb in ("pull", "stash", "rebase", "checkout", "apply", "am", "merge") else False
    if command.ran is not Ran.YES or command.exit_code is None:
        return None
    return _effect_of_success(git_call, output)


def _changes_nothing(git_call: _Parsed) -> bool:
    """Flags with which a changing verb only looks. Values of other flags are not flags."""
    words = list(_option_flags(git_call))
    if git_call.verb == "commit":
        return any(w in ("--dry-run", "--porcelain", "--short", "--long", "--help", "-h") for w in words)
    if git_call.verb in ("push", "fetch", "add", "rm", "mv", "clean", "prune"):
        return any(w in ("--dry-run", "-n", "--help", "-h") for w in words)
    if git_call.verb == "clean":
        return not any(w.startswith("-") and "f" in w for w in words)
    if git_call.verb == "stash":
        return git_call.arguments[:1] in (["list"], ["show"])
    if git_call.verb == "tag":
        return not git_call.arguments or any(
            w in ("-l", "--list", "-v", "--contains", "--points-at", "-n") for w in words
        )
    if git_call.verb == "branch":
        listing = (
            "-a",
            "-r",
            "-v",
            "-vv",
            "--list",
            "-l",
            "--show-current",
            "--contains",
            "--merged",
            "--no-merged",
            "--all",
        )
        return not git_call.arguments or any(w in listing for w in words)
    if git_call.verb in ("worktree", "notes", "sparse-checkout"):
        return git_call.arguments[:1] in (["list"], ["show"], [])
    if git_call.verb == "submodule":
        return git_call.arguments[:1] in (["status"], [], ["summary"])
    if git_call.verb == "apply":
        return any(w in ("--check", "--stat", "--numstat", "--summary") for w in words)
    return any(w in ("--help", "-h") for w in words)


_TAKES_VALUE = {
    "commit": frozenset(
        (
            "-m",
            "-F",
            "-C",
            "-c",
            "--message",
            "--file",
            "--author",
            "--date",
            "-t",
            "--template",
            "--fixup",
            "--squash",
            "--trailer",
            "--reuse-message",
        )
    ),
    "tag": frozenset(("-m", "-F", "--message", "--file", "-u")),
    "merge": frozenset(("-m", "-F", "-X", "-s", "--message", "--file")),
    "push": frozenset(("-o", "--push-option", "--receive-pack", "--repo")),
}


def _option_flags(git_call: _Parsed) -> list[str]:
    takes = _TAKES_VALUE.get(git_call.verb, frozenset())
    flags, skip = [], False
    for word in git_call.arguments:
        if skip:
            skip = False
        elif word == "--":
            break
        elif word.startswith("-"):
            flags.append(word)
            # `-am MESSAGE`: the last letter takes the next word.
            skip = word in takes or (git_call.verb in ("commit", "tag") and bool(re.fullmatch(r"-[a-zA-Z]*m", word)))
    return flags


def _effect_of_success(git_call: _Parsed, output: str) -> bool | None:
    """The effect of a changing verb that ended well."""
    words = _option_flags(git_call)
    if git_call.verb == "commit":
        return True
    if git_call.verb in ("merge", "cherry-pick", "revert", "rebase", "am", "pull"):
        if any(w in ("--no-commit", "-n", "--squash", "--abort", "--quit", "--no-commit") for w in words):
            return False if git_call.verb != "rebase" else None
        return (
            None
            if git_call.verb in ("rebase", "pull", "merge", "am") and not output
            else git_call.verb in ("cherry-pick", "revert") or _effect_in_output(git_call, output)
        )
    if git_call.verb == "push":
        # A quiet push prints nothing; then only the repository tells.
        return True if _PUSHED.search(output) else None
    if git_call.verb in ("tag", "branch", "update-ref"):
        return (
            True
            if git_call.verb != "branch"
            or not any(w in ("-u", "--set-upstream-to", "--unset-upstream", "--edit-description") for w in words)
            else None
        )
    return None


def _effect_in_output(git_call: _Parsed, output: str) -> bool | None:
    patterns = {
        "merge": r"^(?:Updating [0-9a-f]+\.\.|Fast-forward|Merge made by)",
        "pull": r"^(?:Updating [0-9a-f]+\.\.|Fast-forward|Merge made by|Successfully rebased)",
        "rebase": r"Successfully rebased and updated",
        "am": r"^Applying: ",
    }
    return True if re.search(patterns[git_call.verb], output, re.M) else None


# Programs that git starts: by its settings, by variables, and its hooks.


_PROGRAMS = re.compile(
    r"^core\.(?:pager|editor|sshcommand|fsmonitor|askpass|alternaterefscommand)$|^sequence\.editor$|^(?:diff|merge)\..*(?:external|command|driver|textconv|cmd)$|^(?:difftool|mergetool|browser|man)\..*\.cmd$|^trailer\..*\.(?:command|cmd)$|^remote\..*\.(?:uploadpack|receivepack)$|^sendemail\..*cmd$|^uploadpack\.packobjectshook$|^core\.gitproxy$|^pager\.|^credential\.helper$|^gpg\.program$|^filter\..*\.(?:clean|smudge|process)$"
)
"""Settings whose value git starts as a command."""
_VARIABLES = (
    "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_ASKPASS", "PAGER", "EDITOR", "VISUAL",
)  # fmt: skip

_COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_HOOKS: dict[str, tuple[str, ...]] = {
    "commit": _COMMIT_HOOKS,
    "merge": ("pre-merge-commit", "commit-msg", "post-merge"),
    "pull": ("pre-merge-commit", "post-merge"),
    "push": ("pre-push",),
    "rebase": ("pre-rebase", "post-rewrite", *_COMMIT_HOOKS),
    "cherry-pick": _COMMIT_HOOKS,
    "revert": _COMMIT_HOOKS,
    "am": ("applypatch-msg", "pre-applypatch", "post-applypatch"),
    "checkout": ("post-checkout",),
    "switch": ("post-checkout",),
    "worktree": ("post-checkout",),
    "add": ("post-index-change",),
    "reset": ("post-index-change",),
    "status": ("post-index-change",),
}
_REF_VERBS = frozenset(
    "commit tag branch fetch push pull merge rebase reset update-ref checkout switch cherry-pick stash".split()
)
"""Verbs that may move a ref, for which git starts `reference-transaction`."""


def hook_files(verb: str, settings: Mapping[str, str]) -> list[str]:
    """The hooks that git may start for a verb, seen from the top of the repository."""
    folder = settings.get("core.hookspath", ".git/hooks").rstrip("/")
    names = (*_HOOKS.get(verb, ()), *(("reference-transaction",) if verb in _REF_VERBS else ()))
    return [f"{folder}/{name}" for name in names]


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

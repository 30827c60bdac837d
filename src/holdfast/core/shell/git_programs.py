"""Programs that git starts: by its settings, by variables, and its hooks."""

import re
from collections.abc import Mapping

_PROGRAMS = re.compile(
    r"^core\.(?:pager|editor|sshcommand|fsmonitor|askpass|alternaterefscommand)$|^sequence\.editor$|^(?:diff|merge)\..*(?:external|command|driver|textconv|cmd)$|^pager\.|^credential\.helper$|^gpg\.program$|^filter\..*\.(?:clean|smudge|process)$"
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
}


def hook_files(verb: str, settings: Mapping[str, str]) -> list[str]:
    """The hooks that git may start for a verb, seen from the top of the repository."""
    folder = settings.get("core.hookspath", ".git/hooks").rstrip("/")
    return [f"{folder}/{name}" for name in _HOOKS.get(verb, ())]


def started_programs(settings: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    started = [value.removeprefix("!") for key, value in settings.items() if _PROGRAMS.search(key)]
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

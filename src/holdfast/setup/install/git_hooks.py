"""Puts hooks into a repository that ask Holdfast before agents' commits and pushes, and takes them out exactly."""

import os
import shlex
import subprocess
from pathlib import Path

from holdfast.core.errors import CommandRefused
from holdfast.core.git import git_environment
from holdfast.paths import write_atomically
from holdfast.setup.install.hooks_text import our_words

NAMES = ("reference-transaction", "pre-push")
KEPT = ".before-holdfast"
MARK = "# Holdfast asks here before agents commit or push; a person is never asked. Removed by: holdfast gate hooks off"
LIST = "git-hooks"
"""A file in the state folder: the folders with hooks of ours, one a line."""

# For dash, bash and busybox. git calls the first hook in several states; only `prepared` can still refuse. A text in the
# script itself (<<) starts no process, and neither does exec: each one is a millisecond of every commit.
_REFERENCE_TRANSACTION = """\
#!/bin/sh
{mark}
kept="$0{kept}"
if [ "$1" != prepared ] || [ ! -x {program} ]; then
  [ -x "$kept" ] && exec "$kept" "$@"
  exit 0
fi
all= heads=
while IFS= read -r line; do
  all="$all$line
"
  case $line in *" refs/heads/"*) heads="$heads$line
" ;; esac
done
if [ -n "$heads" ]; then
  [ -x "$kept" ] || exec {client} hold git reference-transaction <<END
$heads
END
  {client} hold git reference-transaction <<END || exit 1
$heads
END
fi
[ -x "$kept" ] || exit 0
printf %s "$all" | "$kept" "$@"
"""
_PRE_PUSH = """\
#!/bin/sh
{mark}
kept="$0{kept}"
if [ -x {program} ]; then
  {client} hold git pre-push <<END || exit 1
$1 $2
END
fi
[ -x "$kept" ] && exec "$kept" "$@"
# Git LFS does not install its hook next to another one: without it a push would leave the contents behind.
[ -d "$(git rev-parse --git-path lfs)" ] && command -v git-lfs > /dev/null && exec git lfs pre-push "$@"
exit 0
"""
_SCRIPTS = {"reference-transaction": _REFERENCE_TRANSACTION, "pre-push": _PRE_PUSH}


def hooks_folder(project: Path) -> Path:
    """Where git looks for hooks: others (husky) move it."""
    command = ["git", "-C", str(project), "rev-parse", "--path-format=absolute", "--git-path", "hooks"]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=20, env=git_environment(os.environ)
    )
    if found.returncode or not found.stdout.strip():
        raise CommandRefused(f"{project} is in no git repository", fix="Run it inside of one.")
    return Path(found.stdout.strip())


def put_in(project: Path, state: Path) -> list[Path]:
    """Install or renew them; a hook that is there is kept and called after ours."""
    folder = hooks_folder(project)
    words = our_words(state)
    fields = {
        "mark": MARK, "kept": KEPT, "program": shlex.quote(words[0]), "client": " ".join(map(shlex.quote, words)),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        path = folder / name
        if path.is_symlink() or (path.exists() and not is_ours(path)):
            path.rename(path.with_name(name + KEPT))
        _remove_copies(path)
        write_atomically(path, _SCRIPTS[name].format(**fields).encode(), mode=0o755)
    _write_list(state, [*dict.fromkeys([*listed_folders(state), str(folder)])])
    return [folder / name for name in NAMES]


def take_out(folder: Path, state: Path) -> list[Path]:
    removed = []
    for name in NAMES:
        path = folder / name
        _remove_copies(path)
        if is_ours(path):
            path.unlink()
            removed.append(path)
            if (kept := path.with_name(name + KEPT)).exists():
                kept.rename(path)
    _write_list(state, [one for one in listed_folders(state) if one != str(folder)])
    return removed


def _remove_copies(hook: Path) -> None:
    """Ours under another name: pre-commit and lefthook keep what they find, as `pre-push.legacy` or `.old`."""
    for copy in hook.parent.glob(f"{hook.name}.*"):
        if is_ours(copy):
            copy.unlink()


def is_ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and MARK.encode() in path.read_bytes()[:4096]
    except OSError:
        return False


def missing_in(project: Path, state: Path) -> list[str]:
    """Hooks that were put into this repository and are not where git looks now."""
    folder = hooks_folder(project)
    known = set(listed_folders(state))
    # Moved: the folder that git used before is in the same repository.
    here = {one for one in known if _same_repository(Path(one), project)}
    return [name for name in NAMES if not is_ours(folder / name)] if here else []


def _same_repository(folder: Path, project: Path) -> bool:
    try:
        return folder.exists() and _common_folder(folder.parent) == _common_folder(project)
    except CommandRefused:
        return False


def _common_folder(place: Path) -> str:
    command = ["git", "-C", str(place), "rev-parse", "--path-format=absolute", "--git-common-dir"]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=20, env=git_environment(os.environ)
    )
    if found.returncode:
        raise CommandRefused(f"{place} is in no git repository")
    return os.path.realpath(found.stdout.strip())


def listed_folders(state: Path) -> list[str]:
    try:
        return (state / LIST).read_text().splitlines()
    except OSError:
        return []


def _write_list(state: Path, folders: list[str]) -> None:
    if folders or (state / LIST).exists():
        write_atomically(state / LIST, "".join(f"{one}\n" for one in folders).encode())

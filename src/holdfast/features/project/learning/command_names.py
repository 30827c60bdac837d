"""What a shell command is called when habits are counted: `cd x && FOO=1 uv run pytest -q tests` is `pytest`."""

import re
from functools import lru_cache

from holdfast.core.shell.analysis import Ran, analyse_command

MAX_CHARACTERS = 4_000
_NAME = re.compile(r"^[\w.:+-]+( [\w.:+-]+)*$")
_PLAIN_WORD = re.compile(r"^[a-z][a-z0-9:_-]{0,30}$")
_VALUES = frozenset(("-C", "--prefix", "-f", "-c"))
_WITH_SUBCOMMAND = frozenset(
    "git npm pnpm yarn bun cargo go make just chezmoi docker kubectl terraform ruff mvn gradle gradlew mvnw dotnet mix "
    "rake rails composer gh helm holdfast tox nox pre-commit deno swift bazel zig task rush nx turbo invoke".split()
)
_WITH_TWO = frozenset(("npm run", "pnpm run", "yarn run", "bun run", "docker compose"))
_UNREMARKABLE = frozenset(
    "cd ls cat echo pwd grep rg find sed awk head tail wc sort true false test [ which type sleep export set source . "
    "mkdir touch cp mv rm ln chmod kill ps date printf tee xargs diff tree stat file du df less python python3 node "
    "bash sh zsh jq curl wget vim nano man git".split()
)
_HABITUAL_GIT = frozenset(("git push", "git pull", "git rebase", "git merge", "git tag"))


@lru_cache(2_000)
def habit_names(command: str) -> tuple[str, ...]:
    """Names of the commands that say something about how somebody works; looking around says nothing."""
    if len(command) > MAX_CHARACTERS:
        return ()
    analysis = analyse_command(command, 0, cwd=None)
    names = (_name_of(one.words) for one in analysis.commands if one.ran is not Ran.NO)
    return tuple(dict.fromkeys(name for name in names if name and _is_habitual(name)))


def _is_habitual(name: str) -> bool:
    return name.partition(" ")[0] not in _UNREMARKABLE or name in _HABITUAL_GIT


def _name_of(words: list[str]) -> str:
    """Program, and what it was told to do where that is what matters: `npm run lint`, `chezmoi apply`, `pytest`."""
    name = words[0].rpartition("/")[2]
    for following in _without_options(words[1:6])[:2]:
        takes_more = name in _WITH_SUBCOMMAND or name in _WITH_TWO
        if not takes_more or not _PLAIN_WORD.match(following):
            break
        name = f"{name} {following}"
    return name[:80] if _NAME.match(name) else ""


def _without_options(words: list[str]) -> list[str]:
    """`git -C x commit`, `make -j4 test`: what comes before the subcommand."""
    found, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            found.append(word)
        skip = word in _VALUES
    return found

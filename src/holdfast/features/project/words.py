"""What a shell command does, in one or two words: `cd x && FOO=1 uv run pytest -q tests` is `pytest`."""

import re
from functools import lru_cache

from holdfast.features.project.model import phrases

LONGEST = 4_000
MOST_PARTS = 30

_TOKEN = re.compile(
    r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|&&|\|\||\|&|<<|[;&|\n]|[^\s'"\\;&|<()\n]+|[<()]|[^\S\n]+""", re.DOTALL
)
_JOINTS = frozenset(("&&", "||", "|&", ";", "&", "|", "\n"))
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_NAME = re.compile(r"^[\w.:+-]+( [\w.:+-]+)*$")
_PLAIN_WORD = re.compile(r"^[a-z][a-z0-9:_-]{0,30}$")
_RUNNERS = {
    **dict.fromkeys(
        ("env", "time", "nice", "nohup", "sudo", "command", "exec", "npx", "bunx", "timeout", "xvfb-run"), 1
    ),
    **dict.fromkeys(("uv run", "poetry run", "pdm run", "hatch run", "pipenv run", "rye run", "bundle exec"), 2),
    **dict.fromkeys(("pnpm exec", "yarn exec", "pnpm dlx", "python -m", "python3 -m", "coverage run"), 2),
}
_WITH_SUBCOMMAND = phrases(
    "git, npm, pnpm, yarn, bun, cargo, go, make, just, chezmoi, docker, kubectl, terraform, ruff, mvn, gradle, "
    "gradlew, mvnw, dotnet, mix, rake, rails, composer, gh, helm, holdfast, tox, nox, pre-commit, deno, swift, "
    "bazel, zig, task, rush, nx, turbo, invoke"
)
_WITH_TWO = frozenset(("npm run", "pnpm run", "yarn run", "bun run", "docker compose"))
_SAY_NOTHING = phrases(
    "cd, ls, cat, echo, pwd, grep, rg, find, sed, awk, head, tail, wc, sort, true, false, test, [, which, type, "
    "sleep, export, set, source, ., mkdir, touch, cp, mv, rm, ln, chmod, kill, ps, date, printf, tee, xargs, diff, "
    "tree, stat, file, du, df, less, git status, git diff, git log, git show, git add, git branch, git stash, git "
    "rev-parse, git fetch, git checkout, git switch, git restore, git config, git remote, git ls-files, git blame, "
    "git commit, python, python3, node, bash, sh, zsh, jq, curl, wget, vim, nano, man, if, for, while, do, done, "
    "then, fi, else, esac, case"
)


class Part(tuple[str, ...]):
    """The words of one simple command, without what only runs it. `exits`: the whole exits as this part does."""

    exits: bool = False
    name: str = ""
    """Program, and what it was told to do."""


@lru_cache(2_000)
def parts(command: str) -> tuple[Part, ...]:
    """In order. What stands after a here-document is not looked at."""
    split = _split(command[:LONGEST])
    joints = [joint for joint, _ in split]
    found = []
    for n, (_, words) in enumerate(split[:MOST_PARTS]):
        part = Part(_bare(words))
        if part:
            part.exits, part.name = not set(joints[n + 1 :]) - {"&&"}, named(part)
            found.append(part)
    return tuple(found)


@lru_cache(2_000)
def commits(command: str) -> bool:
    return any(part.exits and part.name == "git commit" for part in parts(command))


@lru_cache(2_000)
def telling(command: str) -> tuple[str, ...]:
    """Names of the commands that say something about how somebody works; looking around says nothing."""
    names = (part.name for part in parts(command))
    return tuple(dict.fromkeys(name for name in names if name and name not in _SAY_NOTHING))


def named(words: tuple[str, ...]) -> str:
    """Program, and what it was told to do where that is what matters: `npm run lint`, `chezmoi apply`, `pytest`."""
    name = words[0].rpartition("/")[2]
    for following in _without_options(words[1:6])[:2]:
        takes_more = name in _WITH_SUBCOMMAND or name in _WITH_TWO
        if not takes_more or not _PLAIN_WORD.match(following):
            break
        name = f"{name} {following}"
    return name[:80] if _NAME.match(name) else ""


def _without_options(words: tuple[str, ...]) -> list[str]:
    """`git -C x commit`, `make -j4 test`: what comes before the subcommand."""
    found, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            found.append(word)
        skip = word in ("-C", "--prefix", "-f", "-c")
    return found


def _split(command: str) -> list[tuple[str, list[str]]]:
    """(what joins it to the part before, its words). A quote that is not closed: nothing is understood."""
    pieces = _TOKEN.findall(command)
    if sum(map(len, pieces)) != len(command):
        return []
    found: list[tuple[str, list[str]]] = [("", [])]
    glued = False
    for piece in pieces:
        if piece == "<<":
            break
        if piece == ")":
            continue
        if piece in _JOINTS:
            found.append((piece, []))
            glued = False
        elif piece.isspace():
            glued = False
        else:
            _add(found[-1][1], _unquoted(piece), glued)
            glued = found[-1][1] != ["("]
    while len(found) > 1 and not found[-1][1] and found[-1][0] != "&":
        found.pop()
    return found


def _add(words: list[str], text: str, glued: bool) -> None:
    if glued and words:
        words[-1] += text
    else:
        words.append(text)


def _unquoted(token: str) -> str:
    if token[0] in "'\"" and len(token) > 1:
        return token[1:-1]
    return token[1:] if token[0] == "\\" else token


def _bare(words: list[str]) -> list[str]:
    """Without assignments, `env`, `uv run`, `python -m` and the like."""
    while words:
        two = " ".join([words[0].rpartition("/")[2], *words[1:2]])
        if _ASSIGNMENT.match(words[0]) or words[0] in ("(", "{", "!"):
            words = words[1:]
        elif skip := _RUNNERS.get(two) or _RUNNERS.get(words[0]):
            words = _after_options(words[skip:])
        else:
            break
    return words


def _after_options(words: list[str]) -> list[str]:
    """`timeout 60 pytest`, `sudo -E make`: options and numbers belong to the runner."""
    while words and (words[0].startswith("-") or words[0][:1].isdigit()):
        words = words[1:]
    return words

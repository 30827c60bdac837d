"""What a shell command proves: which of its parts must have succeeded when the whole exited 0."""

import re
from functools import lru_cache

SEPARATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "\n")
_WRAPPER = re.compile(
    r"^(?:[A-Za-z_]\w*=\S*|env|time|nice|nohup|sudo|command|exec|uv\s+run|poetry\s+run|pdm\s+run|hatch\s+run|pipenv\s+run"
    r"|bundle\s+exec|npx|pnpm\s+exec|yarn\s+exec|python3?\s+-m)\s+"
)
_FOLDER = re.compile(r"^\S*/(?=[^/\s]+(\s|$))")
_CHAINED = re.compile(r"[;&|\n`<>]|\$\(")
_OURS = re.compile(r"^\s*(\S*/)?holdfast\s+gate(\s|$)")
_BLANKS = re.compile(r"[ \t\r\f\v]+")
_COMMITS = re.compile(r"^git commit(\s|$)")
_WORD = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+"
_GIT_OPTIONS = re.compile(
    rf"\bgit(?: (?:-[cC] {_WORD}|--(?:git-dir|work-tree|namespace|config-env) {_WORD}|-{_WORD}))+(?= )"
)
"""What may stand between `git` and its verb."""
LONGEST = 4_000


@lru_cache(4_000)
def single_blanks(command: str) -> str:
    """Patterns are tried on this: a run of blanks is one, so that no pattern can be slow on them."""
    return _BLANKS.sub(" ", command[:LONGEST]).strip()


@lru_cache(4_000)
def readings(command: str) -> tuple[str, ...]:
    """What a pattern is tried on: `git -C x -c a=b commit` is also `git commit`, or every gate on it had a hole."""
    text = single_blanks(command)
    plain = _GIT_OPTIONS.sub("git", text)
    return (text,) if plain == text else (text, plain)


def is_ours(command: str) -> bool:
    """`holdfast gate …` and nothing else in the same line: it is what resolves a refusal."""
    return bool(_OURS.match(command)) and not _CHAINED.search(command)


@lru_cache(4_000)
def proven(command: str) -> tuple[str, ...]:
    """The parts that exited 0 if the whole did: the last one, and all before it that are joined by `&&`.

    `pytest | tail` proves only `tail`; `pytest; true` only `true`; `pytest || true` nothing at all.
    """
    found: list[str] = []
    for joint, text in reversed(_pipelines(_parts(command[:LONGEST]))):
        if joint == "||":
            break
        found.append(text)
        if joint != "&&":
            break
    return tuple(form for text in found for form in _forms(text))


def _pipelines(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A pipeline exits as its last part does."""
    found: list[tuple[str, str]] = []
    for joint, text in parts:
        if joint in ("|", "|&") and found:
            found[-1] = (found[-1][0], text)
        else:
            found.append((joint, text))
    return found


def commits(command: str) -> bool:
    return any(_COMMITS.match(part) for part in proven(command))


def _forms(text: str) -> list[str]:
    """As it was typed, and without what only runs it: `FOO=1 uv run .venv/bin/pytest -q` is also `pytest -q`."""
    forms = [text]
    bare = text
    while (shorter := _WRAPPER.sub("", bare, count=1)) != bare:
        bare = shorter
    bare = _GIT_OPTIONS.sub("git", _FOLDER.sub("", bare, count=1))
    return forms if bare == text else [*forms, bare]


def _parts(command: str) -> list[tuple[str, str]]:
    """(what joins it to the part before, text). Quotes are respected; what is not understood has no parts."""
    parts: list[tuple[str, str]] = []
    joint, text, quote, n = "", "", "", 0
    while n < len(command):
        step, quote, cuts = _step(command, n, quote)
        if step == "<<":
            return []
        if cuts:
            parts.append((joint, single_blanks(text)))
            joint, text = step, ""
        else:
            text += step
        n += len(step)
    parts.append((joint, single_blanks(text)))
    return [] if quote else _ended(parts)


def _step(command: str, n: int, quote: str) -> tuple[str, str, bool]:
    """(the next piece of the text, the quote we are in after it, whether it separates two commands)"""
    char = command[n]
    if char == "\\" and quote != "'":
        return command[n : n + 2], quote, False
    if quote:
        return char, "" if char == quote else quote, False
    if char in "'\"`":
        return char, char, False
    if command.startswith("<<", n):
        return "<<", "", False
    separator = _separator(command, n)
    return separator or char, "", bool(separator)


def _separator(command: str, n: int) -> str:
    if command[n] in "&|" and command[n - 1 : n] == ">":  # 2>&1 and >|file
        return ""
    if command.startswith("&>", n):
        return ""
    return next((s for s in SEPARATORS if command.startswith(s, n)), "")


def _ended(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A closing `;` or newline says nothing; a closing `&` leaves the command running, and it proves nothing."""
    while parts and not parts[-1][1]:
        if parts[-1][0] == "&":
            return []
        parts.pop()
    return parts

"""Reads what a failed command printed: its first error, a signature of it, and which kind of trouble it is."""

import re
from collections.abc import Iterator

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.core.text import strip_controls

LONGEST_TEXT, LONGEST_LINE, MOST_LINES = 20_000, 300, 200
"""A text of a megabyte is read at both ends; errors are there."""
_WRAPPER = lazy_pattern(
    r"(?:Error: )?(?:Exit code:? \d+|Command failed with exit code \d+|Chunk ID: \S*|Wall time: .*|Process exited with code -?\d+"
    r"|Original token count: \d+|Output:|<tool_use_error>|</tool_use_error>|stderr:|stdout:)\s*$"
)
_ERROR = lazy_pattern(
    r"not found|no such|cannot|can't|unknown|invalid|illegal|unrecogni[sz]ed|denied|not permitted|refused|requires?\b|required"
    r"|expected|error|fatal|fail(?:ed|ure)?\b|could not|couldn't|missing|no matches|accepts|not allowed|rejected|timed? ?out|unable"
    r"|not logged|unauthori|forbidden|too many|bad |abort|conflict|exception|panic|undefined|not a |declined|no module|✗|✘",
    re.IGNORECASE,
)
_SHELL_PREFIX = lazy_pattern(r"^(?:\(eval\)|zsh|bash|sh|/bin/(?:ba|z)?sh|-bash)(?::(?: line)? ?\d+)?:\s*")
# In order: the earlier ones contain characters that the later ones would replace.
_VARIABLE = (
    (lazy_pattern(r"https?://[^\s'\"]+"), "<url>"),
    (lazy_pattern(r"(?:(?:~|\.{1,2})?/|\b[A-Za-z]:\\|[\w.@-]+/)[\w.@+%-]*(?:[/\\][\w.@+%*-]+)*"), "<path>"),
    (lazy_pattern(r"\b(?:0x)?[0-9a-fA-F]{7,64}\b"), "<id>"),
    (lazy_pattern(r"\d+(?:[.:]\d+)*"), "<n>"),
    (lazy_pattern(r"\s+"), " "),
)


def error_lines(text: str) -> Iterator[str]:
    """Lines that name an error, without colours and without what the agent's tool wrapped around them."""
    for line in _printed_lines(text):
        if _ERROR.search(line):
            yield line


def _printed_lines(text: str) -> Iterator[str]:
    ends = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 2]}\n{text[-LONGEST_TEXT // 2 :]}"
    lines = strip_controls(ends).split("\n")
    for line in lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES // 2], *lines[-MOST_LINES // 2 :]]:
        stripped = line[: 2 * LONGEST_LINE].strip()
        if stripped and not _WRAPPER.match(stripped):
            yield stripped.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")[:LONGEST_LINE]


def first_line(text: str) -> str:
    return next(_printed_lines(text), "")


def first_error(text: str) -> str:
    """The first line that names an error; else the last line printed."""
    last = ""
    for line in _printed_lines(text):
        if _ERROR.search(line):
            return line
        last = line
    return last


def signature(line: str) -> str:
    """Equal for the same error with other paths, numbers, ids and addresses."""
    line = _SHELL_PREFIX.sub("", line[:LONGEST_LINE])
    for pattern, instead in _VARIABLE:
        line = pattern.sub(instead, line)
    return line.strip().lower()


# Trouble with the place rather than with the work: a missing program, a flag this version lacks, a shell's quoting.


class Trouble(msgspec.Struct, frozen=True):
    """`kind` and `about` together identify it; `line` is what was printed."""

    kind: str
    about: str
    line: str


_WORD = r"['\"`‘“]?(?P<about>{})['\"`’”]?"
_NAME = r"[\w.+@/-]+"
_FLAG = r"(?:-- (?P<third>\w)\b|['\"`‘“]?(?P<about>-{1,2}[A-Za-z][\w-]*)|['\"`‘“](?P<other>[A-Za-z][\w-]*))"
KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, lazy_pattern(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("command", r"command not found: (?P<about>[\w.+-]+)$|^(?P<other>[\w.+-]+): (?:command )?not found$"
                    r"|'(?P<third>[\w.+-]+)' is not recognized as an internal"),
        # A path with `*` has no file: that is the work itself. Where quotes help, the program should get the word.
        ("glob", r"^(?:zsh: )?no matches found: (?P<about>-.*|.*://.*|[^*]*)$"),
        ("flag", r"(?:unknown|unrecogni[sz]ed|invalid|illegal|unexpected|bad|no such) (?:long |shorthand |command-?line )?"
                 r"(?:flag|option|argument|switch)s?\b:? ?" + _FLAG),
        ("subcommand", r"(?:unknown|unrecogni[sz]ed|invalid) (?:sub-?)?command[: ]+" + _WORD.format(_NAME)
                       + r"|^\w+: '(?P<other>[\w-]+)' is not a \w+ command"),
        ("arguments", r"accepts (?:at most |at least |between )?\d+ (?:and \d+ )?arg|requires (?:at least|exactly) \d+ arg"
                      r"|(?P<about>too many arguments)"),
        ("module", r"No module named '?(?P<about>[\w.]+)|Cannot find (?:module|package) '(?P<other>[@\w][\w@/-]*)'"),
        ("quoting", r"(?P<about>parse error near|syntax error near unexpected token|unexpected EOF while looking"
                    r"|unterminated quoted|unmatched ['\"]|failed to parse jq expression|invalid jq expression)"),
        ("login", r"(?:requires? (?:a )?log-?in|not logged in|authentication (?:required|failed)|please (?:log ?in|authenticate)"
                  r"|run [`'\"]?\S+ (?:auth )?login|Permission denied \(publickey)(?P<about>)"),
        ("network", r"(?P<about>could not resolve host|connection refused|ECONNREFUSED|ENOTFOUND|network is unreachable"
                    r"|EAI_AGAIN|proxy error)"),
        ("permission", r"(?P<about>operation not permitted|permission denied|EACCES|EPERM|read-only file system)"),
        ("hook", r"(?P<about>hook declined|(?:pre-commit|pre-push|commit-msg|prepare-commit-msg)[ \w]*hook)[^\n]{0,40}"
                 r"(?:fail|declin|reject|exit|error)|husky - .*hook exited"),
    )
)  # fmt: skip
# Where the same words mean something else in another program, the program is a part of it.
_OF_PROGRAM = frozenset(("flag", "subcommand", "arguments", "quoting", "login", "network", "permission", "glob"))
# They answer a question by failing.
_PROBE = lazy_pattern(r"(?:^|[;&|]\s*)(?:which|type|command -v|whereis|test|\[)\s")
_LEAD = lazy_pattern(r"^(?:cd|export|source|set|sudo|time|env|nohup|which|command|sleep|timeout(?: \d+\w?)?)\b")
_HELP = lazy_pattern(r"\s--?h(?:elp)?\b")


def trouble_of(command: str, text: str) -> Trouble | None:
    """What is wrong with the place, if that is why the command failed. Tests, linters and builds are not asked about."""
    if _PROBE.search(command[:200]) or asks_for_help(command):
        return None
    for line in _printed_lines(text):
        bare = _SHELL_PREFIX.sub("", line)
        for kind, pattern in KINDS:
            if match := pattern.search(bare):
                return Trouble(kind, _subject(kind, match, command), bare)
    return None


def _subject(kind: str, match: re.Match[str], command: str) -> str:
    named = next((text for text in match.groups() if text), "")
    if kind == "glob":
        # The signs that the shell expanded, whatever they were part of.
        named = "".join(sorted(set(named) & set("?*[{^")))
    named = named.lower().lstrip("-") if kind == "flag" else named.lower()
    return f"{program_of(command)} {named}".strip() if kind in _OF_PROGRAM else named


def asks_for_help(command: str) -> bool:
    return bool(_HELP.search(command))


def is_preparation(part: str) -> bool:
    """Changes the folder or a variable, or only looks for a program."""
    return bool(_LEAD.match(part))


def program_of(command: str) -> str:
    """The first word of the last simple command that is more than preparation."""
    for part in re.split(r"\s*(?:&&|\|\||[;|\n])\s*", command[:2_000]):
        words = [word for word in part.split() if "=" not in word or word.startswith("-")]
        if words and not is_preparation(part):
            return words[0].rpartition("/")[2]
    return ""

"""Browser drivers that are programs: what a command line does in the browser, and which words of it are typed there."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import dropwhile

import msgspec

from holdfast.features.uat.drivers.table import ShellDriver, ToolUse, shell_drivers

HIDDEN = "[not kept]"
# Bounds on what is read of a command line: characters, words, commands.
LONGEST_COMMAND = 20_000
MOST_WORDS = 1_000
MOST_COMMANDS = 50
SHORTEST_PLAIN = 3
"""Shorter values are taken out only as whole words: `1` is also in `@e1`."""


DRIVER_FOLDERS = ("~/.agent-browser/tmp/screenshots",)
"""Where drivers put screenshots without a file name."""


_FLOWS = {"maestro": ("test",)}
"""Programs whose one command plays a whole flow."""
_BATCH = "agent-browser"
"""The program that takes a batch of commands as JSON."""
# Words that may come before the program itself.
_RUNNERS = frozenset(
    ("npx", "bunx", "pnpm", "yarn", "npm", "bun", "uvx", "dlx", "exec", "x", "sudo", "env", "time", "timeout")
)
# An option with or without `=value`; a lone dash is none.
_OPTION = re.compile(r"--?[A-Za-z][\w-]*(?:=.*)?", re.DOTALL)
_SEPARATOR = frozenset("&|;()\n")
_REDIRECTION = frozenset("<>&|")
_LOCATES_BY_NUMBER = "nth"


@cache
def programs() -> tuple[str, ...]:
    return (*shell_drivers(), *_FLOWS)


def parse_browser_commands(command: str) -> list[ToolUse]:
    """All of a line, in their order: `agent-browser fill @e1 ada && agent-browser click @e3` has two."""
    if not any([program in command for program in programs()]):  # noqa: C419 - a list is quicker for so few
        return []
    found = (one for words in split_commands(command) for one in _of_words(words))
    return [one for one, _ in zip(found, range(MOST_COMMANDS), strict=False)]


def split_commands(command: str) -> list[list[str]]:
    """The words of each simple command, without the operators between them and what is redirected."""
    parts: list[list[str]] = [[]]
    for word in _split_words(command):
        if word and set(word) <= _SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(word)
    return [_without_redirections(part) for part in parts if part]


def _split_words(command: str) -> list[str]:
    # A backslash at a line's end continues the command.
    text = command[:LONGEST_COMMAND].replace("\\\n", " ")
    # A line's end separates commands, therefore it is no white space here.
    reader = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
    try:
        return list(reader)[:MOST_WORDS]
    # Unbalanced quotes: better rough words than none, because typed values are found by them.
    except ValueError:
        return command.split()[:MOST_WORDS]


def _without_redirections(words: list[str]) -> list[str]:
    """Without `> file`: typed words may come after it."""
    left: list[str] = []
    is_target = False
    for word in words:
        if word and set(word) <= _REDIRECTION:
            # In `2>file` the number belongs to the redirection.
            if left and left[-1] in ("0", "1", "2"):
                left.pop()
            is_target = True
        elif is_target:
            is_target = False
        else:
            left.append(word)
    return left


def _of_words(words: list[str]) -> Iterator[ToolUse]:
    words = list(dropwhile(lambda word: word in _RUNNERS or _is_prefix(word), words))
    if not words:
        return
    program = _program(words[0])
    if words[1:] and words[1] in _FLOWS.get(program, ()):
        yield ToolUse(program, "other")
    driver = shell_drivers().get(program)
    if driver is not None:
        yield from _of_driver(driver, words[1:])
    elif words[-1].startswith("[["):  # echo '[["open", …], …]' | agent-browser batch
        batch_driver = shell_drivers()[_BATCH]
        yield from (one for line in _json_lines(words[-1]) for one in _of_driver(batch_driver, line))


def _is_prefix(word: str) -> bool:
    """Whether a word may come before a program: an assignment, an option of a runner, its number of seconds."""
    # `FOO=1`, but not a path or an address that has `=` further on.
    return word.startswith("-") or "=" in word.partition("/")[0] or word.rstrip("smh").isdigit()


def _program(word: str) -> str:
    # `@playwright/cli@latest` has a version behind the second @.
    package = re.sub(r"(?<=.)@[^@/]*$", "", word)
    return package if package in shell_drivers() else word.rpartition("/")[2].partition("@")[0]


def _json_lines(text: str) -> list[list[str]]:
    try:
        return msgspec.json.decode(text, type=list[list[str]])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return []


def _of_driver(driver: ShellDriver, words: list[str]) -> Iterator[ToolUse]:
    plain = [word for word in words if not _OPTION.fullmatch(word)]
    # `batch "open x" "click @e1"` has a whole command in each word.
    if "batch" in plain[:3]:
        for line in plain[plain.index("batch") + 1 :]:
            yield from _of_driver(driver, _split_words(line))
    elif plain:
        yield _single_command(driver, plain, words)


def _single_command(driver: ShellDriver, plain: list[str], words: list[str]) -> ToolUse:
    # An option's value may precede the verb: `agent-browser --session s1 snapshot`.
    at = next((n for n, word in enumerate(plain[:6]) if driver.is_verb(word)), 0)
    verb, behind = plain[at], plain[at + 1 :]
    if verb == driver.locator and len(behind) > 1:
        verb, behind = _located(behind)
    meaning = driver.tools.get(verb, "other")
    address = _address(driver, behind, words) if meaning == "navigate" else ""
    asks = behind[0] if verb == "get" and behind[:1] in (["title"], ["url"]) else ""
    return ToolUse(driver.name, meaning, address, asks=asks, typed=tuple(_typed_words(driver, verb, behind)))


def _address(driver: ShellDriver, behind: list[str], words: list[str]) -> str:
    if driver.address_option:
        return next((word for word in words if "://" in word), "").rpartition("=")[2]
    return behind[0] if behind else ""


def _located(behind: list[str]) -> tuple[str, list[str]]:
    """`find label Password fill s3cret` fills; `find nth 2 a click` has one word more."""
    at = 3 if behind[0] == _LOCATES_BY_NUMBER else 2
    if len(behind) <= at:
        return "click", []
    # The element counts as the first word behind the verb, as it does without `find`.
    return behind[at], ["", *behind[at + 1 :]]


def _typed_words(driver: ShellDriver, verb: str, behind: list[str]) -> list[str]:
    two = f"{verb} {behind[0]}" if behind else ""
    if two in driver.typed_from:
        behind = behind[1 + driver.typed_from[two] :]
    elif verb in driver.typed_from:
        skipped = driver.typed_from[verb]
        # Without the element, all words are typed.
        behind = behind[skipped:] if len(behind) > skipped else behind
    else:
        return []
    return [word for word in behind if word]


# ── values typed into fields ───────────────────────────────────────────────────────────────────────────────────────


def hide_typed_words(command: str) -> tuple[str, list[str]]:
    """(the command line without what it types, the values that were taken out)."""
    taken = [word for one in parse_browser_commands(command) for word in one.typed]
    shown = command
    # The longest first: a value may be part of another one.
    for value in sorted(set(taken), key=len, reverse=True):
        shown = _replaced(shown, value)
    left = {word for one in parse_browser_commands(shown) for word in one.typed}
    if left & set(taken):  # written with escapes, so not found as it is
        shown = " ".join(HIDDEN if word in taken else word for word in _split_words(shown))
    return shown, taken


def _replaced(command: str, value: str) -> str:
    if len(value) >= SHORTEST_PLAIN:
        return command.replace(value, HIDDEN)
    # Only as a word of its own: not within an option, a reference or a number.
    return re.sub(rf"(?<![\w@.=-]){re.escape(value)}(?![\w.-])", HIDDEN, command)

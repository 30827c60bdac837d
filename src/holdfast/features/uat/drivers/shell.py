"""Browser drivers that are programs: what a command line does in the browser, and which words of it are typed there."""

import re
import shlex
from collections.abc import Iterator, Mapping

import msgspec

HIDDEN = "[not kept]"
# Bounds on what is read of a command line: characters, words, commands.
LONGEST_COMMAND = 20_000
MOST_WORDS = 1_000
MOST_COMMANDS = 50
SHORTEST_PLAIN = 3
"""Shorter values are taken out only where they stand alone: `1` is also in `@e1`."""


DRIVER_FOLDERS = ("~/.agent-browser/tmp/screenshots",)
"""Where drivers put screenshots that nobody named a file for."""


def meanings(**tools: str) -> dict[str, str]:
    """`click="a b"`: tools a and b click."""
    return {tool: meaning.rstrip("_") for meaning, names in tools.items() for tool in names.split()}


class ShellDriver(msgspec.Struct, frozen=True):
    name: str
    verbs: Mapping[str, str]
    """First word that is no option → meaning."""
    typed_from: Mapping[str, int]
    """Verb → how many words behind it come before those that are typed or secret."""


_PLAYWRIGHT_CLI = ShellDriver(
    "playwright-cli",
    meanings(
        navigate="open goto tab-new",
        back="go-back go-forward",
        click="click dblclick check uncheck dialog-accept dialog-dismiss mousedown",
        fill="fill type",
        press="press keydown",
        select="select",
        upload="upload drop",
        hover="hover mousemove",
        drag="drag",
        scroll="mousewheel",
        screenshot="screenshot",
        snapshot="snapshot find",
        evaluate="eval run-code",
        console="console",
        network="requests request network",
        close="close close-all kill-all",
        tab="tab-list tab-select tab-close list show",
    ),
    {
        "fill": 1,
        "type": 0,
        "select": 1,
        "press": 0,
        "keydown": 0,
        "dialog-accept": 0,
        "cookie-set": 1,
        "localstorage-set": 1,
        "sessionstorage-set": 1,
    },
)
_AGENT_BROWSER = ShellDriver(
    "agent-browser",
    meanings(
        navigate="open goto navigate",
        back="back forward",
        click="click dblclick tap check uncheck dialog focus",
        fill="fill type keyboard",
        press="press key keydown",
        select="select",
        upload="upload",
        hover="hover",
        drag="drag",
        scroll="scroll swipe scrollintoview scrollinto",
        screenshot="screenshot",
        snapshot="snapshot get is find diff",
        evaluate="eval",
        wait="wait",
        console="console errors",
        network="network",
        close="close quit exit",
        tab="tab window frame",
    ),
    {
        "fill": 1,
        "type": 1,
        "keyboard": 1,
        "select": 1,
        "press": 0,
        "key": 0,
        "keydown": 0,
        "set credentials": 0,
        "set headers": 0,
        "cookies set": 1,
        "storage local": 2,
        "storage session": 2,
        "clipboard write": 0,
        "dialog accept": 0,
    },
)
_CHROME_DEVTOOLS = ShellDriver(
    "chrome-devtools",
    meanings(
        navigate="navigate_page new_page",
        click="click click_at handle_dialog",
        fill="fill fill_form type_text",
        press="press_key",
        upload="upload_file",
        hover="hover",
        drag="drag",
        screenshot="take_screenshot",
        snapshot="take_snapshot",
        evaluate="evaluate_script",
        wait="wait_for",
        console="list_console_messages get_console_message",
        network="list_network_requests get_network_request",
        close="close_page stop",
        tab="list_pages select_page",
    ),
    {"fill": 1, "fill_form": 0, "type_text": 0, "press_key": 0},
)
SHELL_DRIVERS = {driver.name: driver for driver in (_PLAYWRIGHT_CLI, _AGENT_BROWSER, _CHROME_DEVTOOLS)}
_OTHER_NAMES = {"@playwright/cli": "playwright-cli"}
_FLOWS = {"maestro": ("test",)}
"""Programs whose one command plays a whole flow."""
PROGRAMS = (*SHELL_DRIVERS, *_OTHER_NAMES, *_FLOWS)
# Words that may stand before the program itself.
_RUNNERS = frozenset(
    ("npx", "bunx", "pnpm", "yarn", "npm", "bun", "uvx", "dlx", "exec", "x", "sudo", "env", "time", "timeout")
)
# An option with or without `=value`; a lone dash is none.
_OPTION = re.compile(r"--?[A-Za-z][\w-]*(?:=.*)?", re.DOTALL)
_SEPARATOR = frozenset("&|;()\n")
_REDIRECTION = frozenset("<>&|")
_LOCATES_BY_NUMBER = "nth"


class BrowserCommand(msgspec.Struct, frozen=True):
    """One command of a driver within a command line."""

    driver: str
    meaning: str
    address: str = ""
    typed: tuple[str, ...] = ()
    asks: str = ""
    """`title` or `url`: its whole answer is that of the page."""


def parse_browser_commands(command: str) -> list[BrowserCommand]:
    """All of a line, in their order: `agent-browser fill @e1 ada && agent-browser click @e3` has two."""
    if not any([program in command for program in PROGRAMS]):  # noqa: C419 - a list is quicker for so few
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
    """Without `> file` wherever it stands: what is typed may come behind it."""
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


def _of_words(words: list[str]) -> Iterator[BrowserCommand]:
    while words and (words[0] in _RUNNERS or _is_prefix(words[0])):
        words = words[1:]
    program = _program(words[0]) if words else ""
    if words[1:] and words[1] in _FLOWS.get(program, ()):
        yield BrowserCommand(program, "other")
    driver = SHELL_DRIVERS.get(program)
    if driver is not None:
        yield from _of_driver(driver, words[1:])
    elif words and words[-1].startswith("[["):  # echo '[["open", …], …]' | agent-browser batch
        yield from (one for line in _json_lines(words[-1]) for one in _of_driver(_AGENT_BROWSER, line))


def _is_prefix(word: str) -> bool:
    """What may stand before a program: an assignment, an option of a runner, its number of seconds."""
    # `FOO=1`, but not a path or an address that has `=` further on.
    return word.startswith("-") or "=" in word.partition("/")[0] or word.rstrip("smh").isdigit()


def _program(word: str) -> str:
    # `@playwright/cli@latest` has a version behind the second @.
    name = _OTHER_NAMES.get(re.sub(r"(?<=.)@[^@/]*$", "", word), "")
    return name or word.rpartition("/")[2].partition("@")[0]


def _json_lines(text: str) -> list[list[str]]:
    try:
        return msgspec.json.decode(text, type=list[list[str]])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return []


def _of_driver(driver: ShellDriver, words: list[str]) -> Iterator[BrowserCommand]:
    plain = [word for word in words if not _OPTION.fullmatch(word)]
    if not plain:
        return
    # `batch "open x" "click @e1"` has a whole command in each word.
    if "batch" in plain[:3]:
        for line in plain[plain.index("batch") + 1 :]:
            yield from _of_driver(driver, _split_words(line))
        return
    # An option's value may stand before the verb: `agent-browser --session s1 snapshot`.
    at = next((n for n, word in enumerate(plain[:6]) if _is_verb(driver, word)), 0)
    verb, behind = plain[at], plain[at + 1 :]
    if driver is _AGENT_BROWSER and verb == "find" and len(behind) > 1:
        verb, behind = _located(behind)
    meaning = driver.verbs.get(verb, "other")
    address = behind[0] if meaning == "navigate" and behind else ""
    if driver is _CHROME_DEVTOOLS and meaning == "navigate":
        # Its address may be an option: `--url=http://x`.
        address = next((word for word in words if "://" in word), "").rpartition("=")[2]
    asks = behind[0] if verb == "get" and behind[:1] in (["title"], ["url"]) else ""
    yield BrowserCommand(driver.name, meaning, address, tuple(_typed_words(driver, verb, behind)), asks)


def _is_verb(driver: ShellDriver, word: str) -> bool:
    return word in driver.verbs or any(name.partition(" ")[0] == word for name in driver.typed_from)


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
        # Who leaves the element out types what is left.
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

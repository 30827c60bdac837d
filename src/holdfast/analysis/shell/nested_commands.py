"""Commands that stand in the arguments of another program: what launchers, remote shells, options and PowerShell start."""

# Only commands are returned, as shell text; whether a rule is about them is asked elsewhere, so that too many do
# little harm.

import base64
import binascii
import re
import shlex
from collections.abc import Callable, Iterable
from itertools import dropwhile, pairwise

from holdfast.analysis.shell.flow import Pieces, literal_text
from holdfast.analysis.shell.program_code import is_interpreter, quote_word
from holdfast.analysis.shell.recipes import runners
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.analysis.shell.word_lists import word_list
from holdfast.core.lazy import lazy_pattern

# Long options whose value is run.
_RUNS_VALUE = re.compile(
    r"^--.*(?:exec|eval|command|cmd|filter|program|pager|editor|action|rsh|shell|hook|run|call|init)"
)
# Program → options with which it decodes, and how.
_DECODERS: dict[str, tuple[tuple[str, ...], Callable[[str], bytes]]] = {
    "base64": (("-d", "-D", "--decode"), base64.b64decode),
    "base32": (("-d", "--decode"), base64.b32decode),
    "openssl": (("-d",), base64.b64decode),
    "xxd": (("-r",), bytes.fromhex),
}
# `cmake -E VERB`, and the program that does the same.
_CMAKE_VERBS = {
    "copy": "cp", "copy_if_different": "cp", "copy_directory": "cp -r", "rename": "mv", "remove": "rm", "rm": "rm",
    "remove_directory": "rm -r", "touch": "touch", "create_symlink": "ln -s", "create_hardlink": "ln",
}  # fmt: skip
MOST_LAUNCHED = 12


def carried_commands(name: str, words: list[str], stdin: Pieces | None) -> list[str]:
    """`name`: of the program, without its folder."""
    if name in word_list("launchers"):
        # `k3s kubectl apply`, `minikube kubectl -- apply`: the program's own words without the separator.
        own = [word for word in words[1:] if word != "--"] if name in ("k3s", "minikube", "microk8s") else []
        return [*launched_commands(words[1:], stdin), *([join_words(own)] if own else ())]
    if carry := _CARRIERS.get(name):
        return carry(words)
    return [*_option_commands(name, words), *_behind_dashes(name, words)]


def launched_commands(arguments: list[str], stdin: Pieces | None = None) -> list[str]:
    """Programs that start what they are given: every word that could begin a command does."""
    # gdb and its like: `-ex 'shell make …'`.
    commands = [re.sub(r"^(?:shell|!|pipe)\s+", "", word) for word in arguments if " " in word or "\n" in word]
    commands += [join_words(arguments[at:]) for at, word in enumerate(arguments) if not word.startswith("-")]
    text = literal_text(stdin)
    return [*commands[:MOST_LAUNCHED], *([text] if text.strip() and UNKNOWN not in text else ())]


def decoded_input(name: str, words: list[str], stdin: Pieces | None) -> list[str]:
    """`echo bWFr… | base64 -d` shows what it hides."""
    flags, decode = _DECODERS.get(name, ((), base64.b64decode))
    text = literal_text(stdin).strip()
    if not text or not any(word in flags for word in words[1:]):
        return []
    try:
        return [decode(text).decode()]
    except (ValueError, binascii.Error):
        return []


def join_words(words: Iterable[str]) -> str:
    return " ".join(quote_word(word) for word in words)


def _option_commands(name: str, words: list[str]) -> list[str]:
    """`--filter='…'`, `--checkpoint-action=exec=…`: options whose name says that their value is run."""
    pairs = pairwise([*words[1:], ""])
    return [
        text
        for word, after in pairs
        for text in (_value_to_run(name, word, after), _own_text(name, word, after))
        if text
    ]


def _value_to_run(name: str, word: str, after: str) -> str:
    """The value of an option, where it has several words."""
    flag, equals, value = word.partition("=")
    if _RUNS_VALUE.match(flag):
        after = (value if equals else after).removeprefix("exec=")
    elif word not in word_list("command_flags") or not _has_own_flags(name):
        return ""
    return after if " " in after else ""


def _own_text(name: str, word: str, after: str) -> str:
    """What single programs take for a command."""
    if word.startswith((".shell ", ".system ")):
        return word.partition(" ")[2]
    if word == "-wrapper" and name in ("gcc", "cc", "g++", "clang"):
        return after.replace(",", " ")
    return word.partition("=")[2] if name == "ssh" and "ommand=" in word else ""


def _has_own_flags(name: str) -> bool:
    return name not in word_list("looks") and not is_interpreter(name) and name not in ("sed", "gsed")


def _takes_words(name: str) -> bool:
    """Its words are names, tasks or text, as far as it is known."""
    return name in word_list("looks") or name in runners() or is_interpreter(name)


def _behind_dashes(name: str, words: list[str]) -> list[str]:
    """The words after `--`, after a verb that runs, or the first words of a program that is not known otherwise."""
    if _takes_words(name):
        return []
    found = [words.index("--") + 1] if "--" in words else []
    found += [at for at, word in enumerate(words[1:4], 2) if word in word_list("run_verbs")][:1]
    operands = list(dropwhile(lambda word: word.startswith("-"), words[1:]))
    if not found and len(operands) > 1 and operands[0] in word_list("guarded"):
        return [join_words(operands)]
    return [command for at in found for command in launched_commands(words[at:])]


def _of_github(words: list[str]) -> list[str]:
    """`gh codespace ssh -- CMD` and `gh alias set x '!CMD'`; other words are text."""
    commands = [word[1:] for word in words if word.startswith("!")]
    if "ssh" in words and "--" in words:
        commands += launched_commands(words[words.index("--") + 1 :])
    return commands


def _cmd_commands(words: list[str]) -> list[str]:
    """`cmd /c TEXT` of Windows."""
    return [_with_slashes(re.sub(r"(?i)^(?:/\w(?::\S+)?\s+)*", "", " ".join(words[1:])).strip())]


def _cmake_commands(words: list[str]) -> list[str]:
    """`cmake -E env A=1 CMD`, and its own copy, move and remove as those of the shell."""
    if words[1:2] != ["-E"] or len(words) < 3:
        return [*_option_commands("cmake", words), *_behind_dashes("cmake", words)]
    verb, rest = words[2], words[3:]
    if verb in ("env", "chdir", "time"):
        return launched_commands(rest)
    return [f"{_CMAKE_VERBS[verb]} {join_words(rest)}"] if verb in _CMAKE_VERBS and rest else []


def _powershell_commands(words: list[str]) -> list[str]:
    return powershell_commands(_powershell_text(words))


# What echo, printf, git and glab are given is text, or read elsewhere.
_CARRIERS: dict[str, Callable[[list[str]], list[str]]] = {
    **dict.fromkeys(("echo", "printf", "git", "glab"), lambda _words: []),
    **dict.fromkeys(("pwsh", "powershell"), _powershell_commands),
    "gh": _of_github, "cmd": _cmd_commands, "cmake": _cmake_commands,
}  # fmt: skip


# ── PowerShell ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Groups: 'text', "text", a separator of statements, a redirection, any other word.
_TOKEN = lazy_pattern(
    r"""'((?:[^']|'')*)'|"((?:[^"`]|`.)*)"|(\|\||&&|[;|{}()\n])|(\d?>>?)|((?:[^\s'";|{}()>&]|&(?!&))+)""", re.S
)
_STARTS = frozenset(("start-process", "saps", "start"))
_EVALUATES = frozenset(("invoke-expression", "iex"))
# Which of the files behind them they write.
_FIRST, _EACH, _LAST = slice(1), slice(None), slice(-1, None)
_WRITERS = {
    **dict.fromkeys(("set-content", "sc", "add-content", "ac", "out-file", "clear-content", "clc", "tee-object", "new-item", "ni"), _FIRST),
    **dict.fromkeys(("remove-item", "ri", "del", "erase", "rd", "move-item", "mi", "move", "rename-item", "ren", "rni"), _EACH),
    **dict.fromkeys(("copy-item", "cpi", "copy"), _LAST),
}  # fmt: skip
_START_FLAG = lazy_pattern(r"(?i)^-(?:filepath|argumentlist|args|wait|nonewwindow|passthru)$")
_PATH_FLAGS = frozenset(("-path", "-filepath", "-literalpath", "-destination"))
_TEXT_FLAG = lazy_pattern(r"(?i)^[-/](?:c|command|commandwithargs)$")
_ENCODED_FLAG = lazy_pattern(r"(?i)^[-/](?:e|ec|en|enc\w*)$")
_VALUE_FLAG = lazy_pattern(r"(?i)^[-/](?:executionpolicy|ep|ex|workingdirectory|wd|configurationname|version|file|f)$")


def powershell_commands(text: str) -> list[str]:
    """The statements of a PowerShell text as commands of the shell."""
    commands: list[str] = []
    statement: list[str] = []
    is_target = False
    for match in _TOKEN.finditer(text[:20_000]):
        single, double, separator, redirect, bare = match.groups()
        word = next((part for part in (single and single.replace("''", "'"), double, bare) if part is not None), "")
        if separator:
            commands += _powershell_statement(statement)
            statement = []
        elif is_target and not redirect:
            commands.append(_write(word))
        elif not redirect and not (bare in ("&", ".") and not statement):
            statement.append(word)
        is_target = bool(redirect)
    return [*commands, *_powershell_statement(statement)]


def _powershell_statement(words: list[str]) -> list[str]:
    # `$out = git …`: what is assigned is run.
    words = words[2:] if words[1:2] == ["="] and words[0].startswith("$") else words
    name, rest = "".join(words[:1]).lower(), words[1:]
    if name in _EVALUATES:
        return powershell_commands(" ".join(word for word in rest if not word.lower().startswith("-com")))
    if name in _STARTS:
        named = ",".join(word for word in rest if not _START_FLAG.match(word))
        return [join_words(filter(None, named.split(",")))]
    if name in _WRITERS:
        return _powershell_writes(rest, _WRITERS[name])
    return [join_words([_with_slashes(words[0]), *rest])] if words else []


def _powershell_writes(rest: list[str], written: slice) -> list[str]:
    """The files that are named by their place; where an option names the file, the others are no files."""
    before = ["", *rest]
    named = [word for flag, word in zip(before, rest, strict=False) if flag.lower() in _PATH_FLAGS]
    plain = [w for flag, w in zip(before, rest, strict=False) if not w.startswith("-") and not flag.startswith("-")]
    files = named[written]
    files += [] if files and written == _FIRST else plain[written]
    return [_write(file) for file in files]


def _write(file: str) -> str:
    return f": > {quote_word(_with_slashes(file))}"


def _powershell_text(words: list[str]) -> str:
    at = 1
    while at < len(words):
        if _TEXT_FLAG.match(words[at]):
            return " ".join(words[at + 1 :])
        if _ENCODED_FLAG.match(words[at]):
            try:
                return base64.b64decode("".join(words[at + 1 : at + 2])).decode("utf-16-le")
            except (ValueError, binascii.Error):
                return ""
        if not words[at].startswith(("-", "/")):
            return " ".join(words[at:])
        at += 2 if _VALUE_FLAG.match(words[at]) else 1
    return ""


def _with_slashes(text: str) -> str:
    return text.replace("\\", "/")


def as_powershell(command: str) -> str:
    """The command of a tool that is PowerShell itself, as the shell would start it."""
    return f"pwsh -Command {shlex.quote(command)}"

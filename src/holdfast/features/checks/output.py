"""The output of a command as text that can be searched, and who could have printed it."""

import re

from holdfast.core.shell.analysis import ShellCommand
from holdfast.core.shell.syntax import UNKNOWN

MAX_CHARACTERS = 400_000
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]")
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)

_TAME = frozenset(
    "ls mkdir rmdir rm cp mv touch chmod chown ln pwd date sleep whoami hostname uname id which type true false test wc stat "
    "basename dirname realpath readlink du df kill pkill tree find pip pip3 uv poetry cargo-add sync clear tput stty "
    "seq nproc git cd sed ps uptime free".split()
)
"""Programs whose output cannot be taken for the summary of a test runner."""
_QUIET_COVERAGE = frozenset(("report", "html", "xml", "json", "lcov", "combine", "erase"))
_LOUD_GIT = frozenset(("show", "diff", "cat-file", "grep", "blame", "archive", "log"))


def clean_output(text: str) -> str:
    """Without escape codes and overwritten progress lines. The middle of very long output is dropped."""
    if len(text) > MAX_CHARACTERS:
        half = MAX_CHARACTERS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n"))
    return text


def prints_anything(command: ShellCommand) -> bool:
    """Whether the program could print text that looks like a summary."""
    words = command.words
    name = words[0].rpartition("/")[2]
    if UNKNOWN in words[0] or (name not in _TAME and name != "coverage"):
        return True
    if name == "git":
        verb = next((word for word in words[1:] if not word.startswith("-")), "")
        oneline = "--oneline" in words or "--stat" in words
        return verb in _LOUD_GIT and not (verb in ("log", "diff", "show") and oneline)
    if name == "sed":
        return not any(word.startswith(("-i", "--in-place")) for word in words[1:])
    if name == "coverage":
        return next((word for word in words[1:] if not word.startswith("-")), "") not in _QUIET_COVERAGE
    if name in ("find",):
        return any(word.startswith("-printf") for word in words)
    return name in ("uv", "poetry") and len(words) > 1 and words[1] == "run"

"""Programs that pass text on, and how much of it they leave as it was."""

import itertools
import re

from holdfast.core.lazy import lazy_pattern

WHOLE, TAIL, LINES, REWRITTEN = "", "tail", "lines", "rewritten"

# A sed script that only chooses lines: numbers, patterns between slashes, and p, d, q, n.
_SELECT_SED = lazy_pattern(r"^(?:[\d,$ ;npq!d]|/(?:[^/\\]|\\.)*/I?)*$")
# `s/\x1b...//g`: takes the codes of colours out and leaves the text.
_STRIP_COLOURS = lazy_pattern(r"s(.)(?:\\x1[bB]|\\e|\\033|\x1b|\$\(printf[^)]*\)).*\1\1g?$")
# With these grep prints something else than the lines that match, or nothing.
_CHANGING_GREP = lazy_pattern(r"^-[a-zA-Z]*[oclLqb]|^--(only-matching|count|files-with|quiet|silent|replace|json)")
# `tail -n +2`: the number is no file.
_TAIL_FROM_START = lazy_pattern(r"^(-n)?\+")
_VALUE_FLAGS = {
    "tail": "-n -c",
    "head": "-n -c",
    "grep": "-e -f -m -A -B -C",
    "egrep": "-e -f -m -A -B -C",
    "rg": "-e -f -m -A -B -C",
    "sed": "-e -f",
    "tee": "",
    "cat": "",
}
_ALWAYS_SUCCEED = frozenset(
    "tail head cat tee sort uniq sed awk gawk tac wc cut tr nl column fold ts less more".split()
)
_REWRITERS = frozenset("cut tr wc nl column fold fmt perl jq rev paste join xxd od base64 awk gawk ts expand".split())
FILTERS = frozenset([*_ALWAYS_SUCCEED, *_REWRITERS, "grep", "egrep", "fgrep", "rg", "ag", "strings", "ansifilter"])


def classify_filter(words: list[str]) -> str | None:
    """How the text comes out: whole, its last lines, a choice of lines, or rewritten. None: no filter at all."""
    name = words[0].rpartition("/")[2]
    arguments = words[1:]
    # Without a loop over its input perl is a program like any other.
    if name not in FILTERS or (name == "perl" and not any(re.match(r"-\w*[pn]", word) for word in arguments)):
        return None
    if name in ("cat", "tee", "less", "more", "ansifilter", "strings"):
        return (
            REWRITTEN if any(a in ("-n", "-A", "-b", "-e", "-v", "-T") for a in arguments) and name == "cat" else WHOLE
        )
    if name == "tail":
        return REWRITTEN if _cuts_bytes(arguments) else TAIL
    if name in ("head", "sort", "uniq", "tac"):
        return REWRITTEN if name in ("uniq", "head") and _cuts_bytes(arguments) else LINES
    if name in ("grep", "egrep", "fgrep", "rg", "ag"):
        replaces = name == "rg" and "-r" in arguments
        return REWRITTEN if replaces or any(_CHANGING_GREP.match(a) for a in arguments) else LINES
    if name == "sed":
        return _classify_sed(arguments)
    # `awk '/x/'` prints the lines that match, `awk 'END {print}'` the last one.
    if (
        name in ("awk", "gawk")
        and len(arguments) == 1
        and re.fullmatch(r"/(?:[^/\\]|\\.)*/|END *{ *print *}", arguments[0])
    ):
        return LINES
    return REWRITTEN


def _cuts_bytes(arguments: list[str]) -> bool:
    """`-c` takes bytes of `head` and `tail`, so that a line can lose its beginning; `uniq -c` puts counts before lines."""
    return any(argument.startswith(("-c", "--bytes", "--count")) for argument in arguments)


def _classify_sed(arguments: list[str]) -> str:
    marked = [script for flag, script in itertools.pairwise(arguments) if flag == "-e"]
    scripts = marked or [a for a in arguments if not a.startswith("-")][:1]
    if len(scripts) == 1 and _STRIP_COLOURS.match(scripts[0]):
        return WHOLE
    if len(scripts) == 1 and _SELECT_SED.match(scripts[0]):
        return LINES
    return REWRITTEN


def always_succeeds(words: list[str]) -> bool:
    """Filters that end with 0 unless they are used wrongly. `grep` is not one of them."""
    return words[0].rpartition("/")[2] in _ALWAYS_SUCCEED


def filter_operands(words: list[str]) -> list[str]:
    """The files a filter is given. The pattern of `grep` and the script of `sed` are none."""
    name = words[0].rpartition("/")[2]
    takes = _VALUE_FLAGS.get(name, "").split()
    files: list[str] = []
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in takes:
            skip = True
        elif not word.startswith("-") or word == "-":
            files.append(word)
    if name in ("grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "tr", "jq", "perl") and "-e" not in words[1:]:
        files = files[1:]
    return [] if name in ("tr", "ts") else [word for word in files if not _TAIL_FROM_START.match(word)]

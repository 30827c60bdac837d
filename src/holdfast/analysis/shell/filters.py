"""Filters, and how much of their input they keep."""

import itertools
import re

from holdfast.analysis.shell.word_lists import word_list
from holdfast.core.lazy import lazy_pattern

WHOLE, TAIL, LINES, REWRITTEN = "", "tail", "lines", "rewritten"

# A sed script that only chooses lines: numbers, patterns between slashes, and p, d, q, n.
_SELECT_SED = lazy_pattern(r"^(?:[\d,$ ;npq!d]|/(?:[^/\\]|\\.)*/I?)*$")
# `s/\x1b...//g`: takes the codes of colours out and leaves the text.
_STRIP_COLOURS = lazy_pattern(r"s(.)(?:\\x1[bB]|\\e|\\033|\x1b|\$\(printf[^)]*\)).*\1\1g?$")
# `awk '/x/'` prints the lines that match, `awk 'END {print}'` the last one.
_SELECT_AWK = lazy_pattern(r"/(?:[^/\\]|\\.)*/|END *{ *print *}")
# With these grep prints something else than the lines that match, or nothing.
_CHANGING_GREP = r"^-[a-zA-Z]*[oclLqb]|^--(only-matching|count|files-with|quiet|silent|replace|json)"
# `head` and `tail` take bytes, so that a line can lose its beginning; `uniq` puts counts before lines.
_COUNTS = r"^(?:-c|--bytes|--count)"
# Program → how its output differs from its input, and the option with which it is rewritten.
_HOW: dict[str, tuple[str, str]] = {
    "cat": (WHOLE, r"^-[nAbevT]$"),
    "tail": (TAIL, _COUNTS),
    **dict.fromkeys(("tee", "less", "more", "ansifilter", "strings"), (WHOLE, "")),
    **dict.fromkeys(("head", "uniq"), (LINES, _COUNTS)),
    **dict.fromkeys(("sort", "tac"), (LINES, "")),
    **dict.fromkeys(("grep", "egrep", "fgrep", "ag"), (LINES, _CHANGING_GREP)),
    "rg": (LINES, rf"{_CHANGING_GREP}|^-r$"),
}
# `tail -n +2`: the number is no file.
_TAIL_FROM_START = lazy_pattern(r"^(-n)?\+")
_VALUE_FLAGS = {
    **dict.fromkeys(("tail", "head"), ("-n", "-c")),
    **dict.fromkeys(("grep", "egrep", "rg"), ("-e", "-f", "-m", "-A", "-B", "-C")),
    "sed": ("-e", "-f"),
}
_FIRST_IS_SCRIPT = frozenset(("grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "tr", "jq", "perl"))


def classify_filter(words: list[str]) -> str | None:
    """How the text comes out: whole, its last lines, a choice of lines, or rewritten. None: no filter at all."""
    name, arguments = words[0].rpartition("/")[2], words[1:]
    if name not in word_list("filters"):
        return None
    if name == "perl":
        # Without a loop over its input perl is a program like any other.
        return REWRITTEN if any(re.match(r"-\w*[pn]", word) for word in arguments) else None
    if name == "sed":
        return _classify_sed(arguments)
    if name in ("awk", "gawk"):
        return LINES if _SELECT_AWK.fullmatch("\n".join(arguments)) else REWRITTEN
    how, rewriting = _HOW.get(name, (REWRITTEN, ""))
    return REWRITTEN if rewriting and any(re.match(rewriting, word) for word in arguments) else how


def _classify_sed(arguments: list[str]) -> str:
    marked = [script for flag, script in itertools.pairwise(arguments) if flag == "-e"]
    scripts = marked or [a for a in arguments if not a.startswith("-")][:1]
    if len(scripts) == 1 and _STRIP_COLOURS.match(scripts[0]):
        return WHOLE
    return LINES if len(scripts) == 1 and _SELECT_SED.match(scripts[0]) else REWRITTEN


def always_succeeds(words: list[str]) -> bool:
    """Filters that end with 0 unless they are used wrongly. `grep` is not one of them."""
    return words[0].rpartition("/")[2] in word_list("always_succeed")


def filter_operands(words: list[str]) -> list[str]:
    """The files a filter is given. The pattern of `grep` and the script of `sed` are none."""
    name = words[0].rpartition("/")[2]
    if name in ("tr", "ts"):
        return []
    rest = iter(words[1:])
    files = []
    for word in rest:
        if word in _VALUE_FLAGS.get(name, ()):
            next(rest, "")
        elif word == "-" or not word.startswith("-"):
            files.append(word)
    if name in _FIRST_IS_SCRIPT and "-e" not in words[1:]:
        files = files[1:]
    return [word for word in files if not _TAIL_FROM_START.match(word)]

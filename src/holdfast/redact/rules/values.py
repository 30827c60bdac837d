"""Parts of patterns that rules share: how a value stands on a command line."""

import re

BARE = r"(?P<secret>[^\s\"'`\\|;&<>]{3,200})"
BARE_OR_QUOTED = r"(?P<q>\\{0,3}[\"'])?(?P<secret>(?(q)[^\"'\\\r\n]{3,200}|[^\s\"'`\\|;&<>]{3,200}))"
NAME_OF_PROGRAM = r"(?:[A-Z]{1,3}[a-z]+\d?|[A-Z]\d|[a-z]+\d?){1,4}"
"""`TokenV2Handler`, `onClick2Times`: words in camel case, each perhaps with a digit."""
# A separator or the end of the line ends it.
REST_OF_COMMAND = r"[^\r\n;|&]{0,200}?"


def one_of(words: tuple[str, ...]) -> str:
    return "(?:" + "|".join(map(re.escape, words)) + ")"

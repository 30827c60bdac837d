"""Parts of patterns that rules share: how a value stands on a command line."""

import re

BARE = r"(?P<secret>[^\s\"'`\\|;&<>]{3,200})"
BARE_OR_QUOTED = r"(?P<q>\\{0,3}[\"'])?(?P<secret>(?(q)[^\"'\\\r\n]{3,200}|[^\s\"'`\\|;&<>]{3,200}))"
# A separator or the end of the line ends it.
REST_OF_COMMAND = r"[^\r\n;|&]{0,200}?"


def one_of(words: tuple[str, ...]) -> str:
    return "(?:" + "|".join(map(re.escape, words)) + ")"

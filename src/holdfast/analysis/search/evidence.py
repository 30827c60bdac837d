"""Scores a chunk by its text: the query's words in order, a name where it is declared."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from holdfast.analysis.search.query import Query
from holdfast.analysis.search.tokens import find_identifiers, identifier_parts, in_order

# How much a line says for a name: declared, assigned, a heading, registered, quoted or just used.
DECLARED, ASSIGNED, HEADING, REGISTERED, QUOTED, USED = 1.0, 0.9, 0.9, 0.8, 0.65, 0.5
OTHER_CASE_IN_TEXT = 0.85
"""For a name that occurs in other letter case."""
LONGEST_LINE = 2_000
SHORTEST_RUN = 3
"""Consecutive words that are more than chance."""


class Evidence(msgspec.Struct):
    phrase: float = 0.0
    """The weighted share of the query that occurs verbatim."""
    name: float = 0.0
    """How clearly a name of the query is declared or used there; 0 if not at all."""
    line: int = -1
    """The most relevant line, from the chunk's first; -1 if none stands out."""


def phrase_share(query_words: Sequence[str], text: str, rarity: dict[str, float], least: int = SHORTEST_RUN) -> float:
    """Runs of the query's words in the text. Values in a message leave gaps, so several runs add up."""
    total = sum(rarity.get(word, 0.0) for word in query_words)
    if len(query_words) < 2 or not total:
        return 0.0
    share, longest, at = 0.0, 0, 0
    while at < len(query_words) - 1:
        length = _run_length(query_words, at, text)
        if length >= 2:
            # A pair counts half of its words, a long run nearly all: chance makes short runs.
            share += sum(rarity.get(word, 0.0) for word in query_words[at : at + length]) * (length - 1) / length
        longest = max(longest, length)
        at += max(1, length)
    whole = longest == len(query_words)
    return (
        # Undoes that discount if the whole query occurs.
        share / total * (len(query_words) / (len(query_words) - 1) if whole else 1.0)
        if longest >= least or whole
        else 0.0
    )


def _may_hold_run(words: Sequence[str], low: str, least: int) -> bool:
    """Cheaper than searching: so many consecutive words of the query occur somewhere in the text."""
    row = 0
    for word in words:
        row = row + 1 if word in low else 0
        if row >= least:
            return True
    return row == len(words)


def _run_length(words: Sequence[str], at: int, text: str) -> int:
    length = 1
    while at + length < len(words) and f" {' '.join(words[at : at + length + 1])} " in text:
        length += 1
    return length


def flatten_words(text: str) -> str:
    """Words in order, with a space between and at both ends."""
    return f" {' '.join(in_order(text))} "


# `getOption('no-audit')` reads what another place declares; an environment variable is declared nowhere else.
_READS = re.compile(
    r"(?i)(?!\w*env)(?:get|has|is|read|fetch|find|lookup|check|isset|contains|exists|remove|unset|delete)\w*[(\[]"
)


@lru_cache(maxsize=256)
def _name_patterns(name: str) -> tuple[re.Pattern[str], ...]:
    # Signs around a name (`--flag`, `/route`) may be missing in the text.
    bare = name.strip("-./:@#$")
    escaped = rf"(?<![\w$]){re.escape(bare)}(?![\w$])"
    quoted = rf"[\"'`][-./:@#$]{{0,2}}{re.escape(bare)}[\"'`?/:]"
    # Anywhere; after a declaration keyword; left of : = => or {; alone in its line; as the first argument of a call or
    # key; in quotes.
    return (
        re.compile(escaped, re.IGNORECASE),
        re.compile(
            r"(?i)(?:\b(?:const|let|var|def|func|function|fn|class|struct|interface|trait|enum|static|final|type|val|module|define|"
            rf"table|table if not exists|export|readonly|property|env|arg)\b[^=(;]{{0,60}}?[\"'`]?{escaped})"
            # Tables of migrations: createTable('users'), <createTable tableName="users">.
            rf"|\bcreate_?table\b[^;]{{0,30}}?[\"'`]{escaped}[\"'`]"
        ),
        re.compile(
            rf"(?i)^\s*(?:[-*|] +)?[\"'`]?[-.$#/]{{0,2}}{escaped}[\"'`]?\s*(?:\([^)]*\)\s*)?(?::|=(?!=)|=>|\{{)"
        ),
        re.compile(
            rf"(?i)^\s*(?:#+ |\.\. |[*-] )?[*`\"]*[-./$]{{0,2}}{escaped}[`*:\"]*(?:\s+\([^)]*\))?\s*$"
            # A heading that begins with it: "### `name=<url>`", "## name and other".
            rf"|^#+ +[\[*`~\"]*[-./$]{{0,2}}{escaped}"
        ),
        re.compile(rf"(?i)(?:\w*[\w\])])[(\[]\s*{quoted}"),
        re.compile(rf"(?i){quoted}"),
    )


def name_in_line(name: str, line: str) -> float:
    """0 if it is not in the line, else how clearly it is declared there."""
    anywhere, declared, assigned, alone, registered, quoted = _name_patterns(name)
    if not anywhere.search(line):
        return 0.0
    worth = USED
    for pattern, value in (
        (declared, DECLARED), (assigned, ASSIGNED), (alone, HEADING), (registered, REGISTERED), (quoted, QUOTED)
    ):  # fmt: skip
        if (match := pattern.search(line)) and not (pattern is registered and _READS.match(match[0])):
            worth = value
            break
    return worth if name.strip("-./:@#$") in line else worth * OTHER_CASE_IN_TEXT


def name_in_lines(name: str, lines: Sequence[str]) -> tuple[float, int]:
    """(how clearly, in which line)"""
    # A plain search first: the patterns run only on lines with the name.
    low = name.strip("-./:@#$").lower()
    best, where = 0.0, -1
    for number, line in enumerate(lines):
        if low in line.lower():
            value = name_in_line(name, line[:LONGEST_LINE])
            if value > best:
                best, where = value, number
    return best, where


MANY_NAMES, FEW_NAMES = 10, 2
FEWEST_LISTED = 6
# For the shape of a line: words and strings are replaced by one letter each.
_WORDS, _STRINGS = re.compile(r"\w+"), re.compile(r"[\"'`].*?[\"'`]")


def listed_names(words: Sequence[str], lines: Sequence[str]) -> float:
    """From 0 to 1: how many different names (`MailNotifier`, `SmsNotifier`) contain one word of the query."""
    names = {name for name in find_identifiers("\n".join(lines)) if len(identifier_parts(name)) > 1}
    most = 0
    for word in words:
        if len(word) > 3:
            # At most three letters are cut off, so that "notifiers" matches `Notifier`.
            stem = word[: max(4, len(word) - 3)]
            most = max(most, sum(any(part.startswith(stem) for part in identifier_parts(name)) for name in names))
    return min(1.0, max(0, most - FEW_NAMES) / (MANY_NAMES - FEW_NAMES))


def alike_lines(lines: Sequence[str]) -> float:
    """From 0 to 1: the share of lines with the same structure, as in a list or table."""
    shapes = Counter(_STRINGS.sub("S", _WORDS.sub("w", line)).strip() for line in lines if line.strip())
    if sum(shapes.values()) < FEWEST_LISTED:
        return 0.0
    shape, count = shapes.most_common(1)[0]
    # A shape without structure (a brace, one word) is no list.
    return count / sum(shapes.values()) if shape not in ("}", "w", "") else 0.0


def examine_lines(query: Query, names: Sequence[str], lines: Sequence[str], rarity: dict[str, float]) -> Evidence:
    evidence = Evidence()
    for name in names:
        value, where = name_in_lines(name, lines)
        if value > evidence.name:
            evidence.name, evidence.line = value, where
    # A pasted page as a query must not cost a page's time.
    words = in_order(query.text)[:64]
    if len(words) > 1:
        least = 2 if query.is_name or len(words) == 2 else SHORTEST_RUN
        text = "\n".join(lines)
        if _may_hold_run(words, text.lower(), least):
            evidence.phrase = phrase_share(words, flatten_words(text), rarity, least)
    return evidence

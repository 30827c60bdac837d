"""A piece of a file that is found and shown as one thing; prose is cut at headings, code without a grammar at lines."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

# A piece of a file that is found and shown as one thing, and the joining of pieces that are too small for that.

# A chunk beyond either limit is cut into overlapping windows; all in lines but the second.
LONGEST_LINES = 200
LONGEST_CHARS = 16_000
WINDOW, OVERLAP = 60, 10

# Brackets and rules of dashes alone are not worth a chunk.
_SAYS_SOMETHING = re.compile(r"\w")


class Definition(msgspec.Struct, frozen=True):
    """Lines count from 1, both ends included. `symbol` is dotted (`Class.method`)."""

    kind: str
    symbol: str
    start: int
    end: int

    @property
    def name(self) -> str:
        return self.symbol.rpartition(".")[2]


class Chunk(msgspec.Struct, frozen=True):
    """Lines count from 1, both ends included. `symbol` is dotted, empty where there is none."""

    kind: str
    symbol: str
    start: int
    end: int
    text: str
    definitions: tuple[Definition, ...] = ()
    """What is defined in it; a definition that goes on in the next chunk is named in its first one."""

    @property
    def lines(self) -> int:
        return self.end - self.start + 1

    @property
    def name(self) -> str:
        return self.symbol.rpartition(".")[2]


def of_lines(lines: Sequence[str], start: int, end: int, kind: str, symbol: str) -> Iterator[Chunk]:
    """Rows start..end (from 0, end excluded) as one chunk, or as overlapping windows where that were too long."""
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    if start == end:
        return
    text = "\n".join(lines[start:end])
    if end - start <= LONGEST_LINES and len(text) <= LONGEST_CHARS:
        if _SAYS_SOMETHING.search(text):
            yield Chunk(kind, symbol, start + 1, end, text)
        return
    yield from window_chunks(lines, start, end, kind, symbol)


def named_chunks(chunks: Iterable[Chunk], kind: str, symbol: str, start: int, end: int) -> Iterator[Chunk]:
    """The first of the chunks says that all of them are one definition."""
    named: tuple[Definition, ...] = (Definition(kind, symbol, start + 1, end),) if symbol else ()
    for chunk in chunks:
        yield msgspec.structs.replace(chunk, definitions=named)
        named = ()


def window_chunks(lines: Sequence[str], start: int, end: int, kind: str, symbol: str = "") -> Iterator[Chunk]:
    while start < end:
        stop = _window_end(lines, start, end)
        text = "\n".join(lines[start:stop])
        if _SAYS_SOMETHING.search(text):
            yield Chunk(kind, symbol, start + 1, stop, text)
        if stop == end:
            return
        # Each step goes on by at least a line, also where one line fills a window.
        start = max(start + 1, stop - OVERLAP)


def _window_end(lines: Sequence[str], start: int, end: int) -> int:
    """At most WINDOW rows and LONGEST_CHARS characters, at least one row; a short rest is taken along."""
    stop = min(end, start + WINDOW)
    if end - stop <= OVERLAP:
        stop = end
    size = 0
    for row in range(start, stop):
        size += len(lines[row]) + 1
        if size > LONGEST_CHARS:
            return max(start + 1, row)
    return stop


SMALL_LINES, TINY_LINES = 5, 3
JOINED_LINES, ROOMY_LINES = 40, 150
"""How long a chunk joined of small ones may get, and one that takes in a tiny neighbour."""


def join_small(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Accessors, one-line functions and the head of a class say little alone: they become one chunk with their neighbours."""
    joined: list[Chunk] = []
    for chunk in chunks:
        if joined and _both_small(joined[-1], chunk):
            joined[-1] = _join_chunks(joined[-1], chunk)
        else:
            joined.append(chunk)
    return _take_in_tiny(joined)


def _both_small(above: Chunk, below: Chunk) -> bool:
    # A chunk joined before may be longer than small and still take in another.
    small = below.lines <= SMALL_LINES and (above.lines <= SMALL_LINES or len(above.definitions) > 1)
    return small and _same_scope(above, below) and below.end - above.start < JOINED_LINES


def _take_in_tiny(chunks: Sequence[Chunk]) -> list[Chunk]:
    merged: list[Chunk] = []
    for chunk in chunks:
        if merged and min(merged[-1].lines, chunk.lines) <= TINY_LINES and _can_join(merged[-1], chunk):
            merged[-1] = _join_chunks(merged[-1], chunk)
        else:
            merged.append(chunk)
    return merged


def _can_join(above: Chunk, below: Chunk) -> bool:
    return _same_scope(above, below) and below.end - above.start < ROOMY_LINES


def _same_scope(above: Chunk, below: Chunk) -> bool:
    """Both at the top of the file, or one inside what the other is inside of; windows of one text overlap and stay apart."""
    if below.start <= above.end or "section" in (above.kind, below.kind):
        return False
    first, second = above.symbol.partition(".")[0], below.symbol.partition(".")[0]
    nested = "." in above.symbol or "." in below.symbol or "class" in (above.kind, below.kind)
    return first == second or not nested or not (first and second)


def _join_chunks(above: Chunk, below: Chunk) -> Chunk:
    """Named for the longer of the two, or for what both are in."""
    blank = "\n" * (below.start - above.end)
    longer = above if above.lines >= below.lines else below
    shared = _shared_symbol(above.symbol, below.symbol)
    # Where neither part is of some length, the class around both names them.
    kind, symbol = (longer.kind, longer.symbol) if longer.lines > 2 * TINY_LINES or not shared else ("class", shared)
    return Chunk(
        kind, symbol, above.start, below.end, above.text + blank + below.text, above.definitions + below.definitions
    )


def _shared_symbol(one: str, other: str) -> str:
    shared: list[str] = []
    for left, right in zip(one.split("."), other.split("."), strict=False):
        if left != right:
            break
        shared.append(left)
    return ".".join(shared)


def uncovered_spans(taken: Iterable[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """What of start..end no one took; `taken` is in order."""
    for begin, stop in taken:
        if begin > start:
            yield start, begin
        start = max(start, stop)
    if start < end:
        yield start, end


# For languages without a grammar: a line that begins a definition begins a chunk, as far as the indentation says.

# Indentation, modifiers, a keyword of some language, SQL's "or replace table", then the name.
_DEFINITION = re.compile(
    r"^(?P<indent>\s*)(?:@\w+\s+)?(?:(?:export|default|public|private|protected|internal|open|override|static|final|"
    r"abstract|sealed|data|inline|suspend|async|pub|local|virtual|case|implicit|lazy|const)\s+)*"
    r"(?P<word>fun|func|function|def|defp|defmodule|defmacro|class|struct|interface|trait|enum|module|object|protocol|"
    r"extension|actor|type|sub|proc|procedure|method|message|service|rpc|resource|data|variable|instance|create)\s+"
    r"(?:or\s+replace\s+)?(?:table|view|function|procedure|trigger|index)?\s*(?:if\s+not\s+exists\s+)?"
    r"[\"'`]?(?P<name>[A-Za-z_][\w.:$-]*)",
    re.IGNORECASE,
)
WITH_DEFINITIONS = frozenset(
    [
        "kotlin",
        "swift",
        "scala",
        "lua",
        "perl",
        "elixir",
        "erlang",
        "haskell",
        "ocaml",
        "dart",
        "zig",
        "nim",
        "julia",
        "r",
        "groovy",
        "powershell",
        "sql",
        "vue",
        "svelte",
        "protobuf",
        "graphql",
        "terraform",
        "python",
        "javascript",
        "typescript",
        "tsx",
        "go",
        "rust",
        "java",
        "c",
        "cpp",
        "c-sharp",
        "ruby",
        "php",
        "bash",
    ]
)
FUNCTIONS = frozenset(
    ["fun", "func", "function", "def", "defp", "defmacro", "sub", "proc", "procedure", "method", "rpc"]
)


def cut_outline(lines: Sequence[str], language: str) -> list[Chunk]:
    return list(_outline_chunks(lines)) if language in WITH_DEFINITIONS else []


def _outline_chunks(lines: Sequence[str]) -> Iterator[Chunk]:
    definitions = [
        # A longer line is data; the pattern would only cost time there.
        (row, match)
        for row, line in enumerate(lines)
        if len(line) < 500 and (match := _DEFINITION.match(line))
    ]
    if not definitions:
        return
    outermost = min(len(match["indent"]) for _, match in definitions)
    # Members one level below the outermost are chunks of their own, deeper ones are not.
    outer_definitions = [(row, match) for row, match in definitions if len(match["indent"]) <= outermost + 4]
    spans = [(_with_comments(lines, row), match) for row, match in outer_definitions]
    ends = [start for start, _ in spans[1:]] + [len(lines)]
    for start, end in uncovered_spans([(spans[0][0], len(lines))], 0, len(lines)):
        yield from of_lines(lines, start, end, "module", "")
    for (start, match), end in zip(spans, ends, strict=True):
        kind = "function" if match["word"].lower() in FUNCTIONS else "class"
        symbol = match["name"].strip(".")
        yield from named_chunks(of_lines(lines, start, max(start, end), kind, symbol), kind, symbol, start, end)


def _with_comments(lines: Sequence[str], row: int) -> int:
    while row > 0 and lines[row - 1].lstrip().startswith(("//", "#", "--", "/*", "*", "@", ";;", "%%")):
        row -= 1
    return row


# Prose is cut at its headings: `# …` of Markdown, underlined lines of reStructuredText and plain text.

_MARKDOWN = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
# Three or more of the same sign, and nothing else.
_UNDERLINE = re.compile(r"^([=\-~`^\"'+*#<>_.:])\1{2,}\s*$")
LONGEST_TITLE = 120

Heading = tuple[int, int, str]
"""(row, level, title)"""


def cut_prose(lines: Sequence[str], language: str) -> Iterator[Chunk]:
    headings = list(_markdown_headings(lines) if language == "markdown" else _underlined_headings(lines))
    starts = [row for row, _, _ in headings]
    if not starts or starts[0] > 0:
        yield from of_lines(lines, 0, starts[0] if starts else len(lines), "section", "")
    above: list[tuple[int, str]] = []
    for number, (row, level, title) in enumerate(headings):
        # Headings of the same or a deeper level end.
        above = [*(a for a in above if a[0] < level), (level, title)]
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        # At most three levels, so that a name stays readable.
        symbol = " > ".join(title for _, title in above[-3:])
        yield from named_chunks(of_lines(lines, row, end, "section", symbol), "section", symbol, row, end)


def _markdown_headings(lines: Sequence[str]) -> Iterator[Heading]:
    fenced = False
    for row, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := _MARKDOWN.match(line)):
            yield row, len(match[1]), match[2][:LONGEST_TITLE]


def _underlined_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Levels in the order their signs appear, as reStructuredText has it."""
    levels: dict[str, int] = {}
    for row in range(len(lines) - 1):
        title = lines[row].rstrip()
        below = _UNDERLINE.match(lines[row + 1])
        # Indented lines above a rule are code or tables.
        if below and title and not _UNDERLINE.match(title) and not title[0].isspace() and len(title) <= LONGEST_TITLE:
            yield row, levels.setdefault(below[1], len(levels) + 1), title

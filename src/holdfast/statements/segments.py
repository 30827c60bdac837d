"""A prompt → the sentences its author wrote himself. Pasted logs, code, quotes and templates are left out."""

import re
from collections.abc import Iterator

import msgspec

from holdfast.core.text import INSTEAD
from holdfast.statements.cues import IMPERATIVES

LONGEST_PROMPT = 8_000
"""Of a longer prompt only half of this at each end is looked at: what lies between was pasted."""
MOST_SEGMENTS = 40
LONGEST_SEGMENT = 600
# With more `<` than this the text is a page, and `_TAGGED` would take quadratic time.
MOST_TAGS = 200
# From Unicode's private use area: no prompt has them for a meaning of its own.
QUOTE_OPEN, QUOTE_CLOSE = "\ue000", "\ue001"
"""A quotation of some length stands in the text as a number between these."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
# An element with its content, as agents and editors put them into prompts.
_TAGGED = re.compile(r"<(\w[\w-]*)\b[^>]*>.*?</\1\s*>", re.DOTALL)
# English, typographic, German, French and Japanese quotation marks, on one line.
_QUOTATION = re.compile(
    r"\"([^\"\n]{2,600})\"|“([^”\n]{2,600})”|„([^“”\n]{2,600})[“”]|«([^»\n]{2,600})»|「([^」\n]{2,600})」"
)
# Beginnings of lines that programs print: logs, tracebacks, diffs, test results, compiler messages.
_LOG_LINE = re.compile(
    r"^\s*(?:>|\||\$ |[#%] \S+$|at \S+\(|File \"|Traceback|\d+\s*[|:]\s|</?\w|\{|\}|\[\d|@@|diff --git|index "
    r"[0-9a-f]{7}"
    r"|(?:<{7}|={7}|>{7})|-->|CONFLICT|FAIL(?:ED)?\b|PASS(?:ED)?\s|npm (?:ERR|WARN)|make(?:\[\d\])?: \*\*\*|"
    r"(?:fatal|panic|remote|ld|gcc|clang): "
    r"|(?:[A-Za-z_.]*(?:Error|Exception|Warning))\b\s*(?::|in )|(?:error|warning|Error|ERROR|WARN|INFO|DEBUG|"
    r"WARNING)\b(?:\[|\(|:\s| in |\s+\d|\s+\[)"
    r"|[EWI] \(\d+\)|thread '|goroutine |\d{4}-\d\d-\d\d[T ]\d\d:|\d\d:\d\d:\d\d|\d+ (?:failed|passed|skipped)\b"
    # A clock with seconds near the start; lines of glog, pytest, compose, nginx and compilers that number their errors.
    r"|.{1,30}\b\d\d:\d\d:\d\d\b|[EWIF]\d{4} |E {2,}|[\w-]+ +\| |\d{1,3}(?:\.\d{1,3}){3} - |(?:error|warning) [A-Z]+\d+:"
    r"|\[(?:error|warn(?:ing)?|info|debug|ERROR|WARN(?:ING)?|INFO|DEBUG)\]"
    r"|[-*] \[[ x]\]|[\w./-]+\.\w{1,5}:\d+(?::\d+)?:?\s|exit code \d|^\s{4,}\S)"
)
_ERROR_TEXT = re.compile(
    r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure|NotAvailable|Fault)\b(?:\(|:|"
    r" in | at )|[\w.]+\.[A-Z]\w+: "
)
"""The words of a program in the middle of a line."""
# A plus or minus that is no bullet and begins no sentence of words.
_DIFF_LINE = re.compile(r"^[+-](?!\s*-|\s+[a-z]+ [a-z]+ [a-z]+)")
# "Anna: …"; only where several lines look so (`_own_lines`).
_CHAT_LINE = re.compile(r"^\s*[A-Za-zÀ-ÿ]{2,15}: \S")
# Headings of tickets and templates: what stands under them was pasted.
_HEADING = re.compile(
    r"^\s*#{2,6} |^\s*(?:acceptance(?: criteria)?|steps to reproduce|expected(?: behaviou?r)?)\s*:", re.IGNORECASE
)
# "translate this: …": what follows the colon is material, not the user's own words.
_TEXT_TASK = re.compile(
    r"\b(?:translate|proofread|summari[sz]e|rewrite|rephrase|paraphrase|reply to|turn th\w+ \w+ into|commit "
    r"message|bullet points"
    r"|übersetz\w*|formulier\w*|traduce|traduis|resume|resuma|traduz\w*)\b[^:\n]{0,60}:\s",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r"^(?![^:\n]{0,60}\b(?:i|we|ich|wir|je|yo|eu|я|мы)\b(?:'ve| have| had| already| told you)* (?:said|say|wrote|asked|"
    r"sagte|dije|ai dit|disse|говорил)\b)[^:\n]{0,80}(?:\b(?:says?|said|writes?|wrote|reads|states|claims|"
    r"asks|asked|sagt|schreibt|steht|dice|dit|écrit|diz|пишет|говорит)\b[^:\n]{0,40}|"
    r"\b(?:from|in|out of|aus|von|del?|du|из) (?:the |a |an |his |her |their |dem |der |el |la |le )?"
    r"(?:\w+ )?(?:ticket|issue|review|mail|e-?mail|docs?|documentation|readme|wiki|comment|thread|article|blog|spec|"
    r"tutorial|chat|slack|jira)\b[^:\n]{0,20}|说|写道|曰く|と書いて\w{0,6})\s*[:：]\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
"""Announces the words of somebody else: what follows, up to a blank line or a line of another shape, is quoted."""
# The end of a sentence, but not after e.g., i.e., vs., etc., z.B. or an ellipsis; line ends;
# and before "by the way" and its like, which begin another subject.
_BOUNDARY = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)(?<!z\.B\.)(?<! \.)(?<!\.\.)[\"')\]]*\s+(?!\.)"
    r"|\n+|(?<=[。！？])"
    r"|[,;.]?\s+(?=(?:and |oh,? |und |ach,? |et |y |e )*(?:by the way|btw|while i think of it|one more thing|"
    r"fyi|ach und|übrigens"
    r"|por cierto|au fait|aliás|a propósito|кстати)\b)"
    r"|,?\s+(?=(?:oh|ach) (?:and|und|ja)\b)",
    re.IGNORECASE,
)
# A bullet, a number or a bold label at the start of a line.
_BULLET = re.compile(r"^\s*(?:[-*•+]|\(?\d{1,2}[.):]|\*\*[^*\n]{1,40}\*\*\s*:?)\s+|\*\*")


class Segment(msgspec.Struct, frozen=True):
    """One sentence with where it stood: `index` of `total`, and whether it was glued to a pasted block."""

    text: str
    index: int
    total: int
    beside_paste: bool = False
    bullet: bool = False


class OwnText(msgspec.Struct, frozen=True):
    segments: tuple[Segment, ...]
    quotations: tuple[str, ...]
    pasted: bool


def split_prompt(prompt: str) -> OwnText:
    """Bounded whatever came; never raises."""
    text = (
        prompt
        if len(prompt) <= LONGEST_PROMPT
        else f"{prompt[: LONGEST_PROMPT // 2]}\n{prompt[-LONGEST_PROMPT // 2 :]}"
    )
    # A prompt must not bring marks of its own: they would be replaced by other quotations.
    text = text.replace(QUOTE_OPEN, " ").replace(QUOTE_CLOSE, " ")
    bare = _FENCE.sub("\n\n", text)
    bare = _TAGGED.sub("\n", bare) if bare.count("<") <= MOST_TAGS else ""
    own_lines, pasted = _own_lines(bare)
    masked, quotations = _mask_quotations("\n".join(own_lines))
    pieces = list(_sentence_pieces(masked))[:MOST_SEGMENTS]
    # Pasted text without a blank line between: the first sentence may belong to it.
    beside = pasted and "\n\n" not in bare.strip()
    segments = tuple(
        Segment(piece, index, len(pieces), beside and index == 0, bullet)
        for index, (piece, bullet) in enumerate(pieces)
    )
    return OwnText(segments, tuple(quotations), pasted or bare != text)


def split_sentences(text: str) -> list[str]:
    """Every sentence, whoever wrote it and wherever it was pasted from."""
    return [piece for piece, _ in _sentence_pieces(text[:LONGEST_PROMPT])][:MOST_SEGMENTS]


def restore_quotations(text: str, quotations: tuple[str, ...]) -> str:
    for number, words in enumerate(quotations):
        text = text.replace(f"{QUOTE_OPEN}{number}{QUOTE_CLOSE}", words)
    return text


def _own_lines(text: str) -> tuple[list[str], bool]:
    lines = text.split("\n")
    diff = (
        any(line.startswith(("diff --git", "@@ ")) for line in lines)
        # A single such line may be a list; two are taken for a diff.
        or sum(bool(_DIFF_LINE.match(x)) for x in lines) > 1
    )
    chat = sum(bool(_CHAT_LINE.match(line)) for line in lines) > 1
    last_heading = max((n for n, line in enumerate(lines) if _HEADING.match(line)), default=-1)
    own_lines: list[str] = []
    pasted = False
    # Everything up to the blank line below the last heading belongs to the template.
    until_blank = last_heading >= 0
    quoted = _quoted_lines(lines)
    for number, line in enumerate(lines):
        if until_blank and number > last_heading and not line.strip():
            until_blank = False
        drop = (
            until_blank
            or number in quoted
            or _LOG_LINE.match(line)
            or (diff and _DIFF_LINE.match(line))
            or (chat and _CHAT_LINE.match(line))
        )
        if drop and line.strip():
            pasted = True
            # An empty line instead keeps sentences before and after it apart.
            own_lines.append("")
        elif task := _TEXT_TASK.search(line):
            own_lines.append(line[: task.end()])
            break
        else:
            own_lines.append(line)
    return own_lines, pasted


def _quoted_lines(lines: list[str]) -> set[int]:
    """Numbers of the lines that repeat somebody else: the announcing one, and the list below it."""
    quoted: set[int] = set()
    listing = False
    for number, line in enumerate(lines):
        match = _ATTRIBUTION.match(line)
        # An announcement with nothing behind its colon quotes the list below it.
        listing = (match is not None and not match["rest"]) or (listing and bool(_BULLET.match(line)))
        if match or listing:
            quoted.add(number)
    return quoted


def _mask_quotations(text: str) -> tuple[str, list[str]]:
    quotations: list[str] = []

    def mask(match: re.Match[str]) -> str:
        words = match.group(0)
        # Short quotations are names of things and stay in the sentence.
        if len(words.split()) < 4 and not _is_long_cjk(words):
            return words
        quotations.append(words)
        return f"{QUOTE_OPEN}{len(quotations) - 1}{QUOTE_CLOSE}"

    return _QUOTATION.sub(mask, text), quotations


def _is_long_cjk(words: str) -> bool:
    return sum(char > "\u2e80" for char in words) >= 8


def _sentence_pieces(text: str) -> Iterator[tuple[str, bool]]:
    for piece in _BOUNDARY.split(text):
        if not piece or not piece.strip():
            continue
        words = " ".join(piece.split())
        plain = _BULLET.sub("", words).strip()
        if (
            plain
            # A sentence from which words in `<private>` were taken out is not remembered.
            and INSTEAD not in plain
            and not _ERROR_TEXT.match(plain)
            and any(char.isalnum() or char == QUOTE_OPEN for char in plain)
        ):
            yield plain[:LONGEST_SEGMENT], plain != words


# Cutting a sentence: a task that hangs on a lasting statement is taken off, an introduction is left out.

LEAST_WORDS = 3
_ALSO_LASTING = frozenset("use keep ask let go do call avoid stick run set leave see think say".split())
"""Verbs with which a lasting wish begins as often as a task does."""
_TASK_VERBS = "|".join(verb for verb in IMPERATIVES.split("|") if verb not in _ALSO_LASTING)
_LASTING_WORD = re.compile(
    r"\b(?:always|never|every|each|all|any|must|only|instead|everywhere|from now on|in future|whenever|when "
    r"you|before you)\b",
    re.IGNORECASE,
)
# What joins a task to the statement before it.
_GLUE = r"(?:[,;]\s*(?:so|and|then|please|also|but)?|\s+(?:so|please))\s+(?:then |now |please |also |just )*"
# "…, so add a test": a task at the end of a statement, up to the end of the sentence.
_TAIL_TASK = re.compile(
    rf"{_GLUE}(?:{_TASK_VERBS})\b(?! (?:is|are|was)\b).*$"
    r"|[,;]? (?:so|also) (?:lösch|leg|mach|bau|nimm|schreib|ändere|entfern)\w*\b.*$|, nimm für .*$",
    re.IGNORECASE,
)
_ASKING = r"(?:please |pls |can you |could you |can u |now |then |ok |yes |lgtm[.,]? )*"
# "fix the header, and …": a task before a statement of at least three words.
_HEAD_TASK = re.compile(
    rf"^{_ASKING}(?:{_TASK_VERBS}|do|set|run|leave)\b(?:(?!\b(?:that|which)\b)[^,;]){{3,120}}?"
    r"[,;] (?:and|but|oh and) (?=\S+ \S+ \S+)",
    re.IGNORECASE,
)
# Interjections, then a phrase that announces a statement ("please remember that", "btw").
_INTRODUCTION = re.compile(
    r"^(?:(?:(?:no+(?: no)*|nope)[,.:!]+|(?:ok(?:ay)?|yes|yeah|hey|hi|hm+|ah|oh|ach|and|und|but|so|well|actually|"
    r"wrong|please|pls|sorry|also|again|ojo|ach ja|y|et)[,.:!]*)\s+)*"
    r"(?:(?:(?:please |pls |bitte )?(?:remember|note|keep in mind|be aware|bear in mind|don't forget|know)(?: "
    r"that|:|,)?|by the way|btw|fyi|for the (?:record|future)|for future reference|"
    r"just so you know|so you know(?: who is who)?|one (?:more )?thing(?: for (?:the future|later|the next "
    r"time))?|as (?:per|of) [^,:]{3,30}|in general|as a rule|going forward|while i think of it|"
    r"merk dir|wichtig für später|übrigens|por cierto|au fait|кстати|ちなみに|以后|be careful with|careful with|be "
    r"careful|careful|beware|watch out|important(?: for later)?|"
    r"we (?:all )?agreed (?:in the team )?that|if you wonder about [^,]{3,40}|i told you before|ok final word "
    r"on this|and then sth general [^:]{0,60})\b[,:]*\s*)?",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<head>[^:]{2,110}?):\s+(?P<rest>\S.*)$", re.DOTALL)
# Words before a colon that announce something rather than being part of it.
_HEAD_WORD = re.compile(
    r"\b(?:notes?|rules?|remark|thing|things|future|later|done|decided|decision|outcome|result|meeting|spike|"
    r"vote|call|explain|background|context|setup|say|this|him|her|them|entschieden|before|general|why|reason|"
    r"4|\d)\b",
    re.IGNORECASE,
)


def cut_clauses(text: str) -> list[str]:
    """One or two or three parts; together they are the sentence."""
    parts: list[str] = []
    # "run every test twice, and …" looks like a task but is a rule.
    if (head := _HEAD_TASK.match(text)) and not _LASTING_WORD.search(head.group(0)):
        parts.append(head.group(0).rstrip(" ,;"))
        text = text[head.end() :]
    tail = _TAIL_TASK.search(text)
    if tail and _count_words(text[: tail.start()]) >= LEAST_WORDS and not _LASTING_WORD.search(tail.group(0)):
        return [*parts, text[: tail.start()].strip(), tail.group(0).lstrip(" ,;")]
    return [*parts, text]


def shorten_to_quote(text: str) -> str:
    """Without its introduction, as far as enough is left."""
    bare = text[match.end() :] if (match := _INTRODUCTION.match(text)) else text
    colon = _COLON.match(bare)
    if (
        colon
        and _count_words(colon["rest"]) >= LEAST_WORDS
        and (_HEAD_WORD.search(colon["head"]) or _count_words(colon["head"]) > 3)
    ):
        bare = colon["rest"]
    bare = bare.strip(" ,;:-")
    return (
        # Where too little would be left, the sentence stays as it was.
        bare if bare and (_count_words(bare) >= LEAST_WORDS or _count_words(text) < LEAST_WORDS + 2) else text.strip()
    )


def _count_words(text: str) -> int:
    # Two CJK characters count as about one word.
    return len(text.split()) + sum(char > "\u2e80" for char in text) // 2

"""One pass over a text: an Aho–Corasick automaton finds candidates, and only those are checked."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from holdfast.redact import assignment, blocks, headers, judge, views
from holdfast.redact.checks import CHECKS
from holdfast.redact.rule import NameRule, PlaceRule, Span, TokenRule
from holdfast.redact.rules.business import BUSINESS_TOKENS
from holdfast.redact.rules.cloud import CLOUD_TOKENS
from holdfast.redact.rules.development import DEVELOPMENT_TOKENS
from holdfast.redact.rules.keys import KEY_TOKENS
from holdfast.redact.rules.models import MODEL_TOKENS
from holdfast.redact.rules.names import NAME_RULES
from holdfast.redact.rules.places import PLACE_RULES
from holdfast.redact.rules.services import SERVICE_TOKENS
from holdfast.redact.shape import Shape, parse_shape

TOKEN_RULES = (*MODEL_TOKENS, *DEVELOPMENT_TOKENS, *CLOUD_TOKENS, *BUSINESS_TOKENS, *SERVICE_TOKENS, *KEY_TOKENS)

Finder = Callable[[bytes, int, int, bool], "list[Span] | Span | None"]
"""(text, start and end of the anchor, whether the text is undecoded JSON) → what to remove."""

_COLOUR = re.compile(rb"\[[0-9;]{0,12}m$")
_LONGEST = 8192
_MEMO_AFTER = 400
_BEFORE, _AFTER = 48, 64


class Scanner:
    """Finds the spans of secrets in bytes. `names` are further names whose values are secret."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        table = _anchor_table([name for name in names if name])
        self._finders = [tuple(finders) for finders in table.values()]
        self._openings = tuple(anchor[1:].encode() for anchor in table if anchor[0] == "\n")
        self._escapes = len(table)
        self._percents = self._escapes + len(_escape_marks())
        self._encoded = self._percents + len(views.PERCENT_MARKS)
        anchors = (*table, *_escape_marks(), *views.PERCENT_MARKS, *views.base64_marks())
        self._automaton = BytesAhoCorasick(
            [anchor.encode() for anchor in anchors], matchkind=MatchKind.Standard, implementation=Implementation.DFA
        )

    def find(self, text: bytes, raw: bool = False, depth: int = 2) -> list[Span]:
        """The spans in order, without overlap. `raw`: undecoded JSON, where too much is found rather than too little.
        `depth`: how many spellings within one another are read."""
        hits = self._automaton.find_matches_as_indexes(text, overlapping=True)
        if not raw and text.startswith(self._openings):
            hits[:0] = self._hits_at_start(text)
        if not hits:
            return []
        plain = self._escapes
        found = self._check([hit for hit in hits if hit[0] < plain], text, raw)
        if depth and not (raw and found):
            found += self._find_spelt([hit for hit in hits if hit[0] >= plain], text, raw, depth - 1)
        if found and not raw:
            found = [_extend(text, span) for span in found]
        return join_spans(found) if len(found) > 1 else found

    def _must_decode(self, hits: list[tuple[int, int, int]]) -> bool:
        """Names in other scripts and dumps can only be read in decoded text."""
        first = self._escapes + len(views.ESCAPE_MARKS) - 2
        return any(first <= hit[0] < self._percents for hit in hits)

    def _hits_at_start(self, text: bytes) -> list[tuple[int, int, int]]:
        """Short prefixes are searched for with what stands before them: at the start of a text nothing does."""
        got = self._automaton.find_matches_as_indexes(b"\n" + text[:80], overlapping=True)
        return [(number, 0, end - 1) for number, start, end in got if start == 0 and end > 1 and number < self._escapes]

    def _check(self, hits: list[tuple[int, int, int]], text: bytes, raw: bool) -> list[Span]:
        found: list[Span] = []
        fruitless: set[bytes] = set()
        many = len(hits) > _MEMO_AFTER
        around = b""
        for number, start, end in hits:
            if many:
                around = text[start - _BEFORE if start > _BEFORE else 0 : end + _AFTER]
                if around in fruitless:
                    continue
            before = len(found)
            for finder in self._finders[number]:
                _collect(found, _run_finder(finder, text, start, end, raw))
            if len(found) > before and raw:
                return found
            if many and len(found) == before:
                fruitless.add(around)
        return found

    def _find_spelt(self, hits: list[tuple[int, int, int]], text: bytes, raw: bool, depth: int) -> list[Span]:
        """What other spellings hide. In undecoded JSON an escape is reason enough to decode it."""
        found: list[Span] = []
        percents = [hit[1] for hit in hits if self._percents <= hit[0] < self._encoded]
        encoded = [hit[1] for hit in hits if hit[0] >= self._encoded]

        def find(inner: bytes) -> list[Span]:
            return self.find(inner, raw, depth)

        escapes = [hit[1] for hit in hits if hit[0] < self._percents]
        if escapes and raw and self._must_decode(hits):
            return [(0, 0, "escape")]
        if escapes:
            found += views.find_in_escaped(text, escapes, find)
        if percents and not (raw and found):
            found += views.find_in_percent(text, percents, find)
        if encoded and not (raw and found):
            found += views.find_in_base64(text, encoded, find)
        return found


_JOINED = re.compile(
    rb"(?:\\{0,3}[\"'`]\s{0,4}[+.&]?\s{0,4}\\?\r?\n?\s{0,12}[+.&]?\s{0,4}[\"'`]|\\\r?\n[ \t]{0,12})(?P<rest>[A-Za-z0-9+/=_.~-]{3,400})"
)
_WRAPPED = re.compile(rb"\r?\n(?P<rest>[A-Za-z0-9+/_~-]{8,400}={0,2})(?=[\r\n\x1f\"']|$)")
_PIECES = 8


def _extend(text: bytes, span: Span) -> Span:
    """A value goes on where a string is joined to the next one, or where a terminal broke the line."""
    start, end, kind = span
    for _ in range(_PIECES):
        more = _JOINED.match(text, end)
        if not more:
            more = _WRAPPED.match(text, end)
            if more and not (end - start >= 8 and judge.looks_random(more["rest"])):
                more = None
        if not more:
            break
        end = more.end()
    return start, end, kind


def _run_finder(finder: Finder, text: bytes, start: int, end: int, raw: bool) -> "list[Span] | Span | None":
    """A fault of one rule must stop neither the hook nor the other rules."""
    try:
        return finder(text, start, end, raw)
    except Exception:
        return None


def _collect(found: list[Span], got: "list[Span] | Span | None") -> None:
    if isinstance(got, list):
        found.extend(got)
    elif got:
        found.append(got)


def join_spans(found: list[Span]) -> list[Span]:
    """Where two overlap, the span is both together and the kind is the one that says more."""
    found.sort(key=lambda span: (span[0], -span[1]))
    joined = [found[0]]
    for span in found[1:]:
        last = joined[-1]
        if span[0] >= last[1]:
            joined.append(span)
        else:
            joined[-1] = (
                last[0],
                max(last[1], span[1]),
                span[2] if last[2] in _GENERIC and span[2] not in _GENERIC else last[2],
            )
    return joined


_GENERIC = frozenset(
    (*(rule.kind for rule in NAME_RULES), "bearer-token", "url-token", "vendor-token", "login-token", "live-key")
)
"""Kinds that say less about a secret than a form that names its issuer."""


@cache
def _escape_marks() -> tuple[str, ...]:
    """What says that JSON must be decoded: escapes of plain letters, and names in other scripts as JSON writes them."""
    stems = [stem for rule in NAME_RULES for stem in _casings(rule) if not stem.isascii()]
    spelt = {json.dumps(stem)[1:-1] for stem in stems}
    return (*views.ESCAPE_MARKS, *sorted(spelt | {mark.upper().replace("\\U", "\\u") for mark in spelt}))


def _anchor_table(names: list[str]) -> dict[str, list[Finder]]:
    table: dict[str, list[Finder]] = {}

    def add(anchors: Iterable[str], finder: Finder) -> None:
        for anchor in anchors:
            table.setdefault(anchor, []).append(finder)

    for token in TOKEN_RULES:
        shape = parse_shape(token.shape)
        short = token.left == "strict" and not shape.head and any(map(_is_common, shape.anchors))
        add(_with_left_context(shape.anchors) if short else shape.anchors, token_finder(token, shape, short))
    for place in PLACE_RULES:
        add(place.anchors, place_finder(place))
    for rule in (*NAME_RULES, *(NameRule("named", (name,), "any", spoken=False) for name in names)):
        add(_casings(rule), name_finder(rule))
    add(blocks.KEY_ANCHORS, blocks.find_private_key)
    add(blocks.PUTTY_ANCHORS, blocks.find_putty_key)
    add(blocks.SECRET_ANCHORS, blocks.find_secret_values)
    add(blocks.INSERT_ANCHORS, blocks.find_inserted)
    add(headers.COOKIE_ANCHORS, headers.find_cookies)
    add(headers.BASIC_ANCHORS, headers.find_basic_login)
    return table


_COMMON = frozenset(
    (
        "pat",
        "ck_",
        "cs_",
        "re_",
        "st.",
        "at_",
        "ser.",
        "test_",
        "live_",
        "key_",
        "key-",
        "act.",
        "api_",
        "sl.",
        "eu",
        "ion_",
        "ptr_",
        "ctp_",
        "cta_",
        "ctr_",
        "ak_",
        "sk_",
        "cc_",
    )
)


def _is_common(anchor: str) -> bool:
    return len(anchor) <= 2 or anchor in _COMMON


_LEFT_CONTEXT = (*" \"'`=:(,<>[{|&;/@\t\n\x1e\x1f“‘«：（", "\\n", "\\t", "\\r")
"""What may stand before a token with a short prefix; the last three as undecoded JSON writes them."""


def _with_left_context(anchors: Iterable[str]) -> list[str]:
    """Short prefixes are common within words: searching for what stands before them too spares most of the checks."""
    return [context + anchor for anchor in anchors for context in _LEFT_CONTEXT]


def _casings(rule: NameRule) -> list[str]:
    """Every spelling of the stems that is searched for: the automaton minds case."""
    spelt: dict[str, None] = {}
    for stem in rule.stems:
        for variant in (
            (stem, stem.lower(), stem.upper(), stem.capitalize(), stem.title()) if stem.islower() else (stem,)
        ):
            spelt[variant] = None
    if "password" in rule.stems:
        spelt |= dict.fromkeys(("passWord", "PassWord", "passWd", "PassWd"))
    return [*spelt]


def token_finder(rule: TokenRule, shape: Shape, short: bool) -> Finder:
    """Looks at the form of the token around its anchor. The pattern is compiled when it is first needed.
    `short`: the anchor has the character before the token in it, so that what it may be is known."""
    check = CHECKS.get(rule.check)
    open_left = short or rule.shape.startswith("{") or rule.left == "any"
    strict = rule.left == "strict"
    prefixes = tuple(anchor.encode() for anchor in shape.anchors)
    widths = sorted({len(prefix) for prefix in prefixes}, reverse=True)

    @cache
    def pattern() -> re.Pattern[bytes]:
        return re.compile(shape.pattern)

    def find(text: bytes, start: int, end: int, raw: bool) -> Span | None:
        if short:
            start = next((end - width for width in widths if text.startswith(prefixes, end - width)), start)
        elif not open_left and not shape.head and not raw and not _begins(text, start, strict):
            return None
        match = _match_around(pattern(), text, start, shape.head)
        if not match or not (raw or open_left or not shape.head or _begins(text, match.start(), strict)):
            return None
        token = match[0]
        if judge.is_placeholder(token) or (check and not check(token)):
            return None
        return match.start(), match.end(), rule.kind

    return find


def _match_around(pattern: re.Pattern[bytes], text: bytes, start: int, head: int) -> re.Match[bytes] | None:
    if not head:
        return pattern.match(text, start, min(len(text), start + _LONGEST))
    for at in range(max(0, start - head), start + 1):
        match = pattern.match(text, at, min(len(text), start + _LONGEST))
        if match and match.start() <= start < match.end():
            return match
    return None


def _begins(text: bytes, start: int, strict: bool) -> bool:
    """Whether a token may begin here: not within a word, unless what stands before it is a colour of the terminal.
    `strict`: not within a name or a number either."""
    last = text[start - 1 : start] if start else b""
    if last == b"m" and _COLOUR.search(text, max(0, start - 16), start):
        return True
    return not last.isalnum() and not (strict and last in b"_.+-" and last)


def place_finder(rule: PlaceRule) -> Finder:
    accept = judge.JUDGES[rule.judge]

    @cache
    def pattern() -> re.Pattern[bytes]:
        return re.compile(rule.pattern.replace("[^", "[^\x1e\x1f").encode())  # a value ends with its string

    def find(text: bytes, start: int, end: int, raw: bool) -> Span | None:
        match = pattern().match(text, start) if not rule.back else _search_back(pattern(), text, start, end, rule.back)
        if not match:
            return None
        first, last = match.span("secret")
        value = text[first:last]
        if b"[redacted:" in value:
            return None
        if not accept(value) and not (raw and text[last : last + 1] == b"\\"):
            return None
        return first, last, rule.kind

    return find


def _search_back(pattern: re.Pattern[bytes], text: bytes, start: int, end: int, back: int) -> re.Match[bytes] | None:
    for match in pattern.finditer(text, max(0, start - back), min(len(text), end + 400)):
        if match.end() > start:
            return match
    return None


def name_finder(rule: NameRule) -> Finder:
    width = rule.stem_width

    def find(text: bytes, start: int, end: int, raw: bool) -> Span | None:
        return assignment.find_value(text, rule, end - width if width else start, end, raw)

    return find

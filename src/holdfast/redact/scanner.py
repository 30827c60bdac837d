"""One pass over a text: an Aho–Corasick automaton finds candidates, and only those are checked."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache

from holdfast.redact import assignment, blocks, judge, notation, prefixed, tables, views
from holdfast.redact.acceptance import SHORT_NAMES
from holdfast.redact.anchors import (
    GUARD_CODE,
    GUARD_COOKIE,
    GUARD_FAR,
    GUARD_KEY,
    GUARD_LOGIN,
    GUARD_PAREN,
    GUARD_PASS,
    GUARD_PLAIN,
    GUARD_RANDOM,
    GUARD_SPOKEN,
    GUARD_TOKEN,
    GUARD_VALUE,
    GUARD_WORD,
    Anchor,
    AnchorSearch,
    Hit,
    Hits,
)
from holdfast.redact.document import unjudged_spans
from holdfast.redact.finders import name_finder, place_finder, token_finder
from holdfast.redact.judge import NameRule, Span
from holdfast.redact.rules.cloud import CLOUD_TOKENS, KEY_TOKENS
from holdfast.redact.rules.constructs import CONSTRUCT_RULES
from holdfast.redact.rules.locations import LOCATION_RULES
from holdfast.redact.rules.models import DEVELOPMENT_TOKENS, MODEL_TOKENS
from holdfast.redact.rules.names import NAME_RULES
from holdfast.redact.rules.services import BUSINESS_TOKENS, SERVICE_TOKENS
from holdfast.redact.rules.sessions import LATER_TOKENS, SESSION_TOKENS
from holdfast.redact.shapes import parse_shape
from holdfast.redact.work import (
    WORK_OF_LOOK,
    Finder,
    Work,
    units_of,
    work_of_candidate,
    work_of_found,
    work_of_unpacked,
    work_of_view,
)

TOKEN_RULES = (
    *MODEL_TOKENS, *DEVELOPMENT_TOKENS, *CLOUD_TOKENS, *BUSINESS_TOKENS, *SERVICE_TOKENS, *KEY_TOKENS, *SESSION_TOKENS,
    *LATER_TOKENS,
)  # fmt: skip

# With more hits than this, results are remembered by surroundings: logs repeat the same lines.
_MEMO_AFTER = 60
# In bytes around an anchor. The native search compares the same stretch (BEFORE and AFTER in native/search.h).
_BEFORE, _AFTER = 48, 64
# So many hits in undecoded JSON say that it must be decoded: judging them one by one would cost more.
_MOST_UNDECODED = 64


class Scanner:
    """Finds the spans of secrets in bytes. `names` are further names whose values are secret."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        finders: dict[Finder, int] = {}
        anchors = [
            Anchor(text.encode(), finders.setdefault(finder, len(finders)), follow, count, alone, then, guard)
            for text, finder, follow, count, alone, then, guard in _list_anchors([name for name in names if name])
        ]
        runs = finders.setdefault(prefixed.find_prefixed, len(finders))
        self._finders = [*finders]
        self._units = [units_of(finder) for finder in finders]
        self._escapes = len(finders)
        self._decodes, self._percents, self._encoded, self._colours = (self._escapes + n for n in (1, 2, 3, 4))
        anchors += [
            Anchor(mark.encode(), self._escapes, *views.AFTER_MARK.get(mark, (b"", 0)), guard=_far_guard(0))
            for mark in views.ESCAPE_MARKS
        ]
        anchors += [Anchor(mark.encode(), self._decodes, guard=_far_guard(1)) for mark in _decode_marks()]
        anchors += [Anchor(mark.encode(), self._percents, guard=_far_guard(2)) for mark in views.PERCENT_MARKS]
        anchors += [Anchor(mark.encode(), self._encoded) for mark in (*views.base64_marks(), *views.HEX_MARKS)]
        anchors += [
            Anchor(mark.encode(), self._encoded, *views.AFTER_COMPRESSED, alone=True) for mark in views.COMPRESSED_MARKS
        ]
        anchors += [Anchor(views.NUL_MARKS[0].encode(), self._decodes, guard=_far_guard(1))]
        anchors += [Anchor(mark.encode(), self._colours, guard=_far_guard(3)) for mark in views.COLOUR_MARKS]
        self._search = AnchorSearch(anchors, runs, assignment.GUARD_WORDS)

    def find(self, text: bytes, depth: int = 2, work: Work | None = None) -> list[Span]:
        """The spans in order, without overlap. `depth`: how many spellings within one another are read."""
        work = work or Work(len(text))
        got = self._search_once(text, work)
        if got.hits and self._colours in got.numbers and (view := work.spellings.shown(text)):
            shown = self._search_once(view.text, work)
            return [view.source_span(span) for span in self._find_in(view.text, shown, depth, work)]
        return self._find_in(text, got, depth, work)

    def _find_in(self, text: bytes, got: Hits, depth: int, work: Work) -> list[Span]:
        spans, hits = self._find_plain(text, got, work)
        if depth and not (spans and work.is_look):
            spelt = [hit for hit in hits if hit[0] >= self._escapes]
            spans += self._find_spelt(spelt, text, depth - 1, work) if spelt else []
            if b"\0" in text:
                spans += views.find_in_utf16(text, lambda inner: self.find(inner, 0, work), lambda: work.left < 0)
        if spans:
            pieces: dict[int, int] = {}
            spans = [_extend_span(text, span, pieces, work) for span in spans]
        return join_spans(spans) if len(spans) > 1 else spans

    def may_hold_secret(self, body: bytes) -> bool:
        """Whether it is worth decoding: it has a candidate. Undecoded it cannot be judged: where a line ends, or a value,
        an escape hides."""
        got = self._search.find(body, once=True, most=_MOST_UNDECODED)
        hits = [hit for hit in got.hits if hit[0] != self._colours]
        return (
            got.left_out
            or len(got.hits) >= _MOST_UNDECODED
            or any(not _is_token_count(body, *hit[1:]) for hit in hits)
            or (len(hits) < len(got.hits) and views.hides_word(body))
        )

    def look_at(self, text: bytes) -> Work | None:
        """What a first look gave, if there is a secret, or so many candidates that only a closer look can tell."""
        look = Work(0, WORK_OF_LOOK, is_look=True)
        return look if self.find(text, work=look) else None

    def _find_plain(self, text: bytes, got: Hits, work: Work) -> tuple[list[Span], list[Hit]]:
        """What is repeated very often is looked at once; only where that is a secret are all of its places searched."""
        spans = self._check(got, text, work) if got.hits else []
        # Repeated hits were left out; they are a secret as well, so all of them must be listed.
        if got.left_out and spans and not work.is_look:
            got = self._search.find(text, judged=work.left)
            work.count_search(got)
            spans = self._check(got, text, work)
        return spans, got.hits

    def _search_once(self, text: bytes, work: Work) -> Hits:
        """Its candidates, which a look at the same text has listed already."""
        known = work.searched.get(id(text))
        if known:
            return known[1]
        got = self._search.find(text, once=True, judged=work.left)
        work.count_search(got)
        if work.is_look:
            work.searched[id(text)] = text, got
        return got

    def _check(self, got: Hits, text: bytes, work: Work) -> list[Span]:
        all_spans: list[Span] = []
        plain = self._escapes
        cached_spans, hits = work.known, got.hits
        many = work.is_look or bool(cached_spans) or len(hits) > _MEMO_AFTER
        for at, (number, start, end) in enumerate(hits):
            # Marks of other spellings carry the numbers from `_escapes` on; `_find_spelt` reads them.
            if number >= plain:
                continue
            if many:
                # With its place in it: near an end of the text two hits can have the same stretch.
                before_it = min(start, _BEFORE)
                around = number, before_it, end - start, text[start - before_it : end + _AFTER]
                before = cached_spans.get(around)
                if before is not None:
                    all_spans += [(start + first, start + last, kind) for first, last, kind in before]
                    continue
            finder = self._finders[number]
            units = self._units[number] or work_of_candidate(finder, text, start, end)
            if not work.spend(units):
                # A look is asked whether there may be a secret, not where.
                rest = hits[at : at + 1] if work.is_look else hits[at:]
                return all_spans + unjudged_spans(text, [hit[1:] for hit in rest if hit[0] < plain], got.rest)
            spans = _run_finder(finder, text, start, end)
            if isinstance(spans, int):
                work.give_back(units - spans)
                spans = []
            elif spans:
                work.spend(work_of_found(spans))
            all_spans += spans
            if spans and work.is_look:
                return all_spans
            # Reused only if it ends inside the compared stretch: at its edge a span may go on.
            if many and all(start <= span[0] and span[1] < end + _AFTER - 1 for span in spans):
                cached_spans[around] = [(first - start, last - start, kind) for first, last, kind in spans]
        return all_spans + unjudged_spans(text, [], got.rest) if got.rest else all_spans

    def _find_spelt(self, hits: list[Hit], text: bytes, depth: int, work: Work) -> list[Span]:
        """What other spellings hide."""
        spans: list[Span] = []
        percents = sorted(hit[1] for hit in hits if hit[0] == self._percents)
        encoded = sorted(hit[1] for hit in hits if hit[0] == self._encoded)

        def find(inner: bytes) -> list[Span] | None:
            return self.find(inner, depth, work) if work.spend(work_of_view(inner)) else None

        def find_unpacked(inner: bytes) -> list[Span] | None:
            return self.find(inner, depth, work) if work.spend(work_of_unpacked(inner)) else None

        escapes = sorted(hit[1] for hit in hits if hit[0] < self._percents)
        if escapes:
            spans += views.find_in_escaped(text, escapes, find, work.spellings)
        if percents:
            spans += views.find_in_percent(text, percents, find, work.spellings)
        # What was not read is removed with the strings it stands in.
        spans = [
            whole for span in spans for whole in (_whole_strings(text, span) if span[2] == views.UNJUDGED else [span])
        ]
        if encoded:
            spans += views.find_in_base64(text, encoded, find_unpacked, lambda: work.left < 0)
        return spans


_TOKEN_COUNTS = re.compile(rb's":\{(?:"[a-z_0-9]{1,24}":\d{1,18},?){0,12}\}')


def _is_token_count(body: bytes, start: int, end: int) -> bool:
    """`"tokens":{"input":12}`: every answer of a model says how many it used. A name within it is a hit of its own."""
    return body[start:end] == b"token" and _TOKEN_COUNTS.match(body, end) is not None


def _whole_strings(text: bytes, span: Span) -> list[Span]:
    return unjudged_spans(text, [span[:2]], None)


_PIECES, _WRAPPED_LEAST = 8, 8
"""How many pieces of a value are joined, and how long the first must be where a terminal broke it."""


def _extend_span(text: bytes, span: Span, pieces: dict[int, int], work: Work) -> Span:
    """A value goes on where a string is joined to the next one, or where a terminal broke the line. `pieces` remembers
    where the piece ends that follows a place: of many lines below one another each is read once."""
    start, end, kind = span
    for _ in range(_PIECES):
        more = notation.JOINED.match(text, end)
        if more:
            end = more.end()
            continue
        if end not in pieces:
            wrapped = notation.WRAPPED.match(text, end)
            # A line that follows is part of the value only if it looks random, as a wrapped token does, or cannot be judged.
            is_part = wrapped and (not work.spend() or judge.looks_random(wrapped["rest"]))
            pieces[end] = wrapped.end() if wrapped and is_part else end
        if pieces[end] == end or end - start < _WRAPPED_LEAST:
            break
        end = pieces[end]
    return start, end, kind


def _run_finder(finder: Finder, text: bytes, start: int, end: int) -> list[Span] | int:
    """A fault of one rule must stop neither the hook nor the other rules."""
    try:
        got = finder(text, start, end)
    except Exception:
        return []
    return [got] if isinstance(got, tuple) else got or []


# Callers rely on spans without overlap: `replace_spans` copies what lies between them.
def join_spans(spans: list[Span]) -> list[Span]:
    """Where two overlap, the span is both together and the kind is the one that says more."""
    spans.sort(key=lambda span: (span[0], -span[1]))
    joined = [spans[0]]
    for span in spans[1:]:
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
def _decode_marks() -> tuple[str, ...]:
    """What can only be read in decoded text: names in other scripts as JSON writes them, and dumps."""
    stems = [stem for rule in NAME_RULES for stem in _stem_casings(rule) if not stem.isascii()]
    spelt = {json.dumps(stem)[1:-1] for stem in stems}
    return (*views.DUMP_MARKS, *sorted(spelt | {mark.upper().replace("\\U", "\\u") for mark in spelt}))


AnchorOf = tuple[str, Finder, bytes, int, bool, bytes, int]
"""A text to search for, what looks at it then, the bytes that must follow it and how many; whether it stands alone; the
byte behind them; its guard."""


def _far_guard(sort: int) -> int:
    return GUARD_FAR | sort << 8


def _guard_of(rule: NameRule, stem: str) -> int:
    """What native/guards.h asks of a name: no more than `assignment.find_value` does."""
    guard = GUARD_VALUE | rule.stem_width << 8
    guard |= GUARD_RANDOM if rule.judge in ("token", "strong") else 0
    guard |= GUARD_SPOKEN if rule.spoken else 0
    guard |= GUARD_CODE if rule.judge in ("token", "strong", "password") else 0
    if rule.judge == "password" and stem.lower().encode() not in SHORT_NAMES:
        guard |= GUARD_PLAIN
    if rule.part in ("", "tail"):
        return guard
    if rule.part == "key":
        return guard | (GUARD_TOKEN if stem[-rule.stem_width :][:1] in "tT" else GUARD_KEY)
    return guard | GUARD_WORD | (GUARD_PASS if stem.lower() in ("pass", "pwd") else 0)


def _list_anchors(names: list[str]) -> Iterator[AnchorOf]:
    for token in TOKEN_RULES:
        shape = parse_shape(token.shape)
        # The search itself checks what stands before a common anchor; otherwise too many hits reach Python.
        alone = token.left == "strict" and not shape.head and any(map(_is_common, shape.anchors))
        finder = token_finder(token, shape, alone)
        for anchor in shape.anchors:
            yield anchor, finder, shape.follow, shape.follow_count, alone, shape.then.encode(), 0
    plain: list[tuple[Iterable[str], Finder, int]] = [
        (rule.anchors, place_finder(rule), _NEXT_WORD if rule.next_word else 0)
        for rule in (*LOCATION_RULES, *CONSTRUCT_RULES)
    ]
    for anchors, finder, guard in [*plain, *((*pair, 0) for pair in _BLOCK_FINDERS)]:
        for anchor in anchors:
            follow, count, then = _AFTER_PLACE.get(anchor, (b"", 0, b""))
            yield anchor, finder, follow, count, False, then, _GUARDS.get(anchor, guard)
    own = (NameRule("named", (name,), "any", spoken=False) for name in names)
    for rule in (*NAME_RULES, *own):
        finder = name_finder(rule)
        for stem in _stem_casings(rule):
            follow, count = _AFTER_SHORT.get(stem, (b"", 0))
            yield stem, finder, follow, count, False, b"", _guard_of(rule, stem)


_NEXT_WORD = GUARD_PAREN | 1 << 8
_BLOCK_FINDERS: list[tuple[Iterable[str], Finder]] = [
    (blocks.KEY_ANCHORS, blocks.find_private_key),
    (blocks.PUTTY_ANCHORS, blocks.find_putty_key),
    (blocks.SECRET_ANCHORS, blocks.find_secret_values),
    (blocks.INSERT_ANCHORS, blocks.find_inserted),
    (blocks.COOKIE_ANCHORS, blocks.find_cookies),
    (blocks.BASIC_ANCHORS, blocks.find_basic_login),
    (tables.TABLE_ANCHORS, tables.find_table_values),
    (tables.COPY_ANCHORS, tables.find_copied_values),
    (blocks.JWK_ANCHORS, blocks.find_private_jwk),
]


_GUARDS = {
    **dict.fromkeys(blocks.INSERT_ANCHORS, GUARD_PAREN),
    **dict.fromkeys(blocks.COOKIE_ANCHORS, GUARD_COOKIE | 1 << 8),
    **dict.fromkeys(("name\x1e", 'name"', "name'", "name\\"), GUARD_COOKIE),
    "://": GUARD_LOGIN,
}


_COMMON = frozenset(
    "pat ck_ cs_ re_ st. at_ ser. test_ live_ key_ key- act. api_ sl. eu ion_ ptr_ ctp_ cta_ ctr_ ak_ sk_ cc_".split()
)


def _is_common(anchor: str) -> bool:
    return len(anchor) <= 2 or anchor in _COMMON


# `pw` and `pat` stand in many words: only what can follow a name may come after them.
_AFTER_SHORT = dict.fromkeys(("pw", "PW", "Pw"), (b" =:\"'`_-.,|<>()[]\t\r\n\\\x1e\x1f\xef\xe3\xe60123456789", 1))
_NOT_IN_WORD = bytes(code for code in range(128) if not chr(code).isalpha())
_AFTER_SHORT |= dict.fromkeys(("_pat", "-pat", "_PAT", "-PAT", " PAT"), (_NOT_IN_WORD, 1))
_ALNUM = bytes(code for code in range(128) if chr(code).isalnum())
_AFTER_PLACE = dict.fromkeys((".G", ".X", ".Y"), (_ALNUM + b"_-", 5, b"."))
_AFTER_PLACE |= {"asic ": (_ALNUM + b"+/_- \t", 6, b""), "response=": (b'\\"', 1, b"")}
_AFTER_PLACE |= dict.fromkeys(blocks.INSERT_ANCHORS, (b" \t\r\n(\\", 1, b""))
_AFTER_PLACE |= dict.fromkeys(("auth", "AUTH"), (b"\\\"'`:=\x1e", 1, b""))
_AFTER_PLACE |= dict.fromkeys(blocks.COOKIE_ANCHORS, (b"sS\\\"'`:=, \t\r\n\x1e", 1, b""))
_AFTER_PLACE |= {"PASS ": (_ALNUM, 16, b"")}
_AFTER_PLACE |= dict.fromkeys(("curl", "wget"), (b"\\\"' \t\r\n\x1f", 1, b""))
_AFTER_PLACE |= dict.fromkeys(("redentials", "ogin", "ccount"), (b"s \t\r\n:=\\", 1, b""))
_AFTER_PLACE |= dict.fromkeys(("uthorization", "UTHORIZATION"), (b"\\\"'` \t\r\n:=\x1e", 1, b""))
_AFTER_PLACE |= dict.fromkeys(tables.BEFORE_CELL, (_ALNUM + b"\"'_", 1, b""))
_AFTER_PLACE |= dict.fromkeys(
    ("Client(", "API(", "Api(", "SDK(", "Bot(", "OpenAI(", "Anthropic("), (b"\\\"' \t\r\n", 1, b"")
)
"""What stands after short names: they are not the beginning of a word."""


def _stem_casings(rule: NameRule) -> list[str]:
    """Every spelling of the stems that is searched for: the automaton minds case."""
    spelt: dict[str, None] = {}
    for stem in rule.stems:
        casings = (stem, stem.upper(), stem.capitalize(), stem.title()) if stem.islower() else (stem,)
        spelt |= dict.fromkeys(casings)
    if "password" in rule.stems:
        spelt |= dict.fromkeys(("passWord", "PassWord", "passWd", "PassWd"))
    return [*spelt]

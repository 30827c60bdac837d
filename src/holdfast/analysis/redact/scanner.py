"""Scans a text once for candidates and checks only those."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.analysis.redact import decoded_forms, finders, judge, prefixed
from holdfast.analysis.redact.anchors import Anchor, AnchorSearch, AnchorTable, Hit, Hits
from holdfast.analysis.redact.document import unjudged_spans
from holdfast.analysis.redact.finders import Cost, Finder
from holdfast.analysis.redact.rule_data import PATTERNS, RULES, NameRule
from holdfast.analysis.redact.spans import UNJUDGED, Span, join_spans
from holdfast.analysis.redact.work import WORK_OF_LOOK, Work, work_of_found, work_of_unpacked, work_of_view

# With more hits than this, results are cached by surroundings: logs repeat lines.
_MEMO_AFTER = 60
# In bytes around an anchor. The native search compares the same stretch.
_BEFORE, _AFTER = RULES.limits.before, RULES.limits.after
# With this many hits undecoded JSON must be decoded; judging them one by one would cost more.
_MOST_UNDECODED = 64


_MARKS = RULES.limits.marks
_ESCAPES, _DECODES, _PERCENTS, _COLOURS, _ENCODED = (
    _MARKS[name] for name in ("escapes", "decodes", "percents", "colours", "encoded")
)


class _Finders:
    """The finders of all rules by number, after those of the marks; created on first use."""

    def __init__(self, names: list[NameRule]) -> None:
        self.first = len(_MARKS)
        rows: list[tuple[Callable[[Any], Finder], Any, Cost]] = [
            *((finders.token_finder, rule, finders.WORK_OF_TOKEN) for rule in RULES.tokens),
            *((finders.place_finder, rule, finders.work_of_place(rule)) for rule in RULES.places),
            *((_block_finder, *finders.BLOCK_FINDERS[name]) for name in RULES.blocks),
            *((finders.name_finder, rule, finders.WORK_OF_NAME) for rule in RULES.names),
            (_block_finder, prefixed.find_prefixed, finders.WORK_OF_RUN),
            *((finders.name_finder, rule, finders.WORK_OF_NAME) for rule in names),
        ]
        self.runs = self.first + len(rows) - len(names) - 1
        self.costs: list[Cost] = [*[0] * self.first, *(cost for _, _, cost in rows)]
        self._rows, self._made = rows, dict[int, Finder]()

    def __getitem__(self, number: int) -> Finder:
        finder = self._made.get(number)
        if finder is None:
            make, rule, _ = self._rows[number - self.first]
            finder = self._made[number] = make(rule)
        return finder


class Scanner:
    """Finds the spans of secrets in bytes. `names` are further secret names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        own = [name for name in names if name]
        self._finders = _Finders([NameRule("named", "any", spoken=False) for _ in own])
        table = AnchorTable(RULES.search)
        for number, name in enumerate(own, self._finders.runs + 1):
            for spelt in dict.fromkeys(
                (name, *((name.upper(), name.capitalize(), name.title()) if name.islower() else ()))
            ):
                table.add(Anchor(spelt.encode(), number, guard=RULES.limits.guards["value"]))
        self._search = AnchorSearch(table, self._finders.runs, RULES.search.guard_words)

    def find(self, text: bytes, depth: int = 2, work: Work | None = None) -> list[Span]:
        """The spans in order, without overlap. `depth`: how many nested spellings are read."""
        work = work or Work(len(text))
        got = self._search_once(text, work)
        if (
            got.hits
            and _COLOURS in got.numbers
            and (view := work.spellings.once(decoded_forms.view_without_colours, text))
        ):
            shown = self._search_once(view.text, work)
            return [view.source_span(span) for span in self._find_in(view.text, shown, depth, work)]
        return self._find_in(text, got, depth, work)

    def _find_in(self, text: bytes, got: Hits, depth: int, work: Work) -> list[Span]:
        spans, hits = self._find_plain(text, got, work)
        first = self._finders.first
        if depth and not (spans and work.is_look):
            spelt = [hit for hit in hits if hit[0] < first]
            spans += self._find_spelt(spelt, text, depth - 1, work) if spelt else []
            if b"\0" in text:
                spans += decoded_forms.find_in_utf16(
                    text, lambda inner: self.find(inner, 0, work), lambda: work.left < 0
                )
        if spans:
            pieces: dict[int, int] = {}
            spans = [_extend_span(text, span, pieces, work) for span in spans]
        return join_spans(spans)

    def may_hold_secret(self, body: bytes) -> bool:
        """Whether it is worth decoding, i.e. has a candidate. Undecoded it cannot be judged: escapes hide where a line
        or value ends."""
        got = self._search.find(body, once=True, most=_MOST_UNDECODED)
        hits = [hit for hit in got.hits if hit[0] != _COLOURS]
        return (
            got.left_out
            or len(got.hits) >= _MOST_UNDECODED
            or any(not _is_token_count(body, *hit[1:]) for hit in hits)
            or (len(hits) < len(got.hits) and decoded_forms.hides_word(body))
        )

    def look_at(self, text: bytes) -> Work | None:
        """The results of a first look, if there is a secret, or too many candidates to tell."""
        look = Work(0, WORK_OF_LOOK, is_look=True)
        return look if self.find(text, work=look) else None

    def _find_plain(self, text: bytes, got: Hits, work: Work) -> tuple[list[Span], list[Hit]]:
        """Repeated text is checked once; only if it is a secret are all its positions searched."""
        spans = self._check(got, text, work) if got.hits else []
        # Repeated hits were omitted; they are secrets too, so all of them must be listed.
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
        # Marks of other spellings are handled by `_find_spelt`.
        hits = [hit for hit in got.hits if hit[0] >= self._finders.first]
        many = work.is_look or bool(work.known) or len(got.hits) > _MEMO_AFTER
        for at, hit in enumerate(hits):
            spans = self._find_once(text, hit, work) if many else self._find_at(text, hit, work)
            if spans is None:
                # A look asks whether there may be a secret, not where.
                rest = hits[at : at + 1] if work.is_look else hits[at:]
                return all_spans + unjudged_spans(text, [one[1:] for one in rest], got.rest)
            all_spans += spans
            if spans and work.is_look:
                return all_spans
        return all_spans + unjudged_spans(text, [], got.rest) if got.rest else all_spans

    def _find_once(self, text: bytes, hit: Hit, work: Work) -> list[Span] | None:
        """As `_find_at`; what was found in the same surroundings is not searched again."""
        _, start, end = hit
        around = _surroundings(text, hit)
        if (known := work.known.get(around)) is not None:
            return _moved(known, start)
        spans = self._find_at(text, hit, work)
        # Reused only if it ends inside the compared stretch: at its edge a span may continue.
        if spans is not None and all(start <= span[0] and span[1] < end + _AFTER - 1 for span in spans):
            work.known[around] = _moved(spans, -start)
        return spans

    def _find_at(self, text: bytes, hit: Hit, work: Work) -> list[Span] | None:
        """The secrets at a hit; None if not enough work is left to judge it."""
        number, start, end = hit
        finder, cost = self._finders[number], self._finders.costs[number]
        units = cost if isinstance(cost, int) else cost(text, start, end)
        if not work.spend(units):
            return None
        spans = _run_finder(finder, text, start, end)
        if isinstance(spans, int):
            work.give_back(units - spans)
            return []
        if spans:
            work.spend(work_of_found(spans))
        return spans

    def _find_spelt(self, hits: list[Hit], text: bytes, depth: int, work: Work) -> list[Span]:
        """Find what other spellings hide."""
        spans: list[Span] = []

        def find(inner: bytes) -> list[Span] | None:
            return self.find(inner, depth, work) if work.spend(work_of_view(inner)) else None

        def find_unpacked(inner: bytes) -> list[Span] | None:
            return self.find(inner, depth, work) if work.spend(work_of_unpacked(inner)) else None

        for places, percent in ((_starts(hits, _ESCAPES, _DECODES), False), (_starts(hits, _PERCENTS), True)):
            if places:
                spans += decoded_forms.find_in_windows(text, places, find, work.spellings, percent)
        spans = list(itertools.chain.from_iterable(_whole_strings(text, span) for span in spans))
        if encoded := _starts(hits, _ENCODED):
            spans += decoded_forms.find_in_base64(text, encoded, find_unpacked, lambda: work.left < 0)
        return spans


def _surroundings(text: bytes, hit: Hit) -> tuple[int, int, int, bytes]:
    """Includes its position: near an end of the text two hits can have the same stretch."""
    number, start, end = hit
    before_it = min(start, _BEFORE)
    return number, before_it, end - start, text[start - before_it : end + _AFTER]


def _moved(spans: list[Span], by: int) -> list[Span]:
    return [(first + by, last + by, kind) for first, last, kind in spans]


def _starts(hits: list[Hit], *numbers: int) -> list[int]:
    return sorted(hit[1] for hit in hits if hit[0] in numbers)


def _whole_strings(text: bytes, span: Span) -> list[Span]:
    """Unread text is removed with its strings."""
    return unjudged_spans(text, [span[:2]], None) if span[2] == UNJUDGED else [span]


def _is_token_count(body: bytes, start: int, end: int) -> bool:
    """`"tokens":{"input":12}`: every model answer has such counts. A name within it is a separate hit."""
    return body[start:end] == b"token" and PATTERNS.token_counts.match(body, end) is not None


_PIECES, _WRAPPED_LEAST = 8, 8
"""How many pieces of a value are joined, and the minimum length of the first if a terminal wrapped it."""


def _extend_span(text: bytes, span: Span, pieces: dict[int, int], work: Work) -> Span:
    """A value continues in a joined string, or after a wrapped line. `pieces` caches where the next piece ends, so
    that each line is read once."""
    start, end, kind = span
    for _ in range(_PIECES):
        more = PATTERNS.joined.match(text, end)
        if more:
            end = more.end()
            continue
        if end not in pieces:
            wrapped = PATTERNS.wrapped.match(text, end)
            # A following line belongs to the value only if it looks random, like a wrapped token, or cannot be judged.
            is_part = wrapped and (not work.spend() or judge.looks_random(wrapped["rest"]))
            pieces[end] = wrapped.end() if wrapped and is_part else end
        if pieces[end] == end or end - start < _WRAPPED_LEAST:
            break
        end = pieces[end]
    return start, end, kind


def _block_finder(finder: Finder) -> Finder:
    return finder


def _run_finder(finder: Finder, text: bytes, start: int, end: int) -> list[Span] | int:
    """A fault of one rule must stop neither the hook nor the other rules."""
    try:
        got = finder(text, start, end)
    except Exception:
        return []
    return [got] if isinstance(got, tuple) else got or []

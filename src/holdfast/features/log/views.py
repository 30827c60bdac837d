"""Views of the log: pages, single events, and the proof that none is missing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.core.chain import ChainedRow, Head, Restore, verify_chain
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.history import MARK, HistoryMark, files_of, has_failed, split_phrases, split_words, text_parts
from holdfast.core.ids import session_alias
from holdfast.core.ports import EventQuery, HistoryQuery, Reader, Ref, StateQuery
from holdfast.core.text import strip_controls

SHOWN = ("seq", "at", "kind", "session", "project", "agent", "tool", "data", "key")
LONGEST_PAGE = 1000
GAPS_NAMED = 20


def shown_fields(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in SHOWN}


def list_events(call: Call) -> dict[str, Any]:
    """A page. `next` is the `before` (or `after`) of the following one."""
    args = {name: call.args[name] for name in EventQuery.__struct_fields__ if call.args.get(name)}
    # With `after` pages go forward; otherwise backward from the end.
    query = msgspec.convert({"limit": 100, "newest": not args.get("after"), **args}, EventQuery, strict=False)
    if query.limit > LONGEST_PAGE:
        raise CommandRefused(f"a page has at most {LONGEST_PAGE} events")
    page = call.reader.events(query)
    return {"events": [shown_fields(e) for e in page], "next": _next_page(page, query)}


def _next_page(page: list[Event], query: EventQuery) -> dict[str, int] | None:
    if len(page) < query.limit:
        return None
    return {"before": page[0].seq} if query.newest else {"after": page[-1].seq}


def show_event(call: Call) -> dict[str, Any]:
    stored = call.reader.event(int(call.args["seq"]))
    if not stored:
        raise CommandRefused(f"there is no event {call.args['seq']}")
    body = stored.body.decode("utf-8", "replace")
    return {**shown_fields(stored), "body": body, "body_size": stored.body_size, "body_hash": stored.body_hash}


def verify_log(call: Call) -> dict[str, Any]:
    """Every number from 1 to the head exists once, every event is what was written, and noted heads are in the log.
    With `keys`, each must be in the log."""
    reader = call.reader
    gaps: list[list[int]] = []

    def counted() -> Iterator[ChainedRow]:
        last = 0
        for row in reader.chained():
            if row.seq != last + 1:
                gaps.append([last + 1, row.seq - 1])
            last = row.seq
            yield row

    heads = msgspec.convert(call.args.get("heads") or [], list[Head])
    restores = msgspec.convert(call.args.get("restores") or [], list[Restore])
    repairs = reader.events(EventQuery(kinds=("store.restored",), limit=LONGEST_PAGE, newest=True))
    restores += [Restore(event.at, event.data.kept) for event in repairs]
    chain = verify_chain(counted(), heads, restores)
    erasures = reader.events(EventQuery(kinds=("erase.finished",), limit=1, newest=True))
    # A restore brings back a log in which the contents are erased, but not what recorded that.
    recorded = max((event.data.tombstones for event in (*erasures, *repairs)), default=0)
    keys = [str(k) for k in call.args.get("keys") or ()]
    missing = sorted(set(keys) - set(reader.seqs_of_keys(keys)))
    return {
        "events": reader.counts()["events"] - sum(last - first + 1 for first, last in gaps),
        "head": reader.head(),
        "gaps": gaps[:GAPS_NAMED],
        "missing": missing,
        "chain": msgspec.to_builtins(chain),
        "unrecorded_erasures": max(0, chain.erased - recorded),
    }


# Search in everything that happened: prompts, answers, commands, outputs, files, errors, commits.

MOST_WORDS = 32
MOST_HITS = 200
# Characters of a snippet, and of the text before its first match.
SNIPPET, LEAD = 240, 60
PREFIX_FROM = 3
"""A shorter prefix would match half the log."""
CANDIDATES = 100
"""The newest events with some of the words, considered if none has all."""
ALIASES_SEARCHED = 2000


class HistoryFilters(msgspec.Struct, kw_only=True):
    """Filters besides the words."""

    project: str = ""
    agent: str = ""
    session: str = ""
    tool: str = ""
    file: str = ""
    failed: bool = False
    since: int = 0
    before: int = 0
    kinds: tuple[str, ...] = ()
    limit: int = 20


class HistoryHit(msgspec.Struct):
    """`field` is the source of the snippet."""

    seq: int
    at: int
    kind: str
    session: str
    project: str
    agent: str
    tool: str
    failed: bool
    field: str
    snippet: str


def search_history(call: Call) -> dict[str, Any]:
    """Newest first. All words must occur; if no event has all, those with the most (`partly`)."""
    text = str(call.args.get("query") or "")
    filters = _parse_filters(call.args)
    search_phrases = split_phrases(text, MOST_WORDS)
    narrowed = filters.file or filters.failed or filters.session or filters.tool or filters.agent or filters.kinds
    if not search_phrases and not narrowed:
        raise CommandRefused("there is no word in it to look for", fix='For example: holdfast history "npm test"')
    query = _build_query(search_phrases, filters, call)
    seqs, partly = _find_seqs(call.reader, query)
    # After the query's limit, which is twice the answer's.
    events = once_per_call(_events_by_seq(call.reader, seqs))[: filters.limit]
    mark = HistoryMark.parse(call.reader.meta(MARK))
    return {
        "hits": [msgspec.to_builtins(history_hit(event, search_phrases)) for event in events],
        "words": [word for phrase in search_phrases for word in phrase.split()],
        "partly": partly,
        # A partial answer is ranked by matches, so there is no next page.
        "next": seqs[-1] if len(seqs) == query.limit and not partly else None,
        "indexed": mark.seq,
        "head": call.reader.head(),
    }


def _parse_filters(args: Mapping[str, Any]) -> HistoryFilters:
    arguments = {name: args[name] for name in HistoryFilters.__struct_fields__ if args.get(name)}
    filters = msgspec.convert(arguments, HistoryFilters, strict=False)
    if filters.limit > MOST_HITS:
        raise CommandRefused(f"at most {MOST_HITS} hits can be shown at once")
    return filters


def _build_query(search_phrases: tuple[str, ...], filters: HistoryFilters, call: Call) -> HistoryQuery:
    """Twice as many as shown: the start and end of a call are one hit."""
    fields = {
        **msgspec.structs.asdict(filters), "limit": 2 * filters.limit,
        "session": _session_id(call.reader, filters.session),
    }  # fmt: skip
    return HistoryQuery(phrases=search_phrases, **fields)


def _session_id(reader: Reader, name: str) -> str:
    """The full id of a session, from a prefix or its short form."""
    if not name or reader.document(Ref("session", name)) is not None:
        return name
    # Two are enough to detect an ambiguous prefix.
    rows = reader.documents(StateQuery(kind="session", prefix=name, limit=2))
    if not rows:
        recent = reader.documents(StateQuery(kind="session", limit=ALIASES_SEARCHED))
        rows = [row for row in recent if session_alias(row[0]) == name]
    if len(rows) > 1:
        raise CommandRefused(f"more than one session is called {name[:80]!r}", fix="Give more of the id.")
    if not rows:
        raise CommandRefused(f"there is no session {name[:80]!r}", fix="See: holdfast session list --all")
    return rows[0][0]


def _find_seqs(reader: Reader, query: HistoryQuery) -> tuple[list[int], bool]:
    seqs = reader.history(query)
    # The last word may be incomplete.
    if len(seqs) < query.limit and query.phrases and len(query.phrases[-1].split()[-1]) >= PREFIX_FROM:
        seqs = reader.history(msgspec.structs.replace(query, prefix=True))
    if seqs or len(query.phrases) < 2:
        return seqs, False
    loose = msgspec.structs.replace(query, any_phrase=True, limit=CANDIDATES)
    ranked = sorted(
        _events_by_seq(reader, reader.history(loose)), key=lambda event: -_count_matches(event, query.phrases)
    )
    return [event.seq for event in ranked[: query.limit]], True


def _events_by_seq(reader: Reader, seqs: Sequence[int]) -> list[Event]:
    """In the given order."""
    if not seqs:
        return []
    by_seq = {event.seq: event for event in reader.events(EventQuery(seqs=tuple(seqs), limit=len(seqs)))}
    return [by_seq[seq] for seq in seqs if seq in by_seq]


def _count_matches(event: Event, search_phrases: Sequence[str]) -> int:
    # With spaces around, so that only whole words match.
    text = f" {' '.join(split_words(' '.join(part for _, part in text_parts(event))))} "
    return sum(f" {phrase} " in text for phrase in search_phrases)


def once_per_call(events: Iterable[Event]) -> list[Event]:
    """A call's end repeats its start and adds the result: if both match, the end is shown."""
    shown_events: list[Event] = []
    seen: set[tuple[str, str]] = set()
    for event in events:
        call = event.get("call")
        if call and event.kind.startswith(("tool.", "permission.")):
            if (event.session, call) in seen:
                continue
            seen.add((event.session, call))
        shown_events.append(event)
    return shown_events


def history_hit(event: Event, search_phrases: Sequence[str]) -> HistoryHit:
    field, snippet = _best_snippet(event, search_phrases)
    return HistoryHit(
        seq=event.seq, at=event.at, kind=event.kind, session=event.session, project=event.project, agent=event.agent,
        tool=event.tool, failed=has_failed(event), field=field, snippet=snippet,
    )  # fmt: skip


def _best_snippet(event: Event, search_phrases: Sequence[str]) -> tuple[str, str]:
    """From the text with the most matches, around the first."""
    parts = [*text_parts(event), *(("path", path) for path in files_of(event))]
    if not parts:
        return "", ""
    words = [word for phrase in search_phrases for word in phrase.split()]
    # The first of equals: text before paths.
    field, text = max(parts, key=lambda part: sum(word in part[1].lower() for word in words))
    low = text.lower()
    first = min((at for word in words if (at := low.find(word)) >= 0), default=0)
    start = max(0, first - LEAD)
    cut = text[start : start + SNIPPET]
    # Outputs of tools contain terminal codes.
    shown = " ".join(strip_controls(cut).split())
    return field, ("…" if start else "") + shown + ("…" if start + SNIPPET < len(text) else "")

"""The native search and Aho–Corasick find the same anchors, and exactly those that a plain search finds."""

import random

import pytest

from holdfast.analysis.redact import anchors
from holdfast.analysis.redact.anchors import Anchor, AnchorSearch
from holdfast.analysis.redact.rule_compiler import pack_guard_words

WORD = bytes(range(97, 123))
ANCHORS = [
    Anchor(b"password", 0),
    Anchor(b"word", 1),
    Anchor(b"_key", 2, WORD, 2),
    Anchor(b"sk-", 3, WORD, 3, alone=True),
    Anchor(b"Kx", 4, WORD, 2, alone=True),
    Anchor(b"&#", 5),
    Anchor(b"\xc3\xa9s", 6),
]
LEFT = b" \"'`=:(,<>[{|&;/@\t\n\x1e\x1f\x9c\x98\xab\x9a\x88"


def plain(text: bytes) -> list[anchors.Hit]:
    return [
        (anchor.number, start, start + len(anchor.text))
        for anchor in ANCHORS
        for start in range(len(text))
        if text.startswith(anchor.text, start) and follows(text, start, anchor) and begins(text, start, anchor)
    ]


def follows(text: bytes, start: int, anchor: Anchor) -> bool:
    after = text[start + len(anchor.text) :][: anchor.count]
    return len(after) == anchor.count and all(code in anchor.follow for code in after)


def begins(text: bytes, start: int, anchor: Anchor) -> bool:
    return (
        not anchor.alone or not start or text[start - 1] in LEFT or text[start - 2 : start] in (b"\\n", b"\\t", b"\\r")
    )


def make_texts() -> list[bytes]:
    chance = random.Random(5)
    pieces = [anchor.text for anchor in ANCHORS] + [
        b"ab",
        b" ",
        b"\\n",
        b"x",
        b"=",
        b"\n",
        b"q" * 9,
        b"wor",
        b"sk",
        b"K",
    ]
    return [b"".join(chance.choices(pieces, k=chance.randint(0, 12))) for _ in range(400)]


def test_both_find_what_a_plain_search_finds() -> None:
    searches = [lambda text: anchors._Automaton(ANCHORS).find(text).hits]
    library = anchors.load_library()
    if library:
        native = anchors._NativeTables(library, anchors.AnchorTable.of(ANCHORS))
        searches.append(lambda text: native.find(text, once=False).hits)
    for text in make_texts():
        for search in searches:
            assert sorted(search(text)) == sorted(plain(text)), text


def test_each_of_thousands_of_anchors_is_found_by_the_bytes_that_were_chosen_for_it() -> None:
    chance = random.Random(7)
    words = {bytes(chance.choices(b"etaoin_-:KEY0 =", k=chance.randint(2, 9))) for _ in range(4000)}
    made = [
        Anchor(word, number, b"0123 xyz", number % 3, alone=not number % 5) for number, word in enumerate(sorted(words))
    ]
    search, automaton = AnchorSearch(made), anchors._Automaton(made)
    for anchor in chance.sample(made, 400):
        text = b"..\n" + anchor.text + bytes(chance.choices(b"01 xyzK", k=4))
        hits = search.find(text).hits
        assert sorted(set(hits)) == sorted(automaton.find(text).hits), (anchor, text)


def test_long_runs_after_a_prefix_are_found() -> None:
    runs = (
        b"x acme_"
        + b"aB3" * 12
        + b" ky-"
        + b"qW7" * 8
        + b"! z"
        + b"wE5" * 16
        + b" _"
        + b"vR2" * 6
        + b" _"
        + b"u9T" * 43
    )
    expected = [(9, 7, 43), (9, 47, 71)]
    for shift in range(17):
        text = b"." * shift + runs
        moved = [(number, start + shift, end + shift) for number, start, end in expected]
        assert [hit for hit in anchors._Automaton(ANCHORS, 9).find(text).hits if hit[0] == 9] == moved
        assert [hit for hit in AnchorSearch(ANCHORS, 9).find(text).hits if hit[0] == 9] == moved


def test_runs_that_follow_one_another_are_found_at_every_place() -> None:
    run = b"aB3x" * 5
    for shift in range(20):
        for gap in (b" ky-", b" key_", b"... key_"):
            text = b"." * shift + b"q" * 17 + gap + run + gap + run
            starts = [
                place
                for place in range(len(text))
                if text.startswith(run, place) and text[place - 1 : place] in (b"_", b"-")
            ]
            hits = AnchorSearch(ANCHORS, 9).find(text).hits
            assert [hit for hit in hits if hit[0] == 9] == [(9, start, start + 20) for start in starts], (shift, gap)


def test_hashes_behind_the_name_of_their_kind_are_no_candidates() -> None:
    guards = pack_guard_words({"public_prefix": ["sha512"]})
    lines = b"".join(b'"integrity": "sha512-%s+x"\n' % (b"aB3x" * 12) for _ in range(50))
    assert not AnchorSearch(ANCHORS, 9, guards).find(lines).hits
    assert not [hit for hit in anchors._Automaton(ANCHORS, 9).find(lines).hits if hit[0] == 9]


@pytest.mark.skipif(anchors.load_library() is None, reason="only the library looks at what stands before a run")
def test_runs_behind_what_is_no_prefix_are_no_candidates() -> None:
    run = b"aB3x" * 6
    search = AnchorSearch(ANCHORS, 9)
    for before in (b"__", b"/acme_", b"q_", b" 4cme_", b"sha256=zuuue4knoyJ-", b"%acme_"):
        assert not [hit for hit in search.find(before + run).hits if hit[0] == 9], before
    for before in (b" acme_", b"\nACME-", b"k=ab1c_", b'"acme-prod_', b"\\nacme_"):
        assert [hit[0] for hit in search.find(before + run).hits] == [9], before


def test_repetitions_are_looked_at_once() -> None:
    search = AnchorSearch(ANCHORS)
    text = b"password is " * 20_000
    once = search.find(text, once=True)
    assert once.left_out == search.is_native
    assert not once.left_out or len(once.hits) < 300


def test_too_many_hits_are_told_by_where_they_lie() -> None:
    text = b"password is " * 20_000
    for search in (AnchorSearch(ANCHORS), anchors._Automaton(ANCHORS)):
        got = search.find(text)
        assert len(got.hits) == anchors.room_for(text)
        assert got.rest is not None
        assert got.rest[0] <= got.hits[-1][2] + 16
        assert got.rest[1] == len(text) - len(b" is ")


def test_a_text_of_one_letter_is_found_where_a_row_of_it_begins() -> None:
    """A row of three thousand would be a candidate at every place, and what follows it would not be judged."""
    letters = [Anchor(b"AAAAAAAAAA", 0)]
    for search in (AnchorSearch(letters), anchors._Automaton(letters)):
        assert [hit[1] for hit in search.find(b"x " + b"A" * 3000 + b" y" + b"A" * 12).hits] == [2, 3, 3004, 3005]

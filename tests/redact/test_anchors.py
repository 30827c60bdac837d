"""The native search and Aho–Corasick find the same anchors, and exactly those that a plain search finds."""

import random

from holdfast.redact import anchors
from holdfast.redact.anchors import Anchor, AnchorSearch

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
    searches = [anchors._Automaton(ANCHORS).find]
    library = anchors.load_library()
    if library:
        native = anchors._NativeTables(library, ANCHORS)
        searches.append(lambda text: native.find(text, once=False)[0])
    for text in make_texts():
        for search in searches:
            assert sorted(search(text)) == sorted(plain(text)), text


def test_long_runs_after_a_prefix_are_found() -> None:
    text = b"x acme_" + b"aB3" * 12 + b" y-" + b"q" * 40 + b"! z" + b"w" * 50 + b" _" + b"v" * 31 + b" _" + b"u" * 129
    expected = [(9, 7, 43), (9, 46, 86)]
    assert [hit for hit in anchors._Automaton(ANCHORS, 9).find(text) if hit[0] == 9] == expected
    assert [hit for hit in AnchorSearch(ANCHORS, 9).find(text)[0] if hit[0] == 9] == expected


def test_repetitions_are_looked_at_once() -> None:
    search = AnchorSearch(ANCHORS)
    text = b"password is " * 20_000
    hits, left_out = search.find(text, once=True)
    everything, _ = search.find(text)
    assert len(everything) == 40_000
    assert left_out == search.is_native
    assert not left_out or len(hits) < 300

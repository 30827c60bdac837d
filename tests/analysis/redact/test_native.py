"""The native library and the Python that stands in for it give the same results."""

import json
import random
import subprocess
import sys
from itertools import chain, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.redact import anchors, decoded_forms, document
from holdfast.analysis.redact.document import Document
from holdfast.analysis.redact.scanner import Scanner
from tests.analysis.redact import corpus, named_values, sentences
from tests.analysis.redact.test_corpus import make_text
from tests.analysis.redact.test_redactor import INNOCENT, SECRETS

pytestmark = pytest.mark.skipif(anchors.load_library() is None, reason="the native library is not built here")

ESCAPES = st.lists(
    st.sampled_from(
        [
            *(
                "\\",
                "u0041",
                "\\u0070",
                "\\x41",
                "\\/",
                "&#x41;",
                "&#65;",
                "&#9;",
                "&quot;",
                "&amp",
                ";",
                "%41",
                "%4",
                "a",
            ),
            *("\\_", "\\u{", "\\x{0", "70", "}", "\\U000000", "\\147", "\\063", "\\63", "\\177", "\\8"),
        ]
    ),
    max_size=12,
).map("".join)
VALUES = st.recursive(
    st.one_of(
        st.text(max_size=12), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.none(), ESCAPES
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)


def make_python_scanner() -> Scanner:
    """A scanner as it is where the library is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "load_library", lambda: None)
        return Scanner()


def sample_texts() -> list[bytes]:
    """Texts with secrets and texts without, and both in pieces: what is cut must be read alike too."""
    texts = [
        *(text for text, _ in SECRETS),
        *INNOCENT,
        *(record.text for record in islice(corpus.records(), 0, None, 7)),
    ]
    lists = (named_values.NAMED[::2], named_values.CONFIGURATIONS, sentences.SENTENCES[::2])
    texts += [make_text(one, "3").replace("«", "").replace("»", "") for one in chain.from_iterable(lists)]
    bodies = [text.encode() for text in texts]
    chance = random.Random(11)
    pieces = [text[chance.randrange(len(text) + 1) :][: chance.randint(4, 60)] for text in bodies for _ in range(3)]
    mixed = [b"".join(chance.sample(pieces, 6)) for _ in range(600)]
    return [*bodies, *mixed]


def test_both_find_the_same_secrets() -> None:
    native, python_scanner = Scanner(), make_python_scanner()
    for text in sample_texts():
        assert native.find(text) == python_scanner.find(text), text


def test_undecoded_text_that_holds_a_secret_is_decoded() -> None:
    native = Scanner()
    for text in sample_texts():
        body = json.dumps(text.decode("utf-8", "replace")).encode()
        if native.find(Document(body).text):
            assert native.may_hold_secret(body), body


@settings(max_examples=80, deadline=None)
@given(ESCAPES.map(str.encode), st.booleans())
def test_both_read_escapes_alike(text: bytes, percent: bool) -> None:
    library = anchors.load_library()
    assert library is not None
    decoded, out, source = decoded_forms._decode_natively(library, text, percent)
    assert (decoded, list(out), list(source)) == decoded_forms._decode_escapes(text, percent)


COLOURS = st.lists(
    st.sampled_from(
        [
            *(
                "\x1b",
                "\x1b[0m",
                "\x1b[01;31m\x1b[K",
                "\\u001b[0m",
                "\\\\033[1m",
                "\\e[m",
                "\x1b[",
                "\x1b]8;;http://x\x07",
            ),
            *("\x1b]8;;", "\\", "a", "=", " ", "m", "9;", "ghp_", "-"),
        ]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(COLOURS.map(str.encode))
def test_both_read_colours_alike(text: bytes) -> None:
    library = anchors.load_library()
    assert library is not None
    (shown, out, source), is_within = decoded_forms._strip_natively(library, text)
    python = decoded_forms._strip_colours(text)
    assert is_within == python[1]
    if is_within:
        assert (shown, list(out), list(source)) == python[0]


@settings(max_examples=80, deadline=None)
@given(VALUES, st.booleans(), st.sampled_from((b"", b" ", b" x=1", b',"open')))
def test_both_read_json_alike(value: object, ascii_only: bool, beside: bytes) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") + beside
    text, *places, other = document._flatten_natively(body)
    assert (text, *map(list, places), other) == document._flatten_json(body)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are protected as Linux does it")
def test_no_byte_outside_of_a_text_is_read() -> None:
    run = subprocess.run([sys.executable, "-m", "tests.analysis.redact.guarded_memory"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("texts\n")

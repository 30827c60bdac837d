"""Words are taken out of what quotes them: whole, cut off, on one line, escaped."""

import msgspec

from holdfast.core.erase import INSTEAD, eraser, probe, without

TEXT = "The codename of\nthe merger is Zebrafinch, tell nobody"


def test_whole_and_on_one_line() -> None:
    assert without(f"Hi. {TEXT}. Bye.", TEXT) == f"Hi. {INSTEAD}. Bye."
    assert without(f"Hi. {' '.join(TEXT.split())}", TEXT) == f"Hi. {INSTEAD}"


def test_cut_off_in_the_middle_of_a_word() -> None:
    assert without("The codename of the merger is Zebraf…", TEXT) == f"{INSTEAD}…"


def test_other_words_stay() -> None:
    assert without("The codename of a project", TEXT) == "The codename of a project"


def test_in_json_however_it_is_escaped() -> None:
    row = b'{"prompt": "caf\\u00e9 The codename of\\nthe merger is Zebrafinch, tell nobody", "n": 1}'
    assert msgspec.json.decode(eraser(TEXT)(row)) == {"prompt": f"café {INSTEAD}", "n": 1}


def test_a_row_without_it_is_the_same_bytes() -> None:
    row = b'{ "prompt" : "nothing here" }'
    assert eraser(TEXT)(row) is row


def test_what_is_no_json_is_searched_too() -> None:
    assert b"Zebrafinch" not in eraser(TEXT)(b'{"cut": "The codename of the merger is Zebrafinch, te')


def test_the_probe_is_a_word_no_spelling_hides() -> None:
    assert probe("der Schlüssel heißt Käse") == b"Schl"
    assert probe("日本語") == b""

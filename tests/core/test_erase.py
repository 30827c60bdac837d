"""A text is taken out of what quotes it: whole, cut off, on one line, escaped, in other case, in part."""

import msgspec
import pytest

from holdfast.core.erase import INSTEAD, Quotation, build_eraser, find_excerpts

TEXT = "The codename of\nthe merger is Zebrafinch, tell nobody"
LONG = "Our staging password rotates every Tuesday because the vendor Marmalade insists upon it in writing"


def without(quoting: str, text: str) -> str:
    return Quotation(text).without(quoting)


def test_whole_and_on_one_line() -> None:
    assert without(f"Hi. {TEXT}. Bye.", TEXT) == f"Hi. {INSTEAD}. Bye."
    assert without(f"Hi. {' '.join(TEXT.split())}", TEXT) == f"Hi. {INSTEAD}"


def test_cut_off_in_the_middle_of_a_word() -> None:
    assert without("The codename of the merger is Zebraf…", TEXT) == f"{INSTEAD}…"
    assert without("The codename of the merger is Zebraf", TEXT) == INSTEAD


@pytest.mark.parametrize(
    "echo",
    [
        "the codename of the merger is zebrafinch, tell nobody",
        "**The codename** of the `merger` is *Zebrafinch*, tell nobody",
        "> The codename of\n> the merger is Zebrafinch, tell nobody",
        '{\\"said\\": \\"The codename of\\nthe merger is Zebrafinch, tell nobody\\"}',
        "/find?q=The%20codename%20of%20the%20merger%20is%20Zebrafinch,%20tell%20nobody",
    ],
)
def test_an_echo_in_another_dress(echo: str) -> None:
    assert "zebrafinch" not in without(echo, TEXT).lower()


def test_a_long_part_from_the_middle() -> None:
    left = without("Noted: because the vendor Marmalade insists upon it. Next?", LONG)
    assert left == f"Noted: {INSTEAD}. Next?"
    assert "armalade" not in without("… vendor Marmalade insists upon it in writing", LONG)


def test_other_words_stay() -> None:
    for other in ("The codename of a project", "is it in writing", "every Tuesday because the build is slow"):
        assert without(other, TEXT) == without(other, LONG) == other


def test_a_single_word_goes_also_out_of_longer_names() -> None:
    assert (
        without("class ZebrafinchService: see zebrafinch.py", "Zebrafinch")
        == f"class {INSTEAD}Service: see {INSTEAD}.py"
    )
    assert without("an art of cart", "art") == f"an {INSTEAD} of cart"


@pytest.mark.parametrize(
    "other",
    [
        "/home/me/work/clients/acme/web", "/home/me/work/clients/acme/api-v2", "/home/me/work/clients/acme/api_old",
        "/home/me/work/clients/acme/apis", "/home/me/work/clients/acme/api.bak", "/mnt/home/me/work/clients/acme/api",
        "/home/me/work/clients/acme",
    ],
)  # fmt: skip
def test_a_folder_is_named_as_a_whole(other: str) -> None:
    """Projects lie beside one another: what is erased of one must leave the paths of the others."""
    named = Quotation("/home/me/work/clients/acme/api", is_name=True)
    assert named.without(f"cd {other} && ls {other}/src") == f"cd {other} && ls {other}/src"


@pytest.mark.parametrize(
    ("quoting", "left"),
    [
        ("cd /home/me/work/api && ls", f"cd /{INSTEAD} && ls"),
        ("see /home/me/work/api/src/a.py.", f"see /{INSTEAD}/src/a.py."),
        ("It is in /home/me/work/api.", f"It is in /{INSTEAD}."),
        ("file:///home/me/work/api", f"file:///{INSTEAD}"),
        (r"\/home\/me\/work\/api", rf"\/{INSTEAD}"),
        (".claude/projects/-home-me-work-api/1.jsonl", f".claude/projects/-{INSTEAD}/1.jsonl"),
    ],
)
def test_a_folder_goes_however_it_is_written(quoting: str, left: str) -> None:
    assert Quotation("/home/me/work/api", is_name=True).without(quoting) == left


def test_a_session_is_named_as_a_whole() -> None:
    named = Quotation("session-1", is_name=True)
    assert named.without("session-10, session-1-b, session-1_2") == "session-10, session-1-b, session-1_2"
    assert named.without("rollout-session-1.jsonl") == f"rollout-{INSTEAD}.jsonl"


def test_in_json_however_it_is_escaped() -> None:
    row = b'{"prompt": "caf\\u00e9 The codename of\\nthe merger is Zebrafinch, tell nobody", "n": 1}'
    assert msgspec.json.decode(build_eraser([Quotation(TEXT)])(row)) == {"prompt": f"café {INSTEAD}", "n": 1}


def test_letters_escaped_twice() -> None:
    text = "der Schlüssel heißt Käsekuchen morgen"
    inner = (
        msgspec.json.encode({"a": text})
        .decode()
        .replace("ü", "\\u00fc")
        .replace("ä", "\\u00e4")
        .replace("ß", "\\u00df")
    )
    assert "kuchen" not in without(inner, text)


def test_the_files_it_named_go_with_it() -> None:
    row = msgspec.json.encode(
        {"text": "Please keep it in vault/zebra.key for now", "files": ["vault/zebra.key", "app.py"]}
    )
    left = msgspec.json.decode(build_eraser([Quotation("Please keep it in vault/zebra.key for now")])(row))
    assert left == {"text": INSTEAD, "files": ["app.py"]}


def test_a_row_without_it_is_the_same_bytes() -> None:
    row = b'{ "prompt" : "nothing here" }'
    assert build_eraser([Quotation(TEXT)])(row) is row


def test_what_is_no_json_is_searched_too() -> None:
    torn = b'\xff\x00{"cut": "The codename of the merger is Zebrafinch, te'
    left = build_eraser([Quotation(TEXT)])(torn)
    assert b"Zebrafinch" not in left
    assert left.startswith(b"\xff\x00")


def test_probes_are_letters_no_spelling_hides() -> None:
    assert Quotation("der Schlüssel heißt Käse").probes[0] == b"schl"
    assert Quotation("日本語").probes == (b"",)
    assert b"marmalade" in Quotation(LONG).probes


def test_excerpts_name_the_field() -> None:
    assert list(find_excerpts({"a": {"b": ["x", TEXT]}}, Quotation(TEXT)))[0][0] == "a.b"

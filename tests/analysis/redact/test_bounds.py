"""Where a rule begins and where it ends: the last text it takes and the first one it leaves."""

import pytest

from holdfast.analysis.redact.judge import has_random_tail
from holdfast.analysis.redact.redactor import Redactor
from tests.analysis.redact.examples import make_example

VALUE = "Tr0ub4dor3xx"


def redacted(text: str) -> str:
    return Redactor().redact_text(text)[0]


def test_what_a_removal_brings_to_light_is_removed_and_counted_too() -> None:
    """Once its id is known for a key, what is assigned to it is one."""
    key, secret = "sk_live_" + make_example("<w24>", "id"), make_example("<h64>", "its secret")
    text, findings = Redactor().redact_text(f"{key}={secret}")
    assert text == "[redacted:stripe-key]=[redacted:key]"
    assert [one.kind for one in findings] == ["stripe-key", "key"]
    body = f'{{"line": "{key}={secret}"}}'.encode()
    assert Redactor().redact(body) == (b'{"line": "[redacted:stripe-key]=[redacted:key]"}', 2)


@pytest.mark.parametrize("size", [35, 50])
def test_a_user_id_and_a_random_run_are_a_token(size: int) -> None:
    run = make_example(f"<w{size}>", "run")
    assert redacted(f"id 123456789012345678-{run} ok") == "id [redacted:twitter-token] ok"


@pytest.mark.parametrize(
    "run",
    [
        make_example("<w34>", "short"), make_example("<w51>", "long"), "abcdefghijklmnopqrstuvwxyzabcdefghijklmn",
        "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMn", "internationalization-configuration-manage",
    ],
)  # fmt: skip
def test_a_number_and_other_runs_are_none(run: str) -> None:
    """Shorter, longer, or without a digit: a name behind a number."""
    text = f"id 123456789012345678-{run} ok"
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("body", "random"),
    [
        (b"a1b2c3d4e5f6", True),
        (b"a1b2c3d4e5f", False),  # eleven
        (b"abcdeFghijk1mnopqrstuvwx", True),  # two changes of class in 24
        (b"abcdefghijk1mnopqrstuvwx", False),  # one
        (b"abcDefGhiJklMnoPqr", False),  # no digit
        (b"prefix_a1b2c3d4e5f6", True),
    ],
)
def test_a_tail_is_random_from_twelve_characters_and_one_change_in_twelve_on(body: bytes, random: bool) -> None:
    assert has_random_tail(body) is random


@pytest.mark.parametrize("call", ["password(user)", f"password({VALUE})", "get_password(user_id)", "reset_password()"])
def test_what_is_called_is_no_value(call: str) -> None:
    assert redacted(call) == call


@pytest.mark.parametrize("quote", ['("', "('", "(`"])
def test_a_quoted_argument_is_one(quote: str) -> None:
    assert VALUE not in redacted(f"password{quote}{VALUE}{quote[-1]})")


@pytest.mark.parametrize("end", [");", "; ", ".", "!", "&", "#", "@", "*"])
def test_a_name_that_ends_its_sentence_has_no_value(end: str) -> None:
    text = f"password{end}{VALUE}"
    assert redacted(text) == text


@pytest.mark.parametrize("before", ["?a=b", "&a=b"])
def test_a_value_of_a_query_ends_at_the_next_parameter(before: str) -> None:
    """Also where the address is folded so that the name begins a line; elsewhere `&` may belong to a password."""
    assert redacted(f"{before}\npassword={VALUE}&next=home") == f"{before}\npassword=[redacted:password]&next=home"
    assert redacted(f"a=b\npassword={VALUE}&next") == "a=b\npassword=[redacted:password]"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("password: letmein", True),
        ("password: letme", False),  # five letters
        ("password: Letmein", False),  # a name or a type
        ("password: letmein now", False),  # a sentence goes on
        ("PASSWORD=letmein", True),
        ("password=letmein", False),  # a variable of a program
        ("password letmein", False),  # two words
        ("password manager", False),
    ],
)
def test_a_plain_word_is_a_password_where_only_one_can_stand(text: str, is_one: bool) -> None:
    assert ("[redacted:password]" in redacted(text)) is is_one

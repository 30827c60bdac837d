"""Logins in base64: with their padding, without it, and what only looks like one."""

import base64

import pytest

from holdfast.analysis.redact import redact
from holdfast.analysis.redact.decoded_values import is_encoded_login

LOGINS = ["ada:hunter22xy", "ada:hunter22xyz", "ada:hunter22xyzw"]
"""Of three lengths: none, one and two signs of padding."""


@pytest.mark.parametrize("login", LOGINS)
def test_an_encoded_login_is_taken_out_padded_or_not(login: str) -> None:
    padded = base64.b64encode(login.encode())
    for value in (padded, padded.rstrip(b"=")):
        assert is_encoded_login(value)
        for line in (b"curl -H 'Authorization: Basic %s' x", b"auth=%s", b'{"auth": "%s"}'):
            cleaned, findings = redact(line % value)
            assert value not in cleaned and findings, line % value


@pytest.mark.parametrize(
    "text", [b":password", b"name:", b"no colon at all", b"a b:password", b"a\x01:password", b"a:pass\xffword"]
)
def test_what_is_no_name_and_password_is_no_login(text: bytes) -> None:
    assert not is_encoded_login(base64.b64encode(text))


def test_text_that_is_no_base64_is_no_login() -> None:
    assert not is_encoded_login(b"not!base64!")

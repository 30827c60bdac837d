"""Seed 003's functions from a shell: what is printed, and with which code it ends."""

import pytest

from holdfast.api import uat


@pytest.mark.parametrize(
    ("name", "answer", "printed", "code"),
    [
        ("get_session_context", {"steps": 2}, '{"steps": 2}\n', 0),
        ("get_session_context", "as it is", "as it is\n", 0),
        ("get_session_context", None, "", 1),
        ("get_hook_signal", None, "null\n", 0),
        ("validate_session_state", True, "", 0),
        ("validate_session_state", False, "", 1),
        ("acquire_session_lock", False, "", 1),
        ("release_session_lock", False, "", 0),
    ],
)
def test_an_answer_is_printed_once_and_a_refusal_is_a_code(
    name: str,
    answer: object,
    printed: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(uat.uat_session, name, lambda *_words, **_owner: answer)
    assert uat.main([name, "session-1"]) == code
    assert capsys.readouterr().out == printed

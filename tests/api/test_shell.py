"""`holdfast api NAME`: every function of the earlier systems from a shell."""

import json
from pathlib import Path

import pytest

import holdfast.api
from holdfast.api import shell


def test_the_result_is_printed_and_a_failure_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    functions = {"both": lambda *given: list(given), "no": lambda: False, "path": lambda: "/a/b"}
    assert shell.main(["both", '{"a": 1}', "plain", "[not json"], functions) == 0
    assert json.loads(capsys.readouterr().out) == [{"a": 1}, "plain", "[not json"]
    assert (shell.main(["no"], functions), shell.main(["path"], functions)) == (1, 0)
    assert capsys.readouterr().out == "/a/b\n"
    assert (shell.main(["unknown"], functions), shell.main(["no", "too", "many"], functions)) == (2, 2)


def test_an_old_state_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S1-16."""
    file = tmp_path / "SESSION_STATE.md"
    file.write_text("PROJECT: shop\nNEXT_ACTIONS:\n- {action: Ship it, priority: high}\n")
    assert shell.main(["read_state", str(file)], holdfast.api.FUNCTIONS) == 0
    state = json.loads(capsys.readouterr().out)
    assert (state["PROJECT"], state["TASKS"]["P1_urgent"][0]["description"]) == ("shop", "Ship it")


def test_functions_of_every_earlier_system_are_there() -> None:
    named = {"initialize_session_state", "migrate_v3_to_v4", "approve_for_session", "create_session_state"}
    assert named <= holdfast.api.FUNCTIONS.keys()

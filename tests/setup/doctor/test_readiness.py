"""How ready each agent is, step by step."""

from typing import Any

import pytest

from holdfast.agents import AGENTS
from holdfast.setup.doctor import readiness


@pytest.mark.parametrize(
    ("seen", "done", "said", "next_act"),
    [
        ({}, None, "no session yet", "start codex and work as always"),
        ({"sessions": 3, "last": 1_760_000_000_000}, True, "3 sessions on record, the last ", ""),
    ],
)
def test_an_agent_is_seen_once_a_session_of_its_is_on_record(
    seen: dict[str, Any], done: bool | None, said: str, next_act: str
) -> None:
    step = readiness._seen_step(AGENTS["codex"], seen)
    assert (step.name, step.done, step.next) == ("seen", done, next_act)
    assert step.text.startswith(said)

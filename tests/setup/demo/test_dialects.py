"""Every step of the recorded day becomes payloads in its agent's dialect."""

import json
from pathlib import Path

from holdfast.setup.demo.dialects import DIALECTS, Stage
from holdfast.setup.demo.moments import read_day
from holdfast.setup.demo.processes import HERE

SILENT = {"person", "crash"}
DONE = {"file": "/p/a.py", "before": "a\n", "after": "b\n", "hunks": [], "text": "a\n", "out": "done"}


def test_no_value_of_a_payload_is_left_open(tmp_path: Path) -> None:
    seen = set()
    for moment in read_day(HERE / "day.yaml", ends=1_763_550_000_000).moments():
        stage = Stage(moment.cast, tmp_path / "app", tmp_path)
        payloads = list(
            DIALECTS[moment.cast.agent].hook_payloads(stage, moment, DONE if moment.what == "after" else {})
        )
        assert payloads or moment.what in SILENT, moment
        for event, payload in payloads:
            seen.add((moment.cast.agent, event))
            assert payload["hook_event_name"] == event and payload["session_id"] == moment.cast.id
            assert payload.get("tool_name") != "" and '"$' not in json.dumps(payload)
    assert {agent for agent, _ in seen} == set(DIALECTS)
    assert ("claude-code", "PostToolUseFailure") in seen

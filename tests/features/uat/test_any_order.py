"""Whatever happens in whatever order: the state is the replay of the log, bounded, and makes sense (P5)."""

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.errors import CommandRefused
from holdfast.features.uat.files import missing_fields
from tests.features.uat.kit import CLICK, FILL, LOGIN, NAVIGATE, SHOT, SNAPSHOT, URL, Lab

TOOLS = st.sampled_from((NAVIGATE, FILL, CLICK, SNAPSHOT, SHOT, "Bash", "Read"))
CALLS = st.sampled_from(("a", "b", "c", ""))
STEPS = st.one_of(
    st.tuples(st.just("before"), TOOLS, CALLS),
    st.tuples(st.just("after"), TOOLS, CALLS),
    st.tuples(st.just("failed"), TOOLS, CALLS),
    st.tuples(st.just("prompt"), st.sampled_from(("test the login flow", "thanks", "run the login-flow scenario"))),
    st.tuples(
        st.just("command"),
        st.sampled_from(("start", "end", "step", "signal", "update", "call", "assert")),
        st.integers(-1, 7),
    ),
    st.tuples(st.just("hook"), st.sampled_from(("Stop", "SessionEnd", "SessionStart"))),
    st.tuples(st.just("work")),
)


def play(lab: Lab, step: tuple) -> None:
    what, *rest = step
    lab.now += 100
    if what in ("before", "after", "failed"):
        tool, call = rest
        name = {"before": "PreToolUse", "after": "PostToolUse", "failed": "PostToolUseFailure"}[what]
        fields = {"tool_response": "Welcome"} if what == "after" else {"error": "no"} if what == "failed" else {}
        lab.hook(name, tool_name=tool, tool_input={"url": URL}, **({"tool_use_id": call} if call else {}), **fields)
    elif what == "prompt":
        lab.hook("UserPromptSubmit", prompt=rest[0])
    elif what == "hook":
        lab.hook(rest[0], reason="other", source="resume", mode="tell")
    elif what == "work":
        lab.work()
    else:
        _command(lab, *rest)


def _command(lab: Lab, name: str, number: int) -> None:
    args = {
        "start": {"scenario": "login-flow"},
        "step": {"step": number, "status": ("completed", "failed", "in_progress")[number % 3]},
        "signal": {"signal": f"s{number}", "data": number},
        "update": {"patches": [{"context": {f"k{number}": number}}]},
        "call": {"call": {"toolName": "t", "stepNumber": number if number > 0 else None}},
        "assert": {"description": f"d{number}", "result": ("passed", "failed")[number % 2]},
    }.get(name, {})
    try:
        lab.command(name, **args)
    except CommandRefused:
        pass


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=1, max_size=25))
def test_any_order(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        try:
            lab.scenario(LOGIN)
            for step in steps:
                play(lab, step)
            check(lab)
        finally:
            lab.close()


def check(lab: Lab) -> None:
    assert lab.replayed() == []
    for run in lab.session["runs"]:
        doc = lab.doc("uat", run)
        assert doc is not None
        assert (doc["status"] == "active") == (lab.session["active"] == run)
        assert len(json.dumps(doc)) < 40_000
        assert doc["ok"] + doc["failed"] + doc["interrupted"] == doc["calls"]
    if lab.session["runs"]:
        document = lab.document
        assert missing_fields(document) == []
        assert len(document["execution"]["toolCalls"]) == document["performance"]["toolCallCount"]
        ids = [c["id"] for c in document["execution"]["toolCalls"]]
        assert len(ids) == len(set(ids))
        for step in document["scenario"]["steps"]:
            assert step["duration"] is None or step["duration"] >= 0
            assert (step["status"] == "pending") <= (step["startTime"] is None)

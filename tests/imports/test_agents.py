"""Sessions as the real programs wrote them down, imported: turns, tools, answers, subagents, tokens; broken files."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS
from holdfast.imports import IMPORTERS
from holdfast.imports.source import Place, Skipped
from holdfast.usage.model import KINDS, Usage, total_of
from holdfast.usage.scan import Ledger, scan
from tests.usage.kit import EXPECTED, sample_home

EVERY = pytest.mark.parametrize("agent", EXPECTED)
SECOND_RUN = {"claude-code", "codex", "gemini", "copilot", "qwen", "opencode"}
WITH_LANES = set(EXPECTED) - {"continue"}


def told(home: Path, agent: str) -> tuple[list[Event], list[Skipped]]:
    place, importer = Place(home, home), IMPORTERS[agent]
    found = [one for file in importer.find(place) for one in importer.read(file, place)]
    return [e for e in found if isinstance(e, Event)], [s for s in found if isinstance(s, Skipped) and not s.expected]


def main(events, kind):
    return [e for e in events if e.kind == kind and not e.data.get("lane")]


def spent(events) -> Usage:
    tokens = [e.data["tokens"] for e in events if e.kind == "model.answered"]
    return total_of([Usage(*(one.get(kind) for kind in KINDS)) for one in tokens])


@EVERY
def test_a_session_is_what_its_hooks_had_told(agent, tmp_path):
    events, skipped = told(sample_home(tmp_path, agent), agent)
    assert skipped == []
    assert {e.kind for e in events} <= set(HOOK_KINDS)
    assert len({e.session for e in events}) == 1 and {e.agent for e in events} == {agent}
    assert {e.project for e in events} == {"/home/dev/project"}
    typed = [e.data["prompt"] for e in main(events, "prompt.submitted") if not e.data.get("synthetic")]
    assert [text.strip('"') for text in typed] == ["please do it", "and again"][: 1 + (agent in SECOND_RUN)]
    assert len(main(events, "session.started")) == len(main(events, "session.ended")) == 1
    ends = [e.data.get("message") for e in main(events, "turn.ended")]
    assert "all done" in ends or "done" in ends
    assert len(main(events, "turn.ended")) == len(main(events, "prompt.submitted"))


@EVERY
def test_tools_begin_and_end(agent, tmp_path):
    events, _ = told(sample_home(tmp_path, agent), agent)
    begun = {e.data["call"]: e for e in events if e.kind == "tool.started"}
    ended = {e.data["call"]: e for e in events if e.kind in ("tool.finished", "tool.failed")}
    assert set(begun) == set(ended)
    first = main(events, "tool.started")[0]
    assert (first.data["action"], first.data["command"]) == ("shell", "echo from-main")
    assert "from-main" in ended[first.data["call"]].data["output"]
    assert all(ended[call].at >= begun[call].at > 1_700_000_000_000 for call in begun)


@pytest.mark.parametrize("agent", sorted(WITH_LANES))
def test_a_subagent_is_a_lane_of_its_session(agent, tmp_path):
    events, _ = told(sample_home(tmp_path, agent), agent)
    kinds = Counter(e.kind for e in events if e.data.get("lane"))
    assert kinds["subagent.started"] == kinds["subagent.ended"] >= 1
    assert kinds["turn.ended"] == kinds["session.started"] == 0


@pytest.mark.parametrize("agent", ["claude-code", "gemini", "copilot", "qwen", "opencode", "kimi"])
def test_a_subagent_is_told_while_its_session_goes_on(agent, tmp_path):
    """In the order of their times: a turn that no prompt began would come of the subagent's calls otherwise."""
    events, _ = told(sample_home(tmp_path, agent), agent)
    kinds = [e.kind for e in events]
    assert kinds[0] == "session.started"
    assert kinds.index("prompt.submitted") < kinds.index("subagent.started") < kinds.index("session.ended")
    inside = [n for n, e in enumerate(events) if e.kind == "tool.finished" and e.data.get("lane")]
    ends = [n for n, e in enumerate(events) if e.kind == "turn.ended"]
    assert max(inside) < max(ends)


@EVERY
def test_the_tokens_are_those_that_are_read_live(agent, tmp_path):
    home = sample_home(tmp_path, agent)
    events, _ = told(home, agent)
    assert spent(events) == EXPECTED[agent]
    read = {record.key for record in scan(home, [agent], Ledger())}
    assert {e.key for e in events if e.kind == "model.answered"} == read, "one event, whichever way it comes"
    assert all(e.data["model"] for e in events if e.kind == "model.answered")


@EVERY
def test_twice_is_once(agent, tmp_path):
    home = sample_home(tmp_path, agent)
    first, second = told(home, agent)[0], told(home, agent)[0]
    assert [e.key for e in first] == [e.key for e in second]
    assert len({e.key for e in first}) == len(first)
    assert all(e.key.isalnum() and len(e.key) <= 64 for e in first)


@EVERY
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_that_is_cut_or_bent_breaks_nothing_and_the_rest_comes_later(agent, data, tmp_path):
    home = sample_home(tmp_path / os.urandom(8).hex(), agent)
    whole = {e.key for e in told(home, agent)[0] if e.kind not in ("session.ended", "turn.ended", "subagent.ended")}
    for path in list(IMPORTERS[agent].find(Place(home, home))):
        content = path.read_bytes()
        cut = data.draw(st.integers(0, len(content)))
        path.write_bytes(content[:cut])
        told(home, agent)
        path.write_bytes(content[:cut] + data.draw(st.binary(max_size=40)) + content[cut:])
        told(home, agent)
        path.write_bytes(content)
    assert whole <= {e.key for e in told(home, agent)[0]}


lines = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "type", "message", "content", "data", "event", "payload", "toolCalls", "parts", "timestamp", "usage", "tokens",
)  # fmt: skip


@pytest.mark.parametrize("agent", [name for name in EXPECTED if name not in ("continue", "opencode")])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=st.dictionaries(st.sampled_from(FIELDS), lines, min_size=1, max_size=3), which=st.integers(0, 60))
def test_records_of_an_unknown_version_break_nothing(agent, change, which, tmp_path):
    home = sample_home(tmp_path / os.urandom(8).hex(), agent)
    for path in IMPORTERS[agent].find(Place(home, home)):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        records[which % len(records)] |= change
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    told(home, agent)


def test_a_compaction_of_claude_code(tmp_path):
    home = sample_home(tmp_path, "claude-code")
    (path,) = (home / ".claude/projects/-home-dev-project").glob("*.jsonl")
    record = {"type": "user", "uuid": "c1", "sessionId": path.stem, "isCompactSummary": True,
              "timestamp": "2026-11-15T22:00:00Z", "message": {"content": "This session goes on from another."}}  # fmt: skip
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    (compacted,) = [e for e in told(home, "claude-code")[0] if e.kind == "compact.ended"]
    assert compacted.data["summary"] == "This session goes on from another."

"""Sessions as the real programs wrote them down, imported: turns, tools, answers, subagents, tokens; broken files."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.agents import source
from holdfast.analysis.transcripts import ImportLocation, Skipped
from holdfast.analysis.usage.model import KINDS, Usage
from holdfast.analysis.usage.spending import Spending
from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS
from holdfast.features.sessions.state.reducer import reduce_session
from holdfast.features.sessions.views.figures import build_figures
from holdfast.setup.imports import IMPORTERS
from holdfast.setup.imports.turns import believable_times, number_turns
from tests.analysis.usage.kit import EXPECTED, Ledger, sample_home, scan_usage, total_of

EVERY = pytest.mark.parametrize("agent", EXPECTED)
SECOND_RUN = {"claude-code", "codex", "gemini", "copilot", "qwen", "opencode"}
IN_BACKGROUND = {"claude-code", "qwen", "droid"}
"""There a turn may end before the subagents that it began."""
WITH_LANES = set(EXPECTED)


def told(home: Path, agent: str) -> tuple[list[Event], list[Skipped]]:
    place, importer = ImportLocation(home, home), IMPORTERS[agent]
    found = [one for file in importer.find_files(place) for one in importer.read(file, place)]
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


@pytest.mark.parametrize("agent", sorted(WITH_LANES))
def test_a_subagent_is_told_while_its_session_goes_on(agent, tmp_path):
    """In the order of their times: a turn that no prompt began would come of the subagent's calls otherwise."""
    events, _ = told(sample_home(tmp_path, agent), agent)
    kinds = [e.kind for e in events]
    assert kinds[0] == "session.started"
    assert kinds.index("prompt.submitted") < kinds.index("subagent.started") < kinds.index("session.ended")
    inside = [n for n, e in enumerate(events) if e.data.get("lane")]
    first_answer = [n for n, e in enumerate(events) if e.kind == "turn.ended" and e.data.get("message")][0]
    assert inside and max(inside) < (len(events) if agent in IN_BACKGROUND else first_answer)


@EVERY
def test_the_tokens_are_those_that_are_read_live(agent, tmp_path):
    home = sample_home(tmp_path, agent)
    events, _ = told(home, agent)
    assert spent(events) == EXPECTED[agent]
    read = {record.key for record in scan_usage(home, [agent], Ledger())}
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
    for path in list(IMPORTERS[agent].find_files(ImportLocation(home, home))):
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


@pytest.mark.parametrize("agent", [name for name in EXPECTED if name != "opencode"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=st.dictionaries(st.sampled_from(FIELDS), lines, min_size=1, max_size=3), which=st.integers(0, 60))
def test_records_of_an_unknown_version_break_nothing(agent, change, which, tmp_path):
    home = sample_home(tmp_path / os.urandom(8).hex(), agent)
    for path in IMPORTERS[agent].find_files(ImportLocation(home, home)):
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


# ── what no real program could be asked for, and files that misbehave ────────────────────────────────────────────────


def test_a_line_beyond_all_bounds_is_named_and_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LONGEST_LINE", 2_000)
    home = sample_home(tmp_path, "claude-code")
    whole, _ = told(home, "claude-code")
    (file, *_) = IMPORTERS["claude-code"].find_files(ImportLocation(home, home))
    file.write_text(json.dumps({"type": "user", "message": "x" * 9_000}) + "\n" + file.read_text())
    events, skipped = told(home, "claude-code")
    assert [e.key for e in events] == [e.key for e in whole]
    assert [s.where for s in skipped] == [f"{file}:1"]


def test_a_transcript_that_grows_while_it_is_read_is_read_to_its_new_end(tmp_path):
    home = sample_home(tmp_path, "claude-code")
    place, importer = ImportLocation(home, home), IMPORTERS["claude-code"]
    (file, *_) = importer.find_files(place)
    lines_of = file.read_text().splitlines(keepends=True)
    whole, _ = told(home, "claude-code")
    file.write_text("".join(lines_of[:5]))
    reading = importer.read(file, place)
    first = next(reading)
    with file.open("a") as more:
        more.write("".join(lines_of[5:]))
    found = [one for one in (first, *reading) if isinstance(one, Event)]
    assert [e.key for e in found] == [e.key for e in whole]


@pytest.mark.parametrize(
    "wrong", ["1970-01-01T00:00:00.000Z", "2199-01-01T00:00:00.000Z", "yesterday", None, -5, 1e300]
)
def test_a_clock_that_is_wrong_makes_no_figure_negative(wrong, tmp_path):
    home = sample_home(tmp_path, "claude-code")
    (file, *_) = IMPORTERS["claude-code"].find_files(ImportLocation(home, home))
    records = [json.loads(line) for line in file.read_text().splitlines()]
    for record in records[len(records) // 2 :: 3]:
        record["timestamp"] = wrong
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    session = None
    for event in number_turns(told(home, "claude-code")[0]):
        session = reduce_session(session, event)
    shown = build_figures(session, Spending(), session.at)
    assert shown.duration_ms >= 0 and (shown.prompts, shown.calls) == (2, 3)


def test_a_time_of_the_future_is_that_of_the_record_before(tmp_path):
    home = sample_home(tmp_path, "claude-code")
    (file, *_) = IMPORTERS["claude-code"].find_files(ImportLocation(home, home))
    records = [json.loads(line) for line in file.read_text().splitlines()]
    for record in records[len(records) // 2 :: 3]:
        record["timestamp"] = "9999-12-31T23:59:59.000Z"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    events, _ = told(home, "claude-code")
    latest = max(event.at for event in events if event.at < 250_000_000_000_000)
    assert max(event.at for event in events) > latest
    assert max(event.at for event in believable_times(events, latest)) == latest


def test_a_call_that_gemini_was_refused_never_ran(tmp_path):
    """As 0.61.0 writes it down: a call that failed, with the reason of the hook."""
    home = sample_home(tmp_path, "gemini")
    (chat,) = IMPORTERS["gemini"].find_files(ImportLocation(home, home))
    response = {"functionResponse": {"response": {"error": "Tool execution blocked: not today."}}}
    made = {
        "id": "c9",
        "name": "run_shell_command",
        "args": {"command": "rm x"},
        "status": "error",
        "result": [response],
    }
    line = {"id": "m9", "type": "gemini", "timestamp": "2026-11-15T21:14:00Z", "content": "", "toolCalls": [made]}
    chat.write_text(chat.read_text() + json.dumps(line) + "\n")
    events, _ = told(home, "gemini")
    ended = [e for e in events if e.data.get("call") == "c9" and e.kind != "tool.started"]
    assert [(e.kind, e.data["reason"]) for e in ended] == [("permission.denied", "not today.")]


def test_a_turn_of_copilot_that_the_person_stopped(tmp_path):
    home = sample_home(tmp_path, "copilot")
    (path,) = IMPORTERS["copilot"].find_files(ImportLocation(home, home))
    asked = {"type": "user.message", "id": "u9", "timestamp": "2030-01-01T10:00:00Z", "data": {"content": "go"}}
    stopped = {"type": "abort", "id": "a9", "timestamp": "2030-01-01T10:00:07Z", "data": {"reason": "user_initiated"}}
    path.write_text(path.read_text() + json.dumps(asked) + "\n" + json.dumps(stopped) + "\n")
    events, _ = told(home, "copilot")
    ends = [(e.kind, e.data["turn"]) for e in events if e.kind in ("turn.ended", "turn.interrupted")]
    assert ends[-1] == ("turn.interrupted", "u9")
    assert [kind for kind, _ in ends].count("turn.interrupted") == 1


@pytest.mark.parametrize(("agent", "kind"), [("codex", "default"), ("copilot", "general-purpose")])
def test_a_subagent_is_named_and_asked_as_its_hooks_tell(agent, kind, tmp_path):
    events, _ = told(sample_home(tmp_path, agent), agent)
    inside = [e for e in events if e.data.get("lane") and e.kind in HOOK_KINDS and e.kind != "model.answered"]
    assert {e.data["lane_type"] for e in inside} == {kind}
    (asked,) = [e for e in inside if e.kind == "prompt.submitted"]
    assert (asked.data["prompt"], asked.data.get("synthetic")) == ("MARK please look", None)


def test_a_turn_ends_with_its_last_words(tmp_path):
    """Not with the last thing that it did before them: its model may have thought long."""
    events, _ = told(sample_home(tmp_path, "copilot"), "copilot")
    end = main(events, "turn.ended")[0]
    assert end.at > max(e.at for e in main(events, "tool.finished") if e.at < end.at)


def test_opencodes_own_title_is_that_of_the_session(tmp_path):
    events, _ = told(sample_home(tmp_path, "opencode"), "opencode")
    assert [(e.data["title"], e.data.get("lane")) for e in events if e.kind == "session.titled"] == [("ok", None)]

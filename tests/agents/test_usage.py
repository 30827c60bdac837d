"""Figures of every agent: as recorded, cut anywhere, copied, rewritten, rotated, broken."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.agents.claude_code import usage as claude_code
from holdfast.agents.codex import usage as codex
from holdfast.agents.copilot import usage as copilot
from holdfast.agents.gemini import usage as gemini
from holdfast.agents.opencode import transcript as opencode
from holdfast.agents.qwen import usage as qwen
from holdfast.analysis.usage import reader as follow
from holdfast.analysis.usage.model import NOTHING, Usage
from holdfast.analysis.usage.reader import LiveSession, Position, records_of
from holdfast.features.sessions.jobs.agent_files import transcripts_of
from tests.analysis.usage.kit import EXPECTED, READERS, Ledger, sample_home, scan_usage, total_of

EVERY = pytest.mark.parametrize("agent", EXPECTED)
LINES = ("claude-code", "codex", "gemini", "copilot", "qwen", "kimi")


def totals(records) -> Usage:
    return total_of([record.spent for record in records])


@EVERY
def test_the_figures_are_those_that_the_model_said(agent, tmp_path):
    records = list(scan_usage(sample_home(tmp_path, agent)))
    assert totals(records) == EXPECTED[agent]
    assert {record.agent for record in records} == {agent}
    assert len({record.session for record in records}) == 1, "subagents belong to the session that began them"
    assert all(record.at > 1_700_000_000_000 and record.model for record in records)


@pytest.mark.parametrize("agent", EXPECTED)
def test_subagents_are_lanes(agent, tmp_path):
    lanes = {record.lane for record in scan_usage(sample_home(tmp_path, agent))}
    assert "" in lanes and len(lanes) > 1


@EVERY
def test_a_second_look_tells_nothing_new(agent, tmp_path):
    home = sample_home(tmp_path, agent)
    for reader in READERS[agent]:
        for path in reader.find_files(home):
            position = reader.read(Position(str(path))).position
            assert reader.read(position).records == []


@EVERY
def test_a_copy_of_the_whole_home_is_counted_once(agent, tmp_path):
    """A resumed or forked session repeats its parent in a file of another name."""
    ledger = Ledger()
    first = list(scan_usage(sample_home(tmp_path, agent), ledger=ledger))
    assert list(scan_usage(sample_home(tmp_path / "again", agent), ledger=ledger)) == []
    assert totals(first) == EXPECTED[agent]


@pytest.mark.parametrize("agent", LINES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_cut_anywhere_comes_to_the_same_once_the_rest_is_there(agent, data, tmp_path):
    home = sample_home(tmp_path / os.urandom(8).hex(), agent)
    reader = READERS[agent][0]
    path = max(reader.find_files(home), key=lambda file: file.stat().st_size)
    whole, expected = path.read_bytes(), totals(records_of(reader, path))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=1, max_size=4)))
    path.write_bytes(b"")
    position, records = Position(str(path)), []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with path.open("ab") as file:
            file.write(whole[begin:end])
        reading = reader.read(position)
        position, records = reading.position, records + reading.records
        assert reading.bad == 0
    assert totals(records) == expected


@pytest.mark.parametrize("agent", LINES)
def test_small_chunks_change_nothing(agent, tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "CHUNK", 1000)
    monkeypatch.setattr(follow, "MOST_PER_READ", 3000)
    assert totals(scan_usage(sample_home(tmp_path, agent))) == EXPECTED[agent]


@pytest.mark.parametrize("agent", LINES)
def test_a_line_beyond_all_bounds_is_passed_over(agent, tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "CHUNK", 1000)
    monkeypatch.setattr(follow, "LONGEST_LINE", 20_000)
    home = sample_home(tmp_path, agent)
    for path in READERS[agent][0].find_files(home):
        path.write_bytes(b'{"usage": "' + b"x" * 50_000 + b'"}\n' + path.read_bytes())
    assert totals(scan_usage(home)) == EXPECTED[agent]


@pytest.mark.parametrize("agent", LINES)
def test_a_file_that_is_rotated_rewritten_or_cut_is_read_anew_and_counted_once(agent, tmp_path):
    home = sample_home(tmp_path, agent)
    ledger, reader = Ledger(), READERS[agent][0]
    path = max(reader.find_files(home), key=lambda file: file.stat().st_size)
    whole = path.read_bytes()
    reading = reader.read(Position(str(path)))
    assert all(map(ledger.is_new, reading.records))
    other = path.with_name("other.jsonl")
    other.write_bytes(b"{}\n" + whole)
    os.replace(other, path)  # another inode
    again = reader.read(reading.position)
    assert not any(map(ledger.is_new, again.records))
    path.write_bytes(whole.replace(b"\n", b" \n"))  # the same inode, other bytes
    assert not any(map(ledger.is_new, reader.read(again.position).records))
    path.write_bytes(b"")
    assert reader.read(again.position).records == []


@EVERY
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=200), place=st.integers(0, 5000))
def test_noise_in_a_file_never_raises(agent, noise, place, tmp_path):
    home = sample_home(tmp_path / os.urandom(8).hex(), agent)
    for reader in READERS[agent]:
        for path in reader.find_files(home):
            content = path.read_bytes()
            path.write_bytes(content[:place] + noise + content[place:])
            list(records_of(reader, path))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(tokens=values, message=values)
def test_odd_values_are_unknown_and_never_an_error(tokens, message):
    position = Position("x")
    lines = (
        {"type": "assistant", "uuid": "u", "message": {"id": "m", "usage": tokens}},
        {"type": "assistant", "message": message, "usage": 1},
        {"type": "event_msg", "payload": {"type": "token_count", "info": tokens}},
        {"id": "m", "tokens": tokens},
        {"type": "session.usage_record", "data": {"usage": tokens}},
        {"type": "assistant", "uuid": "u", "usageMetadata": tokens},
    )
    for usage in (claude_code, codex, gemini, copilot, qwen):
        for line in lines:
            try:
                usage.statement_of(usage.decode(json.dumps(line).encode()), position)
            except follow.PARSE_ERRORS:
                pass


# ---- one agent's own ways ----


def claude_line(message="m1", request="r1", output=1, **more):
    usage = {"input_tokens": 10, "output_tokens": output, **more}
    return {
        "type": "assistant", "uuid": "u", "sessionId": "s", "requestId": request, "timestamp": "2026-11-15T10:00:00Z",
        "message": {"id": message, "model": "claude-x", "usage": usage},
    }  # fmt: skip


def read_lines(reader, path: Path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(records_of(reader, path))


def test_a_streamed_message_counts_as_far_as_it_grew(tmp_path):
    records = read_lines(claude_code.READER, tmp_path / "a.jsonl", *(claude_line(output=n) for n in (1, 1, 50, 20)))
    assert totals(records) == Usage(input=10, output=50)
    assert len({record.key for record in records}) == len(records) == 2


def test_kinds_that_are_not_told_are_unknown(tmp_path):
    (record,) = read_lines(claude_code.READER, tmp_path / "a.jsonl", claude_line())
    assert record.spent.cache_read is None and record.spent.cache_write_1h is None
    assert NOTHING.total is None


def test_a_cache_written_without_a_tier_is_of_the_short_one(tmp_path):
    (record,) = read_lines(claude_code.READER, tmp_path / "a.jsonl", claude_line(cache_creation_input_tokens=7))
    assert (record.spent.cache_write_5m, record.spent.cache_write_1h) == (7, None)


def test_money_that_claude_code_wrote_down_is_kept(tmp_path):
    (record,) = read_lines(claude_code.READER, tmp_path / "a.jsonl", claude_line() | {"costUSD": 0.0123456})
    assert record.reported == 12346


def test_a_message_nobody_paid_for_is_none(tmp_path):
    line = claude_line()
    line["message"]["model"] = "<synthetic>"
    assert read_lines(claude_code.READER, tmp_path / "a.jsonl", line) == []


def old_codex(*totals_, forked="", id_="t1"):
    meta = {"id": id_, "cwd": "/p", **({"forked_from_id": forked} if forked else {})}
    counts = [{"input_tokens": n, "cached_input_tokens": n // 2, "output_tokens": n} for n in totals_]
    return [
        {"type": "session_meta", "payload": meta},
        {"type": "turn_context", "payload": {"model": "gpt-5", "turn_id": "1"}},
        *({"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": c}}} for c in counts),
    ]


def test_older_rollouts_are_read_by_their_running_total(tmp_path):
    records = read_lines(codex.READER, tmp_path / "rollout-1.jsonl", *old_codex(10, 10, 30))
    assert totals(records) == Usage(15, 30, 15)
    assert [record.spent.output for record in records] == [10, 20]


def test_a_running_total_that_begins_again_is_added(tmp_path):
    records = read_lines(codex.READER, tmp_path / "rollout-1.jsonl", *old_codex(30, 4, 10))
    assert totals(records).output == 40


def test_a_rollout_that_begins_in_the_middle_counts_only_its_own_answers(tmp_path):
    meta, context, *counts = old_codex(900, 910, 930)
    for line, last in zip(counts, (8, 10, 20), strict=True):
        line["payload"]["info"]["last_token_usage"] = {
            "input_tokens": last, "cached_input_tokens": last // 2, "output_tokens": last,
        }  # fmt: skip
    records = read_lines(codex.READER, tmp_path / "rollout-1.jsonl", counts[0], meta, context, *counts[1:])
    assert [record.spent.output for record in records] == [8, 10, 20]


def test_a_fork_of_an_older_rollout_counts_only_its_own(tmp_path):
    home = tmp_path / ".codex"
    read_lines(codex.READER, home / "rollout-1.jsonl", *old_codex(10, 30))
    read_lines(codex.READER, home / "rollout-2.jsonl", *old_codex(10, 30, 50, forked="t1", id_="t2"))
    os.utime(home / "rollout-1.jsonl", (1, 1))
    assert totals(scan_usage(tmp_path, ["codex"])).output == 50


def test_copilot_before_it_wrote_every_call_down(tmp_path):
    metrics = {"gpt-5": {"usage": {"inputTokens": 100, "cacheReadTokens": 40, "outputTokens": 7}}}
    shutdown = {"type": "session.shutdown", "data": {"modelMetrics": metrics}}
    (record,) = read_lines(copilot.READER, tmp_path / "s1" / "events.jsonl", shutdown)
    assert (record.spent, record.model, record.session) == (Usage(60, 7, 40), "gpt-5", "s1")


def test_qwen_without_telemetry(tmp_path):
    metadata = {"promptTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "totalTokenCount": 107}
    line = {"type": "assistant", "uuid": "u", "sessionId": "s", "model": "qwen3", "usageMetadata": metadata}
    (record,) = read_lines(qwen.READER, tmp_path / "a.jsonl", line)
    assert record.spent == Usage(input=100, output=7, reasoning=2)


def test_geminis_older_chats(tmp_path):
    path = tmp_path / ".gemini/tmp/p/chats/session-1.json"
    path.parent.mkdir(parents=True)
    tokens = {"input": 10, "output": 3, "cached": 4, "thoughts": 1, "tool": 2, "total": 16}
    path.write_text(json.dumps({"sessionId": "s", "messages": [{"id": "m", "type": "gemini", "tokens": tokens}]}))
    (record,) = scan_usage(tmp_path, ["gemini"])
    assert (record.spent, record.session) == (Usage(8, 4, 4, None, None, 1), "s")


def test_opencodes_older_files(tmp_path):
    storage = tmp_path / opencode.STORAGE
    message = {"id": "m", "sessionID": "child", "role": "assistant", "modelID": "x", "cost": 0.5,
               "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}}  # fmt: skip
    for path, value in ((storage / "message/child/m.json", message),
                        (storage / "session/p/child.json", {"id": "child", "parentID": "top"})):  # fmt: skip
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value))
    (record,) = scan_usage(tmp_path, ["opencode"])
    assert (record.session, record.lane, record.reported) == ("top", "child", 500_000)
    assert record.spent == Usage(1, 5, 4, 5, None, 3)


def test_what_is_no_plain_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    for path in (tmp_path / "a.jsonl", tmp_path, tmp_path / "missing.jsonl"):
        assert list(records_of(claude_code.READER, path)) == []


@pytest.mark.parametrize(
    ("agent", "path", "readers"),
    [("claude-code", "/x/y.jsonl", [claude_code.READER]), ("gemini", "/x/y.json", [gemini.DOCUMENT_READER]),
     ("claude-code", "/x/y.txt", []), ("cursor", "/x/y.jsonl", [])],
)  # fmt: skip
def test_the_reader_of_a_named_transcript(agent, path, readers, tmp_path):
    live = LiveSession("s", tmp_path, path)
    assert [reader for reader, _ in transcripts_of(agent).files_of(live)] == readers

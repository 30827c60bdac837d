"""What old files say happened: files as the real programs and the five systems write them, and broken ones."""

import json
import os
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.transcripts import ImportLocation, Skipped
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.core.event import Event
from holdfast.core.kinds.gates_events import SatisfiedRequirement
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.files import document_text, seal_text
from holdfast.features.project.state import Project
from holdfast.paths import NotRegular
from holdfast.setup.imports import IMPORTERS

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def place(tmp_path: Path) -> ImportLocation:
    made = ImportLocation(tmp_path / "home", tmp_path / "project")
    made.home.mkdir()
    made.project.mkdir()
    return made


def put(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def told(name: str, place: ImportLocation) -> tuple[list[Event], list[Skipped]]:
    importer = IMPORTERS[name]
    found = [one for file in importer.find_files(place) for one in importer.read(file, place)]
    return [e for e in found if isinstance(e, Event)], [s for s in found if isinstance(s, Skipped) and not s.expected]


def sample(place: ImportLocation, name: str) -> None:
    folder = {"claude-code": ".claude/projects/-home-dev-project", "codex": ".codex/sessions/2026/11/15"}[name]
    source = next(SAMPLES.glob("claude.jsonl" if name == "claude-code" else "rollout-*.jsonl"))
    put(place.home / folder, source.name, source.read_bytes())


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("claude-code", ".claude/projects/-x/a.jsonl"),
        ("codex", ".codex/sessions/2026/11/15/rollout-2026-11-15T00-00-00-x.jsonl"),
        ("droid", ".factory/sessions/-x/a.jsonl"),
        ("gemini", ".gemini/tmp/x/chats/session-1.json"),
        ("pi", ".pi/agent/sessions/-x/a.jsonl"),
    ],
)
def test_a_pipe_among_transcripts_is_refused_at_once(name, file, place):
    pipe = place.home / file
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    with pytest.raises(NotRegular):
        told(name, place)


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_recorded_session_is_what_its_hooks_had_told(name, place):
    sample(place, name)
    events, skipped = told(name, place)
    kinds = [e.kind for e in events]
    assert skipped == []
    assert kinds[0] == "session.started"
    assert kinds[-2:] == ["turn.ended", "session.ended"]
    assert kinds.count("prompt.submitted") == 1
    begun = [e for e in events if e.kind == "tool.started"]
    assert [e.data["action"] for e in begun] == ["shell", "shell", "edit", "shell"]
    assert begun[0].data["command"] == "echo from-main"
    assert begun[2].data["paths"] == ["/home/dev/project/note.txt"]
    ended = [e for e in events if e.kind in ("tool.finished", "tool.failed")]
    (denied,) = [e for e in events if e.kind == "permission.denied"]
    assert [e.data["call"] for e in (*ended, denied)] == [e.data["call"] for e in begun]
    assert "“forbidden” is not allowed" in denied.data["reason"]
    assert {(e.project, e.agent, e.data.get("branch", "main")) for e in events} == {("/home/dev/project", name, "main")}
    assert all(e.at > 1_700_000_000_000 for e in events)
    assert next(e for e in events if e.kind == "turn.ended").data["message"] == "all done"


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_keys_are_the_same_every_time_and_short_enough(name, place):
    sample(place, name)
    first, second = told(name, place)[0], told(name, place)[0]
    assert [e.key for e in first] == [e.key for e in second]
    assert len({e.key for e in first}) == len(first)
    assert all(e.key.isalnum() and len(e.key) <= 64 for e in first)


def test_a_transcript_that_went_on_adds_only_what_is_new(place):
    sample(place, "claude-code")
    before = {e.key for e in told("claude-code", place)[0]}
    file = next(iter(IMPORTERS["claude-code"].find_files(place)))
    record = {"type": "user", "uuid": "u-new", "sessionId": "s", "message": {"content": "and then"}, "timestamp": 5}
    file.write_text(file.read_text() + json.dumps(record) + "\n")
    after = {e.key: e.kind for e in told("claude-code", place)[0]}
    assert len(before - set(after)) == 1, "the end of the session moves"
    assert [after[key] for key in after if key not in before] == ["prompt.submitted", "session.ended"]


def test_a_subagents_transcript_is_a_lane(place):
    lines = [
        {"type": "user", "uuid": "1", "sessionId": "s", "agentId": "a1", "isSidechain": True, "timestamp": 1e9,
         "message": {"content": "look"}},
        {"type": "assistant", "uuid": "2", "sessionId": "s", "agentId": "a1", "timestamp": 1e9,
         "message": {"content": [{"type": "text", "text": "seen"}]}},
    ]  # fmt: skip
    put(place.home, ".claude/projects/-p/s/subagents/agent-a1.jsonl", "\n".join(map(json.dumps, lines)))
    events, _ = told("claude-code", place)
    assert [e.kind for e in events] == ["subagent.started", "prompt.submitted", "subagent.ended"]
    assert {(e.session, e.data["lane"]) for e in events} == {("s", "a1")}


def message(uuid, text, session="s", at=1e9, kind="user", **more):
    return {"type": kind, "uuid": uuid, "sessionId": session, "timestamp": at, "message": {"content": text}, **more}


def transcript(place, session, *lines):
    put(place.home, f".claude/projects/-p/{session}.jsonl", "\n".join(map(json.dumps, lines)))


def prompts(place):
    return [(e.session, e.data["prompt"]) for e in told("claude-code", place)[0] if e.kind == "prompt.submitted"]


@pytest.mark.parametrize(
    ("result", "failed", "expected"),
    [
        ({"stdout": "hi", "interrupted": False}, False, (True, 0, None)),
        ({"stdout": "", "returnCodeInterpretation": "No matches found"}, False, (True, None, None)),
        ({"stdout": "", "backgroundTaskId": "b1"}, False, (True, None, True)),
        ("Error: Exit code 3", True, (False, 3, None)),
        (None, False, (True, None, None)),
    ],
)
def test_a_command_ends_as_its_hook_had_told(place, result, failed, expected):
    """The exit code too, and only where it is known: the row of an import reads as the live one does."""
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}}
    end = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "Exit code 3\nno" if failed else "hi",
        "is_error": failed,
    }
    more = {"toolUseResult": result} if result else {}
    transcript(place, "s", message("1", "go"), message("2", [call], kind="assistant"), message("3", [end], **more))
    (data,) = [e.data for e in told("claude-code", place)[0] if e.kind in ("tool.finished", "tool.failed")]
    assert (data["ok"], data.get("exit_code"), data.get("detached")) == expected


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "b", "a")])
def test_a_fork_tells_only_what_came_after_it(place, names):
    """As Claude Code 2.1 writes it: the copy keeps the ids of the records, and has nothing between them. Whatever the names."""
    old, fork, again = names
    shared = [("1", "one"), ("2", "two")]
    gap = {"type": "last-prompt"}
    transcript(place, old, message("1", "one", old), gap, message("2", "two", old), gap, message("9", "went on", old))
    copied = [message(uuid, text, fork) for uuid, text in shared]
    transcript(place, fork, gap, *copied, message("3", "forked", fork), gap)
    copied = [message(uuid, text, again) for uuid, text in (*shared, ("3", "forked"))]
    transcript(place, again, gap, *copied, message("4", "forked again", again), gap)
    assert sorted(prompts(place)) == sorted(
        [(old, "one"), (old, "two"), (old, "went on"), (fork, "forked"), (again, "forked again")]
    )


def test_a_command_of_claude_code_itself_is_no_prompt_and_one_of_your_own_is_as_it_was_typed(place):
    tags = "<command-name>/{0}</command-name>\n<command-message>{0}</command-message>\n<command-args>{1}</command-args>"
    transcript(
        place, "s", message("1", "do it"),
        message("2", "<local-command-caveat>The command below was run directly", isMeta=True),
        message("3", tags.format("compact", "")), message("4", "<local-command-stdout>Compacted</local-command-stdout>"),
        message("5", tags.format("review", "the diff")), message("6", "what the command says", isMeta=True),
    )  # fmt: skip
    assert prompts(place) == [("s", "do it"), ("s", "/review the diff")]


def test_broken_lines_are_told_one_by_one(place):
    put(place.home, ".claude/projects/-p/s.jsonl", '{"type": "user"\n[1]\n{"type": "user"}\n{"type": "summary"}\n')
    events, skipped = told("claude-code", place)
    assert events == []
    assert [s.where.rsplit(":", 1)[1] for s in skipped] == ["1", "2", "3"]


# ── the five systems ───────────────────────────────────────────────────────────────────────────────────────────────


def test_reindex(place):
    state = {"session_id": "session_20251212_154827", "first_semantic_search_shown": True}
    put(place.project, "logs/state/session-reindex-tracking.json", json.dumps(state))
    (event,), skipped = told("reindex", place)
    assert (event.kind, event.session, event.data["shown"], skipped) == (
        "reindex.marked", "session_20251212_154827", True, [],
    )  # fmt: skip


V4 = """# State
```yaml
SCHEMA_VERSION: "4.0.0"
PROJECT: {name: demo}
CURRENT_STATE: {}
TASKS:
  - {id: t1, description: Write the parser, priority: high, done_when: [tests pass]}
  - {id: t2, description: Old thing, status: completed}
  - {id: t3}
```
"""
V3 = "NEXT_ACTIONS:\n  - action: Fix the build\n    priority: 1\n  - Call Ada\n"


def test_session_state_version_4(place):
    put(place.project, "SESSION_STATE.md", V4)
    events, skipped = told("session-state", place)
    *tasks, adopted = events
    assert [(e.kind, e.data.description, e.data.done_when, e.data.priority) for e in tasks] == [
        ("project.task_added", "Write the parser", ["tests pass"], "P1")
    ]
    assert (adopted.kind, adopted.data.tasks, adopted.data.left) == (
        "project.document_adopted", 1, ["a task without a description"],
    )  # fmt: skip
    assert [s.where.rpartition(": ")[2] for s in skipped] == ["a task without a description"]


def test_session_state_version_3(place):
    put(place.project, "SESSION_STATE.md", V3)
    events, _ = told("session-state", place)
    *tasks, _ = events
    assert [(e.data.description, e.data.priority) for e in tasks] == [("Fix the build", "P1"), ("Call Ada", "P2")]


def test_session_state_in_the_documented_folder_and_never_our_own(place):
    """S1-18, S1-16: `~/.claude/sessions/<project>/`; what Holdfast itself wrote there is no history."""
    put(place.home, ".claude/sessions/project/SESSION_STATE.md", V3)
    assert len(told("session-state", place)[0]) == 3
    ours = seal_text(document_text(project_document(Project(project=str(place.project)), 0)))
    (place.home / ".claude/sessions/project/SESSION_STATE.md").write_bytes(ours)
    assert told("session-state", place) == ([], [])


def test_requirements_with_whole_uuids(place):
    """S2-7: the original's branch files are read where they lie, under whole ids and under short ones."""
    uuid = "cad0ac4d-3933-45ad-9a1c-14aec05bb940"
    sessions = {uuid: {"satisfied": True, "satisfied_at": 1_760_000_000, "ttl": 60}, "abc12345": {"satisfied": False}}
    state = {"requirements": {"commit_plan": {"scope": "session", "sessions": sessions}, "odd": 7}}
    put(place.project, ".git/requirements/feature/x.json", json.dumps(state))
    events, skipped = told("requirements", place)
    assert [(e.kind, e.session, e.data["branch"]) for e in events] == [("gates.satisfied", uuid, "feature/x")]
    named = {"name": "commit_plan", "scope": "session", "until": 1_760_000_060_000}
    assert events[0].data.requirements == [SatisfiedRequirement(**named)]
    assert [s.where.rsplit(": ", 1)[1] for s in skipped] == ["odd"]


def test_a_uat_run(place):
    state = {
        "meta": {"format": "claude-uat-session-state"},
        "session": {"claudeSessionId": "c1", "uatSessionId": "uat-1", "startTime": "2025-07-05T14:30:22.123Z",
                    "lastActivity": "2025-07-05T14:35:45.678Z", "mode": "production"},
        "scenario": {"name": "login", "steps": [{"stepNumber": 1, "action": "navigate", "status": "completed"}]},
        "execution": {"toolCalls": [{"id": "t1", "toolName": "Bash", "parameters": {}, "success": True}, {}]},
    }  # fmt: skip
    put(place.project, "uat/sessions/claude-session-c1.json", json.dumps(state))
    events, skipped = told("uat", place)
    assert [e.kind for e in events] == ["uat.started", "uat.call_started", "uat.call_ended", "uat.step", "uat.ended"]
    assert {(e.session, e.data["uat"]) for e in events} == {("c1", "uat-1")}
    assert len(skipped) == 1


OAK = """
create table sessions (id text primary key, agent text, project_root text, status text, started_at text, ended_at text);
create table prompt_batches (id integer primary key, session_id text, user_prompt text, started_at text);
create table activities (id integer primary key, session_id text, prompt_batch_id integer, tool_name text,
  tool_input text, success integer, error_message text, timestamp text, brand_new_column text);
insert into sessions values ('s1', 'claude', '/p', 'completed', '2026-01-01T10:00:00', '2026-01-01T11:00:00');
insert into prompt_batches values (1, 's1', 'do it', '2026-01-01T10:01:00');
insert into activities values (1, 's1', 1, 'Bash', '{"command": "ls"}', 1, null, '2026-01-01T10:02:00', 'x');
insert into activities values (2, 's1', null, 'Edit', 'not json', 0, 'no match', '2026-01-01T10:03:00', 'x');
insert into activities values (3, null, null, 'Edit', '{}', 1, null, '2026-01-01T10:03:00', 'x');
"""


OAK_MEMORY = """
alter table sessions add column title text;
alter table sessions add column summary text;
update sessions set title = 'Faster login', summary = 'The login is faster now.';
create table memory_observations (id text primary key, session_id text, observation text, memory_type text,
  file_path text, status text, created_at text);
insert into memory_observations values ('o1', 's1', 'Tokens expire at midnight', 'gotcha', '/p/auth.py', 'active', '2026-01-01T10:30:00');
insert into memory_observations values ('o2', 's1', 'Gone', 'decision', null, 'superseded', '2026-01-01T10:31:00');
"""


def test_oak_brings_titles_summaries_and_memories(place):
    """As words of another system: origin `outside` is not injected before a person vouches for it."""
    file = place.project / ".oak/ci/activities.db"
    file.parent.mkdir(parents=True)
    db = apsw.Connection(str(file))
    db.execute(OAK + OAK_MEMORY)
    db.close()
    events, _ = told("oak", place)
    assert [e.data["title"] for e in events if e.kind == "session.titled"] == ["Faster login"]
    memories = [
        (e.data["type"], e.data["text"], e.data["origin"], e.session) for e in events if e.kind == "memory.observed"
    ]
    assert memories == [
        ("session_summary", "The login is faster now.", "outside", "s1"),
        ("gotcha", "Tokens expire at midnight", "outside", "s1"),
    ]


def test_oak_is_read_without_touching_it(place):
    file = place.project / ".oak/ci/activities.db"
    file.parent.mkdir(parents=True)
    db = apsw.Connection(str(file))
    db.execute("pragma journal_mode=wal")
    db.execute(OAK)
    before = {p.name: p.read_bytes() for p in file.parent.iterdir()}
    events, skipped = told("oak", place)
    assert {p.name: p.read_bytes() for p in file.parent.iterdir()} == before
    db.close()
    assert [e.kind for e in events] == [
        "session.started", "prompt.submitted", "tool.finished", "tool.failed", "session.ended",
    ]  # fmt: skip
    assert events[2].data["command"] == "ls"
    assert {(e.session, e.agent) for e in events} == {("s1", "claude-code")}
    assert len(skipped) == 1


FILES = {
    "claude-code": ".claude/projects/-p/s.jsonl", "codex": ".codex/sessions/rollout-x.jsonl",
    "reindex": "logs/state/session-reindex-tracking.json", "session-state": "SESSION_STATE.md",
    "requirements": ".git/requirements/main.json", "uat": "uat/sessions/claude-session-x.json",
    "oak": ".oak/ci/activities.db",
}  # fmt: skip
WORDS = """type uuid sessionId message content payload id session_id call_id requirements sessions satisfied scope meta
session scenario steps execution toolCalls TASKS timestamp format"""
words = st.sampled_from(WORDS.split()) | st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=15,
)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_nothing_that_stands_in_a_file_breaks_an_import(name, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    content = data.draw(st.binary(max_size=200) | values.map(lambda v: json.dumps(v).encode()))
    put(folder, FILES[name], content)
    place = ImportLocation(folder, folder)
    for file in IMPORTERS[name].find_files(place):
        for one in IMPORTERS[name].read(file, place):
            assert isinstance(one, Event | Skipped)
    assert (folder / FILES[name]).read_bytes() == content


@pytest.mark.parametrize(
    ("value", "at"),
    [("2026-11-15T07:03:07.646Z", 1794726187646), (1794726187, 1794726187000), (1794726187646, 1794726187646),
     ("never", 0), (None, 0), (True, 0), (-5, 0), (float("inf"), 0), (float("nan"), 0)],
)  # fmt: skip
def test_times(value, at):
    assert parse_milliseconds(value) == at

"""State files of every age (S1-15, S1-16, S1-17), and every way one can be wrong."""

import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from ruamel.yaml import YAML

import holdfast.api as api
from holdfast.features.project.document import old_formats as formats
from holdfast.features.project.document import schema
from holdfast.features.project.document.adoption import adopt_document, describe_adoption, read_adoption
from holdfast.features.project.document.text import dump_yaml
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.events import reduce
from holdfast.features.project.files import document_text, is_ours, seal_text
from holdfast.features.project.state import PROJECT, OwnTask, Project
from holdfast.features.project.state.task_list import update_tasks
from tests.factories import NOON

SEEDS = Path(__file__).parents[3] / "stories" / "seeds"


def seed(name: str) -> dict[str, Any]:
    return YAML(typ="safe").load((SEEDS / f"{name}.yaml").read_text())


def test_the_seeds_functions_are_importable_and_do_as_it_says() -> None:
    """S1-16: absent version = 3.0.0, actions by priority, work as history without the agent."""
    v3 = seed("session_state_v3")
    found = api.read_state(io.StringIO((SEEDS / "session_state_v3.yaml").read_text()))
    assert found["SCHEMA_VERSION"] == "4.0.0"
    assert found == api.migrate_v3_to_v4(formats._plain_value(v3))
    assert [t["description"] for t in found["TASKS"]["P1_urgent"]] == ["Validate uncommitted agents"]
    assert found["TASKS"] == api.convert_next_actions_to_tasks(formats._plain_value(v3)["NEXT_ACTIONS"])
    assert found["CURRENT_STATE"] == api.derive_state_from_v3(v3) == {"git": {"status": "unknown"}}
    assert found["STATE_HISTORY"] == seed("session_state_v3_as_v4")["STATE_HISTORY"]
    assert schema.schema_problems(found) == []


@pytest.mark.parametrize("name", ["session_state_v4", "session_state_minimal"])
def test_the_seeds_own_documents_are_valid_and_read_as_they_are(name: str) -> None:
    """S1-15, S1-17."""
    assert schema.schema_problems(formats._plain_value(seed(name))) == []
    assert api.read_state(SEEDS / f"{name}.yaml") == formats._plain_value(seed(name))


def test_a_document_inside_a_markdown_fence() -> None:
    body = (SEEDS / "session_state_minimal.yaml").read_text()
    assert api.read_state(io.StringIO(f"# State\n\n```yaml\n{body}```\n\nmore words\n"))["PROJECT"] == "dotfiles"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"SCHEMA_VERSION": "4.1.0"}, "SCHEMA_VERSION"),
        ({"PROJECT": ""}, "PROJECT"),
        ({"PROJECT": "../../etc"}, "PROJECT"),
        ({"PROJECT": None}, "PROJECT"),
        ({"CURRENT_STATE": {}}, "CURRENT_STATE"),
        ({"CURRENT_STATE": {"git": {"status": "filthy"}}}, "CURRENT_STATE.git.status"),
        ({"CURRENT_STATE": {"tests": {"failed": -1}}}, "CURRENT_STATE.tests.failed"),
        ({"TASKS": {"P7": []}}, "TASKS"),
        ({"LEARNED_PATTERNS": [{"pattern": "x", "confidence": 1.5}]}, "LEARNED_PATTERNS.0.confidence"),
        ({"RESOURCE_LOCKS": {"db": {"locked_by": 5}}}, "RESOURCE_LOCKS.db"),
        ({"STATE_HISTORY": [{"summary": "x"}]}, "STATE_HISTORY.0"),
        ({"LAST_UPDATED": "yesterday"}, "LAST_UPDATED"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Any], where: str) -> None:
    problems = schema.schema_problems({**formats._plain_value(seed("session_state_v4")), **change})
    assert problems
    assert problems[0].startswith(where)


def test_required_fields_and_defaults() -> None:
    """S1-17: three are required, the rest has defaults."""
    least = {"SCHEMA_VERSION": "4.0.0", "PROJECT": "x", "CURRENT_STATE": {"git": {"status": "clean"}}}
    assert schema.schema_problems(least) == []
    for name in least:
        assert schema.schema_problems({k: v for k, v in least.items() if k != name})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: [", "not YAML"),
        ("a: 1\na: 2\n", "not YAML"),
        ("- just\n- a list\n", "not a mapping"),
        ("", "not a mapping"),
        ("SCHEMA_VERSION: '9.0.0'", "SCHEMA_VERSION is '9.0.0'"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("\x00\x01", "not YAML"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "SESSION_STATE.md"
    file.write_text(content)
    with pytest.raises(formats.BadState, match=said):
        api.read_state(file)
    assert file.read_text() == content


def test_missing_unreadable_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(formats.BadState, match="No such file"):
        api.read_state(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(formats.BadState, match="not UTF-8"):
        api.read_state(tmp_path / "bytes")


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_reading_never_ends_in_anything_but_a_state_or_bad_state(text_: str) -> None:
    try:
        assert isinstance(api.read_state(io.StringIO(text_)), dict)
    except formats.BadState:
        pass


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=12), JSON, max_size=6))
@settings(max_examples=60, deadline=None)
@example({"A\n": None})
def test_what_is_written_is_read_back_by_any_yaml_reader(value: dict[str, Any]) -> None:
    assert (YAML(typ="safe", pure=True).load(dump_yaml(value)) or {}) == value


def test_an_empty_project_is_a_valid_document() -> None:
    found = project_document(Project(project="/home/u/x"), NOON)
    assert schema.schema_problems(found) == []
    assert YAML(typ="safe").load(document_text(found)) == found


def test_the_seal_knows_our_own_writing() -> None:
    ours = seal_text("a: 1\n")
    assert is_ours(ours)
    assert not is_ours(ours.replace(b"a: 1", b"a: 2"))
    assert not is_ours(b"a: 1\n")
    assert not is_ours(b"")
    assert YAML(typ="safe").load(ours) == {"a": 1}


@given(
    st.lists(
        st.one_of(st.text(), st.dictionaries(st.sampled_from(["action", "priority", "agent", "assigned_to"]), JSON))
    )
)
@settings(max_examples=40, deadline=None)
def test_any_old_actions_become_tasks(actions: list[Any]) -> None:
    tasks = api.convert_next_actions_to_tasks(actions)
    assert set(tasks) == {"P0_blockers", "P1_urgent", "P2_maintenance", "P3_improvements"}
    assert all(
        set(task) <= {"id", "description", "gap_type", "discovered_at"} for level in tasks.values() for task in level
    )


def test_names_of_agents_go_from_the_text_too() -> None:
    actions = [{"action": "Hand over to agent-validator and check", "assigned_to": "agent-validator", "priority": "P0"}]
    (task,) = api.convert_next_actions_to_tasks(actions)["P0_blockers"]
    assert task["description"] == "Hand over and check"


# ── what version 3 files also hold ───────────────────────────────────────────────────────────────────────────────────

WHOLE = """
PROJECT: engine
LAST_UPDATED: 2025-11-16T10:00:00Z
CURRENT_FOCUS: Moving to the new parser
BLOCKERS:
  - The build server is down
  - {description: No key for the API}
NEXT_ACTIONS:
  P1: [Write the tests, {action: Review the plan}]
  P3_improvements: [Tidy up]
RECENT_WORK:
  - Added the parser
  - {timestamp: 2025-11-16T09:00:00Z, action: Fixed the lexer}
"""


def test_nothing_of_a_version_3_file_is_dropped() -> None:
    found = api.read_state(io.StringIO(WHOLE))
    texts = {level: [task["description"] for task in tasks] for level, tasks in found["TASKS"].items()}
    assert texts["P0_blockers"] == ["The build server is down", "No key for the API"]
    assert texts["P1_urgent"] == ["Write the tests", "Review the plan"]
    assert texts["P3_improvements"] == ["Tidy up"]
    assert found["WORK_CONTEXT"] == {"current_phase": "Moving to the new parser"}
    history = [(line["timestamp"], line["summary"]) for line in found["STATE_HISTORY"]]
    assert history == [("2025-11-16T10:00:00Z", "The parser added"), ("2025-11-16T09:00:00Z", "The lexer fixed")]
    assert schema.schema_problems(found) == []


def test_latin_1_is_read(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes("PROJECT: x\nNEXT_ACTIONS: [Prüfen]\n".encode("latin-1"))
    assert api.read_state(tmp_path / "state")["TASKS"]["P2_maintenance"][0]["description"] == "Prüfen"


@pytest.mark.parametrize("text", ["Delegate to agent-x: check the plan", "Assigned to agent-x, check the plan"])
def test_a_delegation_is_what_was_to_be_done(text: str) -> None:
    (task,) = api.convert_next_actions_to_tasks([{"action": text, "assigned_to": "agent-x"}])["P2_maintenance"]
    assert task["description"] == "check the plan"


# Documents that are not of our writing come in whole (S1-16, S1-18): version 3, other tools' version 4, hand-made
# additions.

V3 = """
LAST_UPDATED: 2025-11-16T10:00:00Z
CURRENT_FOCUS: {description: moving to the new parser}
BLOCKERS: [The build machine is down]
RECENT_WORK:
  - {agent: builder, action: Analyzed git status, timestamp: 2025-11-16T09:00:00Z}
  - Wrote the first draft
NEXT_ACTIONS:
  P1: [{action: "Delegate to validator: validate the agents", assigned_to: validator}]
  later: {action: Write the manual, priority: low}
MOOD: good
"""
PATH = Path("/h/SESSION_STATE.md")


def ours(*own: str) -> Project:
    doc = Project(project="/p", own_tasks=[OwnTask(key=text, description=text, priority="P2") for text in own])
    return update_tasks(doc, doc, NOON)


def text_of(doc: Project) -> str:
    return seal_text(document_text(project_document(doc, NOON))).decode()


def described(text: str | bytes, doc: Project | None = None) -> list[tuple[str, str]]:
    found = read_adoption(text.encode() if isinstance(text, str) else text, doc)
    return [(task.priority, task.description) for task in found.tasks]


def test_a_version_3_document_comes_in_whole() -> None:
    """S1-16, issue 17.10: blockers, the focus, work without a time, actions by name; what is unknown is named."""
    found = read_adoption(V3.encode())
    assert [(t.priority, t.description) for t in found.tasks] == [
        ("P0", "The build machine is down"), ("P1", "validate the agents"), ("P3", "Write the manual"),
    ]  # fmt: skip
    assert [(line.at, line.summary) for line in found.history] == [
        (1763287200000, "Wrote the first draft"),
        (1763283600000, "Git status analyzed"),
    ]
    assert found.focus == "moving to the new parser"
    assert found.left == ["MOOD (an unknown section)"]


def test_before_a_markdown_text_it_is_the_same() -> None:
    """S1-16, S1-1: as front matter, which a file that ends with .md may well have. No task may name an agent."""
    plain, front = read_adoption(V3.encode()), read_adoption(f"---{V3}---\n# Notes\nas told\n".encode())
    assert (front.tasks, front.history, front.focus) == (plain.tasks, plain.history, plain.focus)
    assert front.left == [*plain.left, "the text around its YAML"]
    assert read_adoption(f"---{V3}---\n".encode()) == plain
    assert read_adoption(f"---{V3}".encode()) == plain, "the start of a YAML document alone"


def test_it_becomes_part_of_the_project_and_a_line_says_what_was_taken() -> None:
    doc: Project | None = None
    for n, event in enumerate(adopt_document(Project(project="/p"), PATH, V3.encode(), NOON), 1):
        doc = reduce(doc, replace(event, seq=n), PROJECT.ref("/p"))
    assert doc
    assert [task.description for task in doc.tasks][0] == "The build machine is down"
    assert doc.history[0].summary == (
        "SESSION_STATE.md, version 3.0.0: 3 tasks, 2 lines of history, the focus (moving to the new parser) taken over; "
        "not taken: MOOD (an unknown section)"
    )
    assert doc.history[-1].summary == "Git status analyzed"
    assert project_document(doc, NOON)["WORK_CONTEXT"]["current_phase"] == "moving to the new parser"


def test_hand_made_additions_to_our_document_become_tasks() -> None:
    """Each in the place where a person would write it; what we wrote ourselves does not come back as a task."""
    doc = ours("mine already")
    text = text_of(doc)
    assert described(text, doc) == []
    added = text.replace("  P1_urgent: []", '  P1_urgent:\n    - "call Ada"\n    - {description: fix it}')
    assert described(added, doc) == [("P1", "call Ada"), ("P1", "fix it")]
    assert described(text + "NEXT_ACTIONS: [write the manual]\n", doc) == [("P2", "write the manual")]
    assert described(text + "NOTES:\n  - look at the logs\n", doc) == [("P2", "look at the logs")]
    markdown = text + "\n## Also\n- [ ] buy milk: two\n- [x] done already\n* another: [\n"
    assert described(markdown, doc) == [("P2", "buy milk: two"), ("P2", "another: [")]


@pytest.mark.parametrize(
    "style",
    [
        {}, {"sort_keys": False}, {"default_flow_style": True}, {"indent": 8, "width": 30}, {"default_style": "'"},
        {"allow_unicode": False}, {"line_break": "\r\n"}, {"explicit_start": True, "explicit_end": True},
    ],
)  # fmt: skip
def test_an_editor_that_writes_the_yaml_in_its_own_way_adds_only_what_is_new(style: dict[str, Any]) -> None:
    doc = ours("mine already", "größer: «a» # no comment")
    content = yaml.safe_load(text_of(doc))
    assert described(yaml.safe_dump(content, **style), doc) == []
    content["TASKS"]["P1_urgent"] = [*(content["TASKS"].get("P1_urgent") or []), "call Ada"]
    assert described(yaml.safe_dump(content, **style), doc) == [("P1", "call Ada")]


def test_a_task_of_ones_own_that_is_marked_done_is_done() -> None:
    doc = ours("mine")
    edited = text_of(doc).replace('description: "mine"', 'description: "mine"\n      status: done')
    kinds = [event.kind for event in adopt_document(doc, PATH, edited.encode(), NOON)]
    assert kinds == ["project.task_done", "project.document_adopted"]


def test_the_same_file_twice_is_once_and_a_later_addition_of_the_same_text_counts() -> None:
    doc = ours()
    first, second = (text_of(doc) + f"NOTES: [buy milk]\n# {n}\n" for n in (1, 2))
    one, again, other = (adopt_document(doc, PATH, text.encode(), NOON)[0] for text in (first, first, second))
    assert one.key == again.key != other.key
    held = ours("buy milk")
    assert [e.kind for e in adopt_document(held, PATH, second.encode(), NOON)] == ["project.document_adopted"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings_are_kept(encoding: str) -> None:
    assert described("NEXT_ACTIONS: [größer]\n".encode(encoding)) == [("P2", "größer")]


def test_windows_quotes_are_quotes() -> None:
    assert described("NEXT_ACTIONS: [the “big” one]\n".encode("cp1252")) == [("P2", "the “big” one")]


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"", b"[" * 5000, b"a: &x 1\nb: *x\n", b"SCHEMA_VERSION: 9\n"])
def test_what_cannot_be_read_is_named_and_nothing_is_taken(content: bytes) -> None:
    events = adopt_document(ours(), PATH, content, NOON)
    assert [event.kind for event in events] == ["project.document_adopted"]
    assert "nothing to take over; not taken:" in describe_adoption(events[0].data)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda t: f"TASKS:\n{t}".encode()))
def test_any_bytes_are_read(content: bytes) -> None:
    for event in adopt_document(ours(), PATH, content, NOON):
        assert len(event.key) == 64 or event.kind == "project.task_done"


def test_an_entry_is_read_under_whatever_name_its_text_has() -> None:
    """S1-16, by hand: what stood under `work` or `task` was called "unnamed", and a state in words was dropped unsaid."""
    document = """CURRENT_STATE: "The counter overflows"
RECENT_WORK:
  - {agent: coder, work: "Counter added"}
  - {agent: tester, result: "All tests pass", priority: high}
NEXT_ACTIONS:
  - {task: "Fix the counter", assigned_to: coder}
  - {priority: high, todo: "Write the test"}
"""
    adoption = read_adoption(document.encode())
    assert [line.summary for line in adoption.history] == ["Counter added", "All tests pass"]
    assert [task.description for task in adoption.tasks] == ["Write the test", "Fix the counter"]
    assert adoption.left == ["CURRENT_STATE (no sections: the next look finds it out)"]

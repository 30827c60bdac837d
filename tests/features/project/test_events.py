"""State = replay of the log (P5), whatever comes: odd data, other rooms' events, thousands of them. No agent's name."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.event import Event
from holdfast.core.kinds import PROJECT_KINDS
from holdfast.core.replay import Rebuild, document_at, fold_events
from holdfast.features.project import FEATURE
from holdfast.features.project.document import schema
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.policy import SUBSCRIBED_KINDS
from holdfast.features.project.state import PROJECT, project_ref
from tests.factories import NOON, a_key
from tests.features.project.stage import ROOT, Stage

SHELL = st.sampled_from(
    [
        "pytest",
        "pytest t/a.py",
        "npm test",
        "ruff check .",
        "git commit -m x",
        "make docs",
        "ls",
        "git push",
        "'",
        "| |",
    ]
)
OUTPUT = st.sampled_from(["3 passed in 0.1s", "FAILED t/a.py::x - no\n1 failed, 2 passed in 1s", "", "Tests: x"])
NAMES = st.sampled_from(["a", "b"])
WILD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def tool(action: str, command: str, output: str, code: int, path: str) -> dict[str, Any]:
    more = {"command": command, "output": output, "exit_code": code} if action == "shell" else {"paths": [path]}
    return {"action": action, **more, "pid": 7, "pid_start": 1}


TOOLS = st.builds(
    tool, st.sampled_from(["shell", "edit"]), SHELL, OUTPUT, st.integers(0, 1), st.sampled_from(["/a", f"{ROOT}/b.py"])
)
CHECKS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["test", "lint"]), "runner": st.sampled_from(["pytest", "make", "ruff"]),
        "dir": st.sampled_from([".", "a", "a/b"]), "selection": st.sampled_from(["all", "part"]),
        "operands": st.lists(st.sampled_from(["t.py", "-k"]), max_size=2), "branch": NAMES,
        "verdict": st.sampled_from(["passed", "failed", "did_not_run", "unknown"]), "failed": st.integers(0, 3),
        "verb": st.sampled_from(["commit", "checkout"]),
    }
)  # fmt: skip
GIT = st.fixed_dictionaries(
    {"count": st.integers(0, 3), "head": NAMES, "branch": NAMES, "doing": st.sampled_from(["", "merge"])}
)
DATA = st.one_of(
    TOOLS,
    CHECKS,
    st.fixed_dictionaries({"facts": st.fixed_dictionaries({"git": GIT})}),
    st.fixed_dictionaries(
        {"name": NAMES, "owner": NAMES, "pid": st.integers(0, 3), "request": NAMES, "wait": st.booleans()}
    ),
    st.dictionaries(
        st.sampled_from(["facts", "name", "details", "total", "requirements", "lock", "key", "what"]), WILD
    ),
)
EVENTS = st.lists(st.tuples(st.sampled_from(sorted(SUBSCRIBED_KINDS)), DATA, NAMES), max_size=40)


def made(found: list[tuple[str, dict[str, Any], str]]) -> list[Event]:
    return [
        Event(
            key=a_key(), kind=kind, at=NOON + n * 60_000, session=session, project=ROOT, agent="claude-code", data=data
        )
        for n, (kind, data, session) in enumerate(found)
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EVENTS)
def test_whatever_comes_the_state_is_what_the_log_says(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, dict[str, Any], str]]
) -> None:
    """Odd data may make a rule fail: then the document is left as it was, now and in every replay."""
    stage = Stage(tmp_path_factory.mktemp("replay"))
    stage.engine.ports = msgspec.structs.replace(stage.engine.ports, report=lambda *_: None)
    for event in made(found):
        stage.engine.handle([event])
    reader = stage.store.reader()
    work = Rebuild([FEATURE], reader)
    work.read()
    assert work.differences() == []
    doc = PROJECT.load(reader, ROOT)
    reader.close()
    stage.store.close()
    if doc:
        shown = project_document(doc, NOON)
        assert "claude" not in str(shown), "C6"
        assert len(shown["STATE_HISTORY"]) <= 20


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["tool.finished", "turn.ended", "check.finished", "git.acted"]), TOOLS | CHECKS, NAMES
        ),
        max_size=30,
    )
)
def test_well_formed_events_make_a_valid_document(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, dict[str, Any], str]]
) -> None:
    stage = Stage(tmp_path_factory.mktemp("valid"))
    for event in made(found):
        stage.engine.handle([event])  # a rule that fails here fails the test
    assert schema.schema_problems(project_document(stage.doc, stage.now)) == []
    stage.store.close()


def test_documents_are_bounded(stage: Stage) -> None:
    """Decision 7: ten times the events, the same size."""
    sizes = []
    stage.at_once = 200
    for _ in range(2):
        for n in range(200):
            stage.edit(f"src/pkg{n}/file{n}.py", session=f"s-{n}")
            stage.run(f"tool{n} run", session=f"s-{n}")
            stage.say("project.task_added", description=f"t{n}", priority="P2")
            stage.say("project.lease_asked", name=f"l{n}", request=f"r{n}", owner=f"{n}:1@h", pid=n)
            stage.say("turn.ended", session=f"s-{n}")
            stage.say("project.lease_released", name=f"l{n}", owner=f"{n}:1@h")
        reader = stage.store.reader()
        sizes.append({row.ref: len(row.doc) for row in reader.rows("project")})
        reader.close()
    before, after = sizes
    assert set(before) == set(after)
    assert all(after[ref] <= before[ref] * 1.3 + 2000 for ref in before), {r: (before[r], after[r]) for r in before}
    assert max(after.values()) < 200_000


def test_time_travel_is_replay_to_a_point(stage: Stage) -> None:
    stage.git(branch="one")
    seq = stage.engine.head
    stage.git(branch="two")
    reader = stage.store.reader()
    then = document_at(FEATURE, reader, project_ref(ROOT), seq)
    assert then is not None
    assert then.git.branch == "one"
    reader.close()


def test_reading_never_changes_what_was_given(stage: Stage) -> None:
    """Reducers are pure: the document before is the same after."""
    stage.git(branch="one")
    stage.check("failed")
    before = stage.doc
    copy = msgspec.json.encode(before)
    event = Event(
        key="k", kind="project.observed", at=NOON, project=ROOT, data={"facts": {"git": {"branch": "x"}}}, seq=99
    )
    fold_events(FEATURE, [event], {project_ref(ROOT): before})
    assert msgspec.json.encode(before) == copy


def test_every_kind_of_its_own_is_heard() -> None:
    assert set(PROJECT_KINDS) <= FEATURE.subscribed_kinds
    assert FEATURE.stream(project_ref(ROOT)) == {"project": ROOT}

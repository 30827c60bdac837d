"""Summaries of labelled sessions contain what they must and nothing they must not."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.handover.runs import CommandRun
from holdfast.analysis.handover.summary import SessionEvent, build_summary
from tests.corpus.memory import score
from tests.features.memory.corpus import read_cases


def events(*rows: dict) -> list[SessionEvent]:
    return [msgspec.convert(row, SessionEvent) for row in rows]


def test_summaries_of_stories() -> None:
    """Of the corpus, and our own."""
    must = met = wrong = 0
    for row in (*read_cases("sessions"), *read_cases("own_sessions")):
        text = " ".join(build_summary(events(*row["events"])).as_text().lower().split())
        must += len(row["summary"]["must"])
        met += sum(any(score._has(text, keys) for keys in item["any"]) for item in row["summary"]["must"])
        wrong += sum(any(score._says(text, keys) for keys in item["any"]) for item in row["summary"]["must_not"])
    print(f"summary: {met} of {must} contained, {wrong} said wrongly")
    assert met / must >= 0.97
    assert wrong <= 2


def test_a_next_step_that_was_begun_is_none() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "commit the proto"},
            {"kind": "answer", "text": "Committed. Next: generate the stubs."},
            {"kind": "prompt", "text": "go on"},
            {"kind": "edit", "path": "stubs.py"},
            {"kind": "answer", "text": "The stubs are there."},
        )
    )
    assert found.next == ()


def test_what_went_wrong_and_passes_since_is_said() -> None:
    found = build_summary(
        events(
            {"kind": "check", "command": "make test", "exit": 1, "output": "2 failed, 3 passed", "of": 4},
            {"kind": "edit", "path": "src/app.py"},
            {"kind": "check", "command": "make test", "exit": 0, "output": "5 passed", "of": 9},
        )
    )
    assert found.proven == ("`make test`: 5 passed (failed before, passes since)",)
    assert found.failing == ()


def test_skipped_tests_prove_nothing() -> None:
    found = build_summary(events({"kind": "command", "command": "make test", "exit": 0, "output": "12 skipped"}))
    assert found.proven == ()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            SessionEvent,
            kind=st.sampled_from(["prompt", "answer", "command", "edit", "note", "other"]),
            text=st.text(max_size=200), command=st.text(max_size=60), output=st.text(max_size=200),
            path=st.text(max_size=40), exit=st.none() | st.integers(-1, 255),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_any_events_are_summed_up(rows: list[SessionEvent]) -> None:
    assert len(build_summary(rows).as_text()) < 20_000


@pytest.mark.parametrize(
    ("output", "proves_nothing"),
    [("3 skipped", True), ("2 passed, 1 skipped", False), ("2 passed", False), ("", False)],
)
def test_a_run_that_skipped_everything_proves_nothing(output: str, proves_nothing: bool) -> None:
    assert CommandRun(at=0, command="pytest", ok=True, output=output).only_skipped is proves_nothing


def test_what_a_gate_refused_is_told_until_it_was_done() -> None:
    refused = [
        {"kind": "prompt", "text": "fix add and commit"},
        {"kind": "refused", "command": 'git commit -am "Fix add"'},
        {"kind": "refused", "path": "deploy.yaml"},
    ]
    assert build_summary(events(*refused)).refused == ('`git commit -am "Fix add"`', "an edit of deploy.yaml")
    other = {"kind": "command", "command": "git status", "exit": 0}
    failed = {"kind": "command", "command": "git commit -m x", "exit": 1}
    assert len(build_summary(events(*refused, other, failed)).refused) == 2
    done = (
        {"kind": "command", "command": "git commit -m 'Fix add'", "exit": 0},
        {"kind": "edit", "path": "deploy.yaml"},
    )
    assert build_summary(events(*refused, *done)).refused == ()


def test_only_an_answer_names_the_agents_next_step() -> None:
    rows = [{"kind": "prompt", "text": "add the index"}, {"kind": "answer", "text": "Done."}]
    assert build_summary(events(*rows, {"kind": "answer", "text": "Next: drop the old table."})).next == (
        "drop the old table.",
    )
    assert build_summary(events(*rows, {"kind": "note", "text": "Next: drop the old table."})).next == ()


def test_a_claim_is_said_and_a_check_is_recorded() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "fix the flaky test"},
            {"kind": "check", "command": "make test", "exit": 1, "output": "1 failed, 3 passed", "of": 4},
            {"kind": "answer", "text": "It is fixed and everything is green. Next: generate the stubs."},
        )
    )
    assert found.goals == ("fix the flaky test",)
    assert found.failing == ("`make test`: 1 failed, 3 passed",)
    assert found.said == ("It is fixed and everything is green.",)
    assert found.next == ("generate the stubs.",)
    assert found.proven == ()


def test_a_command_that_is_no_check_proves_nothing() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "commit it"},
            {"kind": "command", "command": "git commit --no-verify -m x", "exit": 0, "output": "1 file changed"},
        )
    )
    assert found.proven == ()
    assert found.commands == ("`git commit --no-verify -m x`",)


def test_a_goal_that_the_person_stopped_is_no_goal() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "add the header"},
            {"kind": "answer", "text": "Added."},
            {"kind": "prompt", "text": "run npm publish"},
            {"kind": "note", "text": "interrupted"},
        )
    )
    assert found.goals == ("add the header",)

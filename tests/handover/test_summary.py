"""Summaries of labelled sessions contain what they must and nothing they must not."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.handover.runs import CommandRun
from holdfast.handover.summary import SessionEvent, build_summary, is_settled
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
    assert wrong == 0


def test_a_claim_that_the_last_run_contradicts_is_left_out() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "fix the flaky test"},
            {"kind": "command", "command": "make test", "exit": 2, "output": "1 failed, 3 passed"},
            {"kind": "answer", "text": "It is fixed and everything is green."},
        )
    )
    assert found.failing == ("`make test`: 1 failed, 3 passed",)
    assert "green" not in found.as_text()


def test_goal_outcome_and_next_step_say_something_by_themselves() -> None:
    """A rule is no goal, "stop" is none, an answer to a question is no outcome, and the agent's next step is the next one."""
    found = build_summary(
        events(
            {"kind": "prompt", "text": "commits must be signed or the push gets refused"},
            {"kind": "answer", "text": "ok"},
            {"kind": "prompt", "text": "ok commit the proto"},
            {"kind": "command", "command": "git commit -S -m proto", "exit": 0, "output": ""},
            {"kind": "answer", "text": "Committed. Next step: generate the python stubs."},
            {"kind": "prompt", "text": "stop, wrong file"},
            {"kind": "answer", "text": "Sorry."},
            {"kind": "prompt", "text": "are the tests green?"},
            {"kind": "answer", "text": "They are."},
        )
    )
    assert found.as_line() == (
        "Goal: ok commit the proto; are the tests green? Next: generate the python stubs. Outcome: Committed."
    )
    assert found.decided == ("commits must be signed or the push gets refused",)


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


@pytest.mark.parametrize(
    ("newer", "settled"),
    [
        ("Goal: fix the lint Outcome: buf lint passes.", True),
        ("Goal: rename the package Outcome: the package has its final name.", True),
        ("Goal: add paging to the orders Outcome: Paging is in.", False),
    ],
)
def test_what_a_newer_session_took_up_is_open_no_more(newer: str, settled: bool) -> None:
    older = "Goal: a proto for orders Open: the package has no name. Failing: `buf lint`: 3 errors Outcome: The proto is in."
    assert is_settled(older, newer) is settled


def test_a_claim_that_the_user_denies_is_left_out() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "each order is mailed twice, find out why"},
            {"kind": "answer", "text": "Fixed: the queue was read by two workers. Orders are mailed once now."},
            {"kind": "prompt", "text": "no, still two mails for one order"},
            {"kind": "answer", "text": "Then the relay repeats them."},
        )
    )
    assert found.outcome == ("Then the relay repeats them.",)
    assert found.decided == ()


def test_a_step_of_the_plan_is_no_decision() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "warum fehlen die Werte?"},
            {"kind": "answer", "text": "Das Komma stört den Parser."},
            {"kind": "prompt", "text": "ok, als nächstes beide Formate annehmen, dann die Lücke nachladen"},
            {"kind": "answer", "text": "OK."},
        )
    )
    assert found.decided == ()
    assert "beide Formate annehmen" in found.next[0]


def test_what_went_wrong_and_passes_since_is_said() -> None:
    found = build_summary(
        events(
            {"kind": "check", "command": "make test", "exit": 1, "output": "2 failed, 3 passed", "of": 4},
            {"kind": "edit", "path": "src/app.py"},
            {"kind": "check", "command": "make test", "exit": 0, "output": "5 passed", "of": 9},
        )
    )
    assert found.proven == ("`make test`: 5 passed (went wrong before, passes since)",)
    assert found.failing == ()


def test_skipped_tests_prove_nothing() -> None:
    found = build_summary(events({"kind": "command", "command": "make test", "exit": 0, "output": "12 skipped"}))
    assert found.proven == ()


def test_the_next_step_is_told_in_the_words_it_was_said_in() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "find the cause"},
            {"kind": "answer", "text": "The cause is in match.py."},
            {"kind": "prompt", "text": "ok. next step: compare net amounts"},
            {"kind": "answer", "text": "OK."},
        )
    )
    assert found.next == ("compare net amounts",), "the line is called `next step` already"
    assert found.goals == ("find the cause",), "and the goal is what was asked before it"


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


def test_what_was_left_open_is_done_only_when_it_is_spoken_of_again_and_work_follows() -> None:
    left = {"kind": "answer", "text": "The parser works. Rounding in the printer is still missing."}
    again = {"kind": "prompt", "text": "Now do the rounding in the printer module."}
    work = {"kind": "edit", "path": "printer.py"}
    begin = {"kind": "prompt", "text": "Write the parser."}
    assert build_summary(events(begin, work, left)).open == ("Rounding in the printer is still missing.",)
    assert build_summary(events(begin, left, again, work)).open == ()
    assert build_summary(events(begin, left, work, again)).open == ()
    assert build_summary(events(begin, work, left, again)).open == ("Rounding in the printer is still missing.",)


def test_what_is_open_is_not_named_twice() -> None:
    found = build_summary(
        events(
            {"kind": "prompt", "text": "fix add in calc.py"},
            {"kind": "edit", "path": "calc.py"},
            {"kind": "answer", "text": "Fixed it. Left open: test_slow.py still fails."},
            {"kind": "answer", "text": "Noch offen: die Doku fehlt."},
        )
    )
    assert found.open == ("test_slow.py still fails.", "die Doku fehlt.")
    assert found.as_line().count("pen:") == 1


def test_a_word_at_the_end_of_a_sentence_is_the_same_word() -> None:
    """What a later prompt speaks of, with work after it, is taken for done."""
    found = build_summary(
        events(
            {"kind": "prompt", "text": "fix both files"},
            {"kind": "answer", "text": "I have not started with calc.py."},
            {"kind": "prompt", "text": "now do calc.py please"},
            {"kind": "edit", "path": "calc.py"},
            {"kind": "answer", "text": "Did that."},
        )
    )
    assert found.open == ()


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

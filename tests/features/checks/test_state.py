"""What is kept of checks: bounded, and nobody's run erases another's."""

from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.features.checks.state import CHECKS, MAX_RUNS, BranchChecks, checks_key, keys, reduce


def finished(seq: int, session: str = "s", **data: Any) -> Event:
    whole = {
        "kind": "test",
        "runner": "pytest",
        "dir": ".",
        "selection": "all",
        "worktree": "/w",
        "branch": "main",
        **data,
    }
    return Event(key=str(seq), kind=CheckFinished.KIND, at=seq, seq=seq, session=session, project="/w", data=whole)


def kept(*events: Event) -> dict[str, BranchChecks]:
    docs: dict[str, BranchChecks] = {}
    for event in events:
        for ref in keys(event):
            docs[ref.key] = reduce(docs.get(ref.key), event, ref)
    return docs


def test_the_latest_run_of_the_same_check_counts() -> None:
    docs = kept(finished(1, verdict="failed"), finished(2, verdict="passed"))
    (run,) = docs[checks_key("/w", "main")].runs.values()
    assert (run.seq, run.verdict) == (2, "passed")


def test_sessions_folders_parts_worktrees_and_branches_are_kept_apart() -> None:
    docs = kept(
        finished(1), finished(2, session="t"), finished(3, dir="a"), finished(4, selection="part", operands=["x"]),
        finished(5, selection="part", operands=["y"]), finished(6, worktree="/v"), finished(7, branch="topic"),
    )  # fmt: skip
    assert [len(doc.runs) for doc in docs.values()] == [5, 1, 1]
    assert set(docs) == {checks_key("/w", "main"), checks_key("/v", "main"), checks_key("/w", "topic")}


def test_it_is_bounded_and_the_oldest_goes_first() -> None:
    docs = kept(*(finished(n, operands=[str(n)]) for n in range(1, MAX_RUNS + 10)))
    runs = docs[checks_key("/w", "main")].runs
    assert len(runs) == MAX_RUNS
    assert min(run.seq for run in runs.values()) == 10


def test_what_was_there_is_not_changed_in_place() -> None:
    first = kept(finished(1))[checks_key("/w", "main")]
    event = finished(2, session="t")
    after = reduce(first, event, next(iter(keys(event))))
    assert (len(first.runs), len(after.runs)) == (1, 2)


def test_a_document_reads_back_as_it_was() -> None:
    from holdfast.core.document import encode

    doc = kept(finished(1, passed=3, content={"": "f"}))[checks_key("/w", "main")]
    assert CHECKS.decode(encode(doc)) == doc


@pytest.mark.parametrize("verdict", ["did_not_run", "unknown"])
def test_what_did_not_run_or_is_not_known_does_not_take_the_place_of_what_did(verdict: str) -> None:
    docs = kept(finished(1, verdict="passed"), finished(2, verdict=verdict))
    assert [run.verdict for run in docs[checks_key("/w", "main")].runs.values()] == ["passed", verdict]

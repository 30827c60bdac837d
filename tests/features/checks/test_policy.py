"""What an event means for checks: pure, from what the event carries."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.kinds.check_events import CheckFinished, GitActed
from holdfast.core.ports import Doc, Ref
from holdfast.features.checks.policy import EXIT_READ, JUDGE_LATE, derive, enqueue
from holdfast.features.checks.state import keys, reduce

CHECK = {"kind": "test", "runner": "pytest", "dir": "sub", "selection": "all", "verdict": "passed", "passed": 2}


class Documents:
    """State as a transaction has it: each event is reduced before it is asked what follows."""

    def __init__(self) -> None:
        self.docs: dict[Ref, Doc] = {}

    def get(self, kind: str, key: str) -> Doc | None:
        return self.docs.get(Ref(kind, key))

    def follow(self, event: Event) -> list[Any]:
        for ref in keys(event):
            self.docs[ref] = reduce(self.docs.get(ref), event, ref)
        return [made.data for made in derive(self, event, None)]


def event(kind: str = "tool.finished", **data: Any) -> Event:
    return Event(key="k", kind=kind, at=1, seq=7, session="s", project="/w", data={"branch": "main", **data})


def look(*acts: dict[str, Any], size: int, branch: str = "main", **more: Any) -> dict[str, Any]:
    return {"worktree": "/w", "log_size": size, "branch": branch, "acts": list(acts), **more}


def act(verb: str, at: int, detail: str = "") -> dict[str, Any]:
    return {"verb": verb, "old": "a" * 40, "new": "b" * 40, "at": at, "detail": detail}


def test_each_check_of_a_command_is_told_with_where_and_on_what_it_ran() -> None:
    judgement = {"checks": [CHECK, {**CHECK, "kind": "lint"}], "worktree": "/other", "branch": "topic", "commit": "c"}
    found = Documents().follow(event(judgement=judgement, content={"": "f"}, command="make", call="c1"))
    assert [type(one) for one in found] == [CheckFinished, CheckFinished]
    first = found[0]
    assert (first.of, first.call, first.worktree, first.branch, first.commit) == (7, "c1", "/other", "topic", "c")
    assert (first.dir, first.verdict, first.passed, first.content) == ("sub", "passed", 2, {"": "f"})


def test_without_a_look_before_nothing_is_known_to_be_new() -> None:
    state = Documents()
    assert state.follow(event(git=look(act("commit", 100), size=100))) == []
    (found,) = state.follow(event(git=look(act("commit", 100), act("commit", 200), size=200)))
    assert isinstance(found, GitActed)
    assert (found.verb, found.commits, found.before.branch, found.outside) == ("commit", ["b" * 40], "main", False)


def test_a_checkout_moves_the_branch_of_what_follows() -> None:
    state = Documents()
    state.follow(event(git=look(size=0)))
    acts = (act("checkout", 10, "moving from main to topic"), act("commit", 20))
    found = state.follow(event("prompt.submitted", git=look(*acts, size=20, branch="topic", outside=True)))
    assert [(one.verb, one.before.branch, one.after.branch) for one in found] == [
        ("checkout", "main", "topic"), ("commit", "topic", "topic"),
    ]  # fmt: skip
    assert all(one.outside for one in found)
    assert found[0].commits == []


def test_a_push_that_moves_no_ref_is_taken_from_git_s_answer() -> None:
    judgement = {"git": [{"verb": "push", "effective": True}], "worktree": "/w", "commit": "c", "branch": "main"}
    (found,) = Documents().follow(event(judgement=judgement))
    assert (found.verb, found.after.head) == ("push", "c")
    unsure = {**judgement, "git": [{"verb": "push"}]}
    assert Documents().follow(event(judgement=unsure)) == []


def test_an_exit_code_told_late_asks_for_another_judgement() -> None:
    (job,) = enqueue(Documents(), event(EXIT_READ, of=3, exit_code=0), None)
    assert (job.kind, job.payload) == (JUDGE_LATE, {"of": 3, "exit_code": 0})
    assert list(enqueue(Documents(), event(), None)) == []

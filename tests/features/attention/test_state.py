"""What needs a person follows from the events alone."""

from typing import Any

from holdfast.core.attention import Attention, Muted
from holdfast.core.event import Event
from holdfast.core.kinds import build_payload
from holdfast.features.attention.state import MOST_NEEDS, SUBSCRIBED, facets, keys, reduce
from tests.factories import NOON

ASK = {"action": "shell", "command": "rm -rf build", "input": {"command": "rm -rf build"}}


def told(
    seq: int, kind: str, tool: str = "", session: str = "s-1", project: str = "/home/ada/engine", **data: Any
) -> Event:
    return Event(
        key=f"key-{seq}", seq=seq, kind=kind, at=NOON + seq * 1000, session=session, project=project, agent="claude-code",
        tool=tool, data=build_payload(kind, data),
    )  # fmt: skip


def folded(*events: Event) -> Attention:
    docs: dict[Any, Any] = {}
    for event in events:
        assert event.kind in SUBSCRIBED, event.kind
        for ref in keys(event):
            docs[ref] = reduce(docs.get(ref), event, ref)
    found = [doc for doc in docs.values() if isinstance(doc, Attention)]
    return found[0] if found else Attention()


def kinds(*events: Event) -> list[str]:
    return [one.kind for one in folded(*events).needs]


PROMPT = told(1, "prompt.submitted", prompt="clean up, please")
ASKED = told(2, "permission.requested", "Bash", **ASK)


def test_a_permission_names_what_would_run_and_the_task_in_the_persons_words():
    (need,) = folded(PROMPT, ASKED).needs
    assert (need.kind, need.text, need.task, need.since) == (
        "permission",
        "rm -rf build",
        "clean up, please",
        NOON + 2000,
    )
    assert need.input == {"command": "rm -rf build"}


def test_it_is_gone_when_it_is_settled_by_whatever():
    for settled in (
        told(3, "tool.finished", "Bash", **ASK),
        told(3, "tool.failed", "Bash", **ASK),
        told(3, "permission.denied", "Bash", **ASK),
        told(3, "attention.answered", of=2, verdict="deny"),
        told(3, "permission.granted", asked=NOON + 2000),
        told(3, "prompt.submitted", prompt="no, leave it"),
        told(3, "turn.interrupted"),
        told(3, "session.ended"),
    ):
        assert "permission" not in kinds(PROMPT, ASKED, settled), settled.kind


def test_another_call_does_not_settle_it():
    other = told(3, "tool.finished", "Bash", action="shell", command="ls", input={"command": "ls"})
    lane = told(3, "tool.finished", "Bash", **ASK, lane="agent-1")
    assert kinds(PROMPT, ASKED, other) == kinds(PROMPT, ASKED, lane) == ["permission"]


def test_the_same_question_asked_twice_is_one_with_its_first_time():
    (need,) = folded(PROMPT, ASKED, told(9, "permission.requested", "Bash", **ASK)).needs
    assert (need.since, need.seq) == (NOON + 2000, 9)


def test_a_question_is_asked_once_though_two_hooks_tell_it():
    asked = {"action": "ask", "input": {"questions": [{"question": "Red or blue?"}]}}
    before = told(2, "tool.started", "AskUserQuestion", **asked)
    (need,) = folded(PROMPT, before, told(3, "permission.requested", "AskUserQuestion", **asked)).needs
    assert (need.kind, need.text) == ("question", "Red or blue?")


def test_turns_end_well_badly_or_not_at_all():
    assert kinds(PROMPT, told(2, "turn.ended", message="done")) == ["finished"]
    assert kinds(PROMPT, told(2, "turn.ended", message="done"), told(3, "tool.started", "Bash", **ASK)) == []
    assert kinds(PROMPT, told(2, "turn.ended", background=1)) == []
    assert kinds(PROMPT, told(2, "turn.failed", error="overloaded")) == ["failed"]
    assert kinds(PROMPT, told(2, "session.lost")) == ["failed"]
    assert kinds(PROMPT, told(2, "turn.ended"), told(3, "session.lost")) == []
    refused = told(3, "decision.made", of=2, of_kind="turn.ended", verdict="deny")
    assert kinds(PROMPT, told(2, "turn.ended"), refused) == []


def refusal(seq: int, gate: str = "refused", reason: str = "no", type_: str = "evidence") -> Event:
    details = [{"gate": gate, "requirements": [{"name": "tests", "type": type_}]}]
    return told(seq, "decision.made", of=1, of_kind="tool.started", verdict="deny", reasons=[reason], details=details)


def test_refused_for_good_is_the_third_time_in_a_turn():
    assert kinds(PROMPT, refusal(2), refusal(3)) == []
    assert kinds(PROMPT, refusal(2), refusal(3), refusal(4)) == ["refused"]
    assert kinds(PROMPT, refusal(2), refusal(3), told(4, "prompt.submitted", prompt="go on"), refusal(5)) == []
    assert kinds(PROMPT, refusal(2, "let_go")) == ["refused"]
    assert kinds(PROMPT, refusal(2, reason="the budget is used up: 3 of 2 dollars", type_="budget")) == ["budget"]


def test_things_without_a_turn_stay_until_they_are_settled():
    lost = told(2, "workspace.changed", files=[{"path": "a.py", "lost": 12}])
    assert kinds(PROMPT, lost, told(3, "prompt.submitted", prompt="x")) == ["discarded"]
    assert kinds(PROMPT, told(2, "workspace.changed", files=[{"path": "a.py"}])) == []
    assert kinds(told(2, "uat.ended", outcome="failed", scenario="buy")) == ["uat"]
    assert kinds(told(2, "agent.unrecorded", session="", program="claude", cwd="/x", why="no hook")) == ["unrecorded"]


def test_what_was_sent_is_remembered_by_channel():
    doc = folded(PROMPT, ASKED, told(3, "attention.due", session="", channel="ntfy", needs=["s-1#2"]))
    assert doc.needs[0].sent == ["ntfy"]
    assert doc.session == "s-1"


def test_it_is_bounded():
    many = [told(n, "permission.requested", "Bash", action="shell", command=f"rm {n}") for n in range(2, 200)]
    assert len(folded(PROMPT, *many).needs) == MOST_NEEDS


def test_the_document_given_is_left_as_it_was():
    before = folded(PROMPT, ASKED)
    reduce(before, told(3, "turn.interrupted"), next(iter(keys(ASKED))))
    assert len(before.needs) == 1


def test_open_ones_are_found_by_their_status():
    ref = next(iter(keys(ASKED)))
    assert facets(ref, folded(PROMPT, ASKED))[1] == "open"
    assert facets(ref, folded(PROMPT))[1] == ""
    mute = told(3, "attention.muted", until=5)
    assert reduce(None, mute, next(iter(keys(mute)))) == Muted(until=5, at=mute.at)

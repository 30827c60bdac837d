"""Events of the log become the steps of a summary: bounded, and with what gates refused."""

from holdfast.analysis.handover.session_history import SessionHistory
from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted, ToolFinished, ToolStarted
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.session_events import ToolExitRead


def start(seq: int, command: str, lane: str = "") -> Event:
    data = ToolStarted(action="shell", command=command, lane=lane)
    return Event(key=f"k{seq}", kind="tool.started", at=seq, seq=seq, session="s", tool="Bash", data=data)


def denial(of: int, gate: str = "refused") -> Event:
    data = DecisionMade(of=of, of_kind="tool.started", verdict="deny", details=[{"gate": gate}] if gate else [])
    return Event(key=f"d{of}", kind="decision.made", at=of, seq=of + 1, session="s", data=data)


def test_only_what_waits_for_a_requirement_is_still_to_be_done() -> None:
    course = SessionHistory()
    for event in (
        *(start(1, "git push"), denial(1)),
        *(start(3, "rm -rf /"), denial(3, gate="")),
        *(start(5, "git commit", lane="a"), denial(5)),
    ):
        course.add(event)
    assert course.summary().refused == ("`git push`",)


def test_an_exit_code_that_is_read_later_decides_whether_a_command_failed() -> None:
    course = SessionHistory()
    ran = ToolFinished(action="shell", command="make all", ok=True, output="error: no rule")
    course.add(Event(key="k", kind="tool.finished", at=1, seq=7, session="s", tool="Bash", data=ran))
    assert course.summary().failing == ()
    read = ToolExitRead(of=7, action="shell", command="make all", ok=False, exit_code=2)
    course.add(Event(key="e", kind="tool.exit_read", at=1, seq=9, session="s", tool="Bash", data=read))
    assert course.summary().failing == ("`make all`: error: no rule",)


def test_of_a_long_session_the_goal_and_the_last_steps_are_kept() -> None:
    course = SessionHistory(most_steps=5)
    for n in range(40):
        course.add(
            Event(key=f"k{n}", kind="prompt.submitted", at=n, seq=n, session="s", data=PromptSubmitted(prompt=f"p{n}"))
        )
    assert course.steps[0].text == "p0" and course.steps[-1].text == "p39"
    assert len(course.steps) <= 10
